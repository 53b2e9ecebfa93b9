// reclaim.c -- see reclaim.h.
#include "cache/reclaim.h"

#include "base/bits.h"
#include "cache/bigcache.h"
#include "cache/hooks.h"
#include "cache/magazine.h"
#include "cache/registry.h"
#include "cache/remote.h"
#include "owner/owner.h"
#include "owner/slabs.h"
#include "owner/watch.h"

// Does the owner serve only sites with a rule for short-lived or long-lived blocks?
static bool is_apart(const struct hak_owner *owner)
{
    return owner->role >= HAK_ROLE_SHORT;
}

// Slabs move between threads' caches only. A heap frees all that it owns when it ends, and a slab from elsewhere has blocks in
// use; the shared cache gives its slabs as orphans.
static bool may_share(const struct hak_owner *a, const struct hak_owner *b)
{
    return a->has_thread && b->has_thread && (a->role == b->role || (!is_apart(a) && !is_apart(b)));
}

// Move a slab from one owner to another, out of its list. With both owners' locks.
static void slab_take_over(struct hak_run *slab, struct hak_owner *from, struct hak_cache *cache)
{
    hak_list_remove(&slab->link);
    slab->is_swept = false;
    hak_slabs_move(slab, from, &cache->owner);
}

static bool may_take_orphans(const struct hak_owner *owner)
{
    return owner->has_thread && !is_apart(owner);
}

// Does the shared cache have an orphan of the class, or could it have one once its inbox is drained? Looks without its lock, to
// avoid contention between threads for which there is none.
static bool orphans_may_have(unsigned size_class)
{
    return hak_slabs_has_spare(&hak_cache_shared.owner, size_class) ||
           hak_load_relaxed(&hak_cache_shared.owner.inbox_bytes) != 0 ||
           hak_load_relaxed(&hak_cache_shared.owner.loose) != NULL;
}

struct hak_run *hak_reclaim_slab(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    if (!orphans_may_have(size_class) || !may_take_orphans(&cache->owner)) {
        return NULL;
    }
    struct hak_run *slab = NULL;
    hak_lock_take(&hak_cache_shared.owner.lock);
    hak_count(&hak_cache_shared.owner.events, 1);
    hak_remote_drain(cache, &hak_cache_shared.owner, HAK_REMOTE_SOME); // others may want the lock
    slab = hak_slabs_first(&hak_cache_shared.owner, size_class);
    if (slab != NULL) {
        slab_take_over(slab, &hak_cache_shared.owner, cache);
        hak_count(&cache->counts.adopted_slabs, 1);
    }
    hak_slabs_note_spare(&hak_cache_shared.owner, size_class);
    hak_lock_drop(&hak_cache_shared.owner.lock);
    if (HAK_UNLIKELY(cache->is_direct)) {
        hak_remote_post_all(cache); // its frees never fill the parcels that the drain began
    }
    return slab;
}

enum {
    ASKED = 32,      // caches that are asked for one slab
    LOOKS = 16,      // slabs of one list that are looked at
    SPARE = 4,       // a slab is taken if more than 1/SPARE of its blocks are free
    SOME = 8,        // dead caches that are broken up at a time
    DEAD_LOOKS = 64, // dead caches of a role that are looked at for that
};

// The slab with the most free blocks among `best` and the first LOOKS slabs of a list from `link` on. If `best` is NULL, only slabs
// count whose free blocks are more than SPARE asks for.
static struct hak_run *slab_with_most(struct hak_list *list,
                                      struct hak_list *link,
                                      struct hak_run *best)
{
    for (unsigned looks = 0; link != list && looks < LOOKS; link = link->next, looks++) {
        struct hak_run *slab = HAK_LIST_ITEM(link, struct hak_run, link);
        const unsigned least = hak_classes[slab->size_class].blocks / SPARE;
        if (slab->free_blocks > (best != NULL ? best->free_blocks : least)) {
            best = slab;
        }
    }
    return best;
}

// The slab that the owner can best spare: not the first, which its cache takes blocks from.
static struct hak_run *spare_slab_locked(struct hak_owner *owner, unsigned size_class)
    HAK_REQUIRES(&owner->lock)
{
    struct hak_list *slabs = hak_slabs_of(owner, size_class);
    struct hak_list *swept = hak_slabs_swept(owner, size_class);
    // The second item of an empty list is its head.
    struct hak_run *best = slab_with_most(slabs, slabs->next->next, NULL);
    return slab_with_most(swept, hak_list_is_empty(slabs) ? swept->next->next : swept->next, best);
}

// Holds two caches' locks, against the order of ranks: takes the second by hak_lock_try. Step spare of owners.pml.
static struct hak_run *spare_slab_of(struct hak_owner *owner,
                                     struct hak_cache *cache,
                                     unsigned size_class)
{
    if (owner == &cache->owner || !hak_slabs_has_spare(owner, size_class) ||
        !may_share(owner, &cache->owner) || !hak_lock_try(&owner->lock)) {
        return NULL;
    }
    struct hak_run *slab = spare_slab_locked(owner, size_class);
    if (slab != NULL) {
        slab_take_over(slab, owner, cache);
    }
    hak_slabs_note_spare(owner, size_class);
    hak_lock_drop(&owner->lock);
    return slab;
}

// Step walk of registry.pml.
struct hak_run *hak_reclaim_spare_slab(struct hak_cache *cache, unsigned size_class)
{
    struct hak_run *slab = NULL;
    if (!cache->owner.has_thread || !hak_slabs_are_spare(&cache->owner, size_class)) {
        return NULL;
    }
    const struct hak_cache *first = NULL;
    for (unsigned asked = 0; asked < ASKED && slab == NULL; asked++) {
        if (cache->asked_next == NULL) {
            cache->asked_next = hak_registry_first();
        }
        if (cache->asked_next == first) {
            break; // once around
        }
        first = first != NULL ? first : cache->asked_next;
        slab = spare_slab_of(&cache->asked_next->owner, cache, size_class);
        cache->asked_next = cache->asked_next->next;
    }
    return slab;
}

// Reclaim the slab of `block`, if its owner is dead and the thread allocates the class. Holds two caches' locks, against the order
// of ranks: takes the second by hak_lock_try. Step adopt of owners.pml.
static bool adopt(struct hak_cache *cache, void *block, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    if (!cache->owner.has_thread || !cache->magazines[size_class].is_refilled) {
        return false;
    }
    struct hak_owner *owner = hak_owner_or_end(block);
    if (hak_load_relaxed(&owner->state) != HAK_OWNER_DEAD || is_apart(owner) ||
        !hak_lock_try(&owner->lock)) {
        return false;
    }
    const bool is_taken =
        hak_load_relaxed(&owner->state) == HAK_OWNER_DEAD && hak_owner_is(owner, block);
    struct hak_run *slab = is_taken ? hak_run_of(block) : NULL;
    if (is_taken) {
        slab_take_over(slab, owner, cache);
        hak_slabs_note_spare(owner, size_class);
        hak_count(&cache->counts.adopted_slabs, 1);
    }
    hak_lock_drop(&owner->lock);
    if (is_taken) {
        struct hak_list *slabs = hak_slabs_of(&cache->owner, size_class);
        hak_list_push(hak_slab_has_blocks(slab) ? slabs : &cache->owner.full, &slab->link);
        hak_slabs_note_spare(&cache->owner, size_class);
        hak_magazine_spill(cache, size_class, block);
    }
    return is_taken;
}

bool hak_reclaim_or_post(struct hak_cache *cache, void *block, uint32_t entry)
{
    bool posted = true;
    const uint32_t tag = HAK_MAP_TAG(entry);
    if (hak_tag_is_heap(tag)) {
        hak_inbox_put(block);
        return false;
    }
    hak_lock_take(&cache->owner.lock);
    const uint64_t sent = hak_load_relaxed(&cache->counts.sent_parcels);
    if (hak_remote_outbox(cache, tag)->tag == tag || !adopt(cache, block, HAK_MAP_CLASS(entry))) {
        posted = hak_remote_post(cache, block, entry);
    }
    const bool has_sent = hak_load_relaxed(&cache->counts.sent_parcels) != sent;
    hak_lock_drop(&cache->owner.lock);
    if (!posted) {
        hak_inbox_push_loose(block);
    }
    return has_sent;
}

// How many slabs become orphans while the shared cache's lock is held: some microseconds.
enum { LEAVE_TOGETHER = 64 };

// A slab of the first class from `size_class` on that has one with free blocks, else one without; NULL: none is left.
static struct hak_run *slab_from(struct hak_cache *cache, unsigned *size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_run *slab = NULL;
    while (slab == NULL &&
           (*size_class = hak_next_bit(cache->owner.listed, *size_class, HAK_SMALL_CLASSES)) <
               HAK_SMALL_CLASSES) {
        slab = hak_slabs_first(&cache->owner, *size_class);
        *size_class += slab == NULL;
    }
    struct hak_list *full = &cache->owner.full;
    return slab == NULL && !hak_list_is_empty(full)
               ? HAK_LIST_ITEM(full->next, struct hak_run, link)
               : slab;
}

static void make_orphan(struct hak_owner *owner, struct hak_run *slab)
    HAK_REQUIRES(&owner->lock, &hak_cache_shared.owner.lock)
{
    hak_list_remove(&slab->link);
    hak_slabs_note_spare(owner, slab->size_class);
    hak_slabs_move(slab, owner, &hak_cache_shared.owner);
    hak_slabs_list(&hak_cache_shared.owner, slab);
    hak_slabs_note_spare(&hak_cache_shared.owner, slab->size_class);
}

// Retire the cache's slabs or make them orphans, at most `slabs` of them. True: none are left. Step leave of owners.pml.
static bool leave(struct hak_cache *cache, unsigned slabs) HAK_REQUIRES(&cache->owner.lock)
{
    unsigned size_class = 0;
    struct hak_run *slab;
    while ((slab = slab_from(cache, &size_class)) != NULL && slabs > 0) {
        if (hak_slab_is_idle(slab) && hak_slabs_retire(&cache->owner, slab)) {
            slabs--;
            continue;
        }
        hak_lock_take(&hak_cache_shared.owner.lock);
        unsigned i = 0;
        do {
            make_orphan(&cache->owner, slab);
            slab = slab_from(cache, &size_class);
        } while (--slabs > 0 && ++i < LEAVE_TOGETHER && slab != NULL && !hak_slab_is_idle(slab));
        hak_lock_drop(&hak_cache_shared.owner.lock);
        hak_watch_note(&hak_cache_shared.owner);
    }
    return slab == NULL;
}

// Make orphans of some of the owner's slabs that fit. False: there are none. Step share of owners.pml.
static bool share(struct hak_owner *owner, unsigned size_class, size_t alignment)
{
    unsigned shared = 0;
    hak_lock_take(&owner->lock);
    hak_lock_take(&hak_cache_shared.owner.lock);
    HAK_EACH_LISTED (owner, i) {
        const bool fits = i >= size_class && hak_classes[i].bytes % alignment == 0;
        struct hak_run *slab;
        while (fits && shared < LEAVE_TOGETHER && (slab = hak_slabs_first(owner, i)) != NULL) {
            make_orphan(owner, slab);
            shared++;
        }
    }
    hak_lock_drop(&hak_cache_shared.owner.lock);
    hak_lock_drop(&owner->lock);
    return shared != 0;
}

bool hak_reclaim_share(const struct hak_owner *taker, unsigned size_class, size_t alignment)
{
    const bool takes_orphans = taker == &hak_cache_shared.owner || may_take_orphans(taker);
    bool has_shared = false;
    struct hak_cache *cache = hak_registry_first();
    for (; cache != NULL && !has_shared && takes_orphans; cache = cache->next) {
        struct hak_owner *owner = &cache->owner;
        if (owner != taker && owner->has_thread && !is_apart(owner)) {
            has_shared = share(owner, size_class, alignment);
        }
    }
    if (has_shared) {
        hak_watch_note(&hak_cache_shared.owner);
    }
    return has_shared;
}

bool hak_reclaim_break_up(struct hak_cache *cache, unsigned slabs) HAK_REQUIRES(&cache->owner.lock)
{
    bool is_done = !hak_remote_drain(cache, &cache->owner, HAK_REMOTE_MANY);
    hak_magazine_flush_all(cache);
    hak_hook_flush(cache);
    hak_remote_post_all(cache);
    hak_bigcache_expire(cache, 0);
    if (!is_apart(&cache->owner)) { // else the slabs stay, for the next thread with this role
        is_done &= leave(cache, slabs);
    }
    if (is_done) {
        hak_store_relaxed(&cache->owner.is_whole, false);
        hak_sub_relaxed(&hak_registry.whole, 1);
    }
    return is_done;
}

// Step break_up of registry.pml.
bool hak_reclaim_break_up_dead(struct hak_cache *cache, unsigned slabs)
{
    if (!hak_load_relaxed(&cache->owner.is_whole) || !hak_lock_try(&cache->owner.lock)) {
        return false;
    }
    const bool is_whole = hak_load_relaxed(&cache->owner.is_whole);
    if (is_whole) {
        hak_reclaim_break_up(cache, slabs);
    }
    hak_lock_drop(&cache->owner.lock);
    return is_whole;
}

// Takes the registry's lock against the order of ranks, by hak_lock_try.
unsigned hak_reclaim_break_up_some(void)
{
    struct hak_cache *found[SOME];
    unsigned count = 0;
    if (hak_load_relaxed(&hak_registry.whole) == 0 || !hak_lock_try(&hak_registry.lock)) {
        return 0;
    }
    for (unsigned role = 0; role < HAK_OWNER_ROLES; role++) {
        const struct hak_list *dead = &hak_registry.dead[role];
        struct hak_list *link = dead->next;
        for (unsigned looks = 0; link != dead && looks < DEAD_LOOKS && count < SOME; looks++) {
            struct hak_cache *cache = HAK_LIST_ITEM(link, struct hak_cache, dead_link);
            link = link->next;
            if (hak_load_relaxed(&cache->owner.is_whole)) {
                found[count++] = cache;
            }
        }
    }
    hak_lock_drop(&hak_registry.lock);
    unsigned done = 0;
    for (unsigned i = 0; i < count; i++) {
        done += hak_reclaim_break_up_dead(found[i], HAK_RECLAIM_SOME);
    }
    return done;
}
