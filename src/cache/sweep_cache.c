// sweep_cache.c -- see sweep_cache.h.
#include "cache/sweep_cache.h"

#include "base/bits.h"
#include "cache/bigcache.h"
#include "cache/due.h"
#include "cache/hooks.h"
#include "cache/inbox.h"
#include "cache/magazine.h"
#include "cache/reclaim.h"
#include "cache/rest.h"
#include "cache/slabs.h"
#include "cache/steal.h"
#include "slab/arena.h"
#include "slab/huge_pages.h"
#include "slab/ranges.h"

// Slabs whose pages are given back before the cache's owner, who may be waiting, gets its turn:
// some 100 µs of system calls. Or more when these would not be enough for one, at a page each.
enum { SLABS_AT_A_TIME = 8, SLABS_MOST = HAK_UNIT_BYTES / 4096, SLABS_LOOKED_AT = 32 };

static bool is_load(unsigned size_class, unsigned slabs, const struct hak_ranges *ranges)
{
    const unsigned more = hak_classes[size_class].units * HAK_SLAB_RANGES_OF_UNIT;
    return ranges->count + more > HAK_RANGES_MAX || slabs == SLABS_MOST ||
           (slabs >= SLABS_AT_A_TIME && hak_ranges_are_enough(ranges));
}

// The slabs whose pages are given back together, and where the ranges of each end.
struct lot {
    struct hak_run *slabs[SLABS_MOST];
    unsigned ends[SLABS_MOST];
    unsigned count;
};

// It lies in front of those that were swept, until the next try.
static void put_off_locked(struct hak_cache *cache, struct hak_run *slab) HAK_REQUIRES(&cache->lock)
{
    hak_list_remove(&slab->link);
    hak_list_push(hak_slabs_swept(cache, slab->size_class), &slab->link);
    cache->magazines[slab->size_class].has_unpurged = true;
}

// Of some pages the kernel said no (they are locked in memory), or they were too few for a call: another time. True when it said
// no.
static bool note_purged_locked(struct hak_cache *cache,
                               const struct lot *lot,
                               struct hak_purged purged) HAK_REQUIRES(&cache->lock)
{
    unsigned first = 0;
    bool is_refused = false;
    for (unsigned i = 0; i < lot->count; i++) {
        struct hak_run *slab = lot->slabs[i];
        const uint64_t its = hak_bit_range(first, lot->ends[i] - first);
        if ((purged.done & its) != its) {
            hak_slab_note_unpurged(slab);
            put_off_locked(cache, slab);
            is_refused |= purged.is_tried;
        } else {
            hak_huge_pages_note_holes(slab);
        }
        first = lot->ends[i];
    }
    return is_refused;
}

// Has a quarter of what was in use come back since its pages were looked at? Before, few more pages are wholly free.
static bool gives_enough(const struct hak_run *slab)
{
    const unsigned blocks = hak_classes[slab->size_class].blocks;
    const unsigned untaken = slab->has_old_pages ? blocks - hak_load_relaxed(&slab->fresh) : 0;
    return slab->free_blocks + untaken - slab->purged_blocks >= (blocks - slab->purged_blocks) / 4;
}

enum which {
    ALL,
    WORTH_IT,
    LAST_WORTH_IT, // of a class that is in use: not those that serve next
};
enum { SERVE_NEXT = 4 };

// NULL when there is none.
static struct hak_run *slab_to_sweep(const struct hak_list *slabs, enum which which)
{
    const struct hak_list *link = slabs->next;
    for (unsigned i = 0; which == LAST_WORTH_IT && i < SERVE_NEXT && link != slabs; i++) {
        link = link->next;
    }
    if (link == slabs) {
        return NULL;
    }
    return HAK_LIST_ITEM(which == LAST_WORTH_IT ? slabs->prev : link, struct hak_run, link);
}

// Give back pages inside some of the class's slabs, and put these to those that were swept. False when there are no more to do.
// `*is_refused` becomes true when the kernel refuses some.
static bool sweep_slabs_locked(struct hak_cache *cache,
                               unsigned size_class,
                               enum which which,
                               bool *is_refused) HAK_REQUIRES(&cache->lock)
{
    struct hak_list *slabs = hak_slabs_of(cache, size_class);
    struct hak_list *swept = hak_slabs_swept(cache, size_class);
    struct lot lot = {.count = 0};
    struct hak_ranges ranges = {.count = 0};
    struct hak_run *slab;
    for (unsigned looks = 0; (slab = slab_to_sweep(slabs, which)) != NULL &&
                             looks < SLABS_LOOKED_AT && !is_load(size_class, lot.count, &ranges);
         looks++) {
        const unsigned before = ranges.count;
        hak_list_remove(&slab->link);
        if (hak_slab_is_idle(slab)) {
            hak_slabs_end(cache, slab); // a hardened one, which stayed as the only one
            continue;
        }
        const bool is_wanted = which == ALL || gives_enough(slab);
        if (!is_wanted && which == LAST_WORTH_IT) {
            hak_list_push(slabs, &slab->link); // it serves next, and fills up
            continue;
        }
        if (is_wanted) {
            hak_slab_purge(slab, &ranges);
        }
        slab->is_swept = true;
        hak_list_append(swept, &slab->link);
        if (hak_slab_wants_purge(slab)) { // it was not worth it
            put_off_locked(cache, slab);
        }
        lot.slabs[lot.count] = slab;
        lot.ends[lot.count] = ranges.count;
        lot.count += ranges.count > before;
    }
    hak_slabs_note_spare(cache, size_class);
    *is_refused |= note_purged_locked(cache, &lot, hak_ranges_purge(&ranges));
    return slab != NULL;
}

// Those whose pages the kernel did not take lie in front of the swept ones.
static void try_again_locked(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->lock)
{
    struct hak_list *swept = hak_slabs_swept(cache, size_class);
    cache->magazines[size_class].has_unpurged = false;
    while (!hak_list_is_empty(swept)) {
        struct hak_run *slab = HAK_LIST_ITEM(swept->next, struct hak_run, link);
        if (!hak_slab_wants_purge(slab)) {
            return;
        }
        slab->is_swept = false;
        hak_list_remove(&slab->link);
        hak_list_append(hak_slabs_of(cache, size_class), &slab->link);
    }
}

// The class is not in use here: let its slabs go, and pages inside them.
static void sweep_class_locked(struct hak_cache *cache,
                               unsigned size_class,
                               struct hak_sweep_how *how) HAK_REQUIRES(&cache->lock)
{
    if (hak_ranges_policy() == HAK_FREE_KEEP) {
        return;
    }
    if (how->tries_again && cache->magazines[size_class].has_unpurged) {
        try_again_locked(cache, size_class);
    }
    while (how->lots > 0 && !hak_list_is_empty(hak_slabs_of(cache, size_class))) {
        how->lots--;
        if (sweep_slabs_locked(cache, size_class, ALL, &how->is_refused)) {
            hak_lock_pass(&cache->lock);
        }
    }
}

// Give back what the cache's classes hold that are not in use. True when the kernel has not taken all of it.
static bool sweep_classes_locked(struct hak_cache *cache, bool sleeps, struct hak_sweep_how *how)
    HAK_REQUIRES(&cache->lock)
{
    bool has_unpurged = false;
    HAK_EACH_LISTED (cache, size_class) {
        const struct hak_magazine *magazine = &cache->magazines[size_class];
        if (sleeps || magazine->idle_looks >= how->idle_looks) {
            sweep_class_locked(cache, size_class, how);
        } else if (hak_due_has_sweeper() && hak_due_takes_little_again() &&
                   hak_ranges_policy() != HAK_FREE_KEEP) {
            sweep_slabs_locked(cache, size_class, LAST_WORTH_IT, &how->is_refused);
            hak_lock_pass(&cache->lock);
        }
        has_unpurged |= magazine->has_unpurged;
        hak_slabs_count_spare(cache, size_class);
    }
    return has_unpurged;
}

// What has come back to slabs that go on may wait as free units do, and no less than so much of it.
#define SCATTERED_LEAST HAK_MIB(3)

static bool is_due(const struct hak_cache *cache)
{
    return HAK_UNLIKELY(cache->scattered_bytes > SCATTERED_LEAST) &&
           cache->scattered_bytes > hak_due_budget_inside() &&
           hak_ranges_policy() != HAK_FREE_KEEP && !hak_due_has_sweeper();
}

// The first class from that one on, around, with slabs to look at; HAK_SMALL_CLASSES: none has.
static unsigned class_to_sweep(struct hak_cache *cache, unsigned from) HAK_REQUIRES(&cache->lock)
{
    for (unsigned to = HAK_SMALL_CLASSES; to != 0; to = from, from = 0) {
        unsigned size_class = from;
        while ((size_class = hak_next_bit(cache->listed, size_class, to)) < to) {
            if (!hak_list_is_empty(&cache->magazines[size_class].slabs)) {
                return size_class;
            }
            size_class++;
        }
    }
    return HAK_SMALL_CLASSES;
}

static void sweep_some_locked(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    const unsigned size_class = class_to_sweep(cache, cache->sweep_hand);
    if (size_class < HAK_SMALL_CLASSES) {
        cache->sweep_hand = size_class;
        hak_magazine_shrink(cache, size_class); // each block in it keeps a page
        bool is_refused = false;                // it is tried again in another tick
        sweep_slabs_locked(cache, size_class, WORTH_IT, &is_refused);
    }
}

// A heap that is half of what it was lately has no use for magazines that grew with it.
#define MAGAZINES_LEAST HAK_MIB(2)

static bool magazines_are_due(const struct hak_cache *cache)
{
    return cache->magazine_bytes > MAGAZINES_LEAST && !hak_due_has_sweeper() &&
           hak_arena_used_bytes() < hak_arena_recent_peak() / 2;
}

void hak_sweep_if_due(struct hak_cache *cache)
{
    if (hak_due_has_sweeper()) {
        return;
    }
    hak_lock_take(&cache->lock);
    hak_sweep_if_due_locked(cache);
    hak_lock_drop(&cache->lock);
}

void hak_sweep_if_due_locked(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    if (HAK_UNLIKELY(is_due(cache))) {
        sweep_some_locked(cache);
    }
    if (HAK_UNLIKELY(magazines_are_due(cache))) {
        hak_magazine_shrink_one(cache, HAK_SMALL_CLASSES);
    }
}

// What a pass over all leaves: one block in a magazine, and slabs that were swept.
static bool are_classes_bare(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    HAK_EACH_MAGAZINE (cache, size_class) {
        if (!hak_steal_has_taken_all(cache, size_class)) {
            return false;
        }
    }
    HAK_EACH_LISTED (cache, size_class) {
        const struct hak_magazine *magazine = &cache->magazines[size_class];
        if (!hak_list_is_empty(&magazine->slabs) || magazine->has_unpurged ||
            !hak_slabs_are_counted(cache, size_class)) {
            return false;
        }
    }
    return true;
}

static bool is_bare(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    return !hak_load_relaxed(&cache->is_whole) && hak_inbox_is_empty(cache) &&
           hak_hook_is_bare(cache) && hak_bigcache_expire(cache, UINT64_MAX) == 0 &&
           are_classes_bare(cache);
}

bool hak_sweep_is_bare(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    return is_bare(cache) && !hak_rest_is_due(cache);
}

// Of a thread that has ended, and nothing is left: nobody is at work there, so no second look is needed to say so. (The
// shared cache gets slabs again and again.)
static bool is_at_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    return hak_load_relaxed(&cache->state) == HAK_CACHE_DEAD && cache != &hak_cache_shared &&
           is_bare(cache);
}

bool hak_sweep_cache(struct hak_cache *self,
                     struct hak_cache *cache,
                     struct hak_sweep_how *how,
                     struct hak_sweep_found *found) HAK_REQUIRES(&self->lock, &cache->lock)
{
    const bool all = how->all;
    const uint64_t events = hak_load_relaxed(&cache->events) + hak_hook_events(cache);
    cache->idle_ticks = events == cache->seen_events ? cache->idle_ticks + 1 : 0;
    cache->seen_events = events;
    found->returned_bytes += cache->returned_bytes;
    cache->returned_bytes = 0;
    if (is_at_rest(cache)) {
        hak_magazine_renew(cache); // its next thread may do little
        hak_magazine_sleep(cache);
        hak_steal_note_tops(cache);
        return true;
    }
    const bool is_idle = cache->idle_ticks >= how->idle_looks;
    const bool sleeps = all || is_idle;
    if (all && cache != &hak_cache_shared && hak_sweep_is_bare(cache)) {
        return is_idle;
    }
    if (hak_load_relaxed(&cache->is_whole)) {
        if (!sleeps) {
            found->kept_bytes++; // to be looked at again
            return false;
        }
        while (how->lots > 0 && hak_load_relaxed(&cache->is_whole) &&
               !hak_reclaim_break_up(cache, HAK_RECLAIM_SOME)) {
            how->lots--;
            hak_lock_pass(&cache->lock); // it may have a thread again then
        }
    }
    if (sleeps) {
        if (hak_load_relaxed(&cache->state) == HAK_CACHE_DEAD) {
            hak_magazine_renew(cache); // its next thread may do little
        }
        hak_inbox_send_on(self, cache);
        while (hak_inbox_drain(self, cache, HAK_INBOX_SOME)) {
            hak_lock_pass(&cache->lock);
        }
        hak_magazine_sleep(cache);
    }
    if ((all || cache->idle_ticks == how->idle_looks) && !hak_hook_empty(cache) &&
        cache->idle_ticks > 0) {
        cache->idle_ticks--; // once more
    }
    const bool are_empty = hak_steal_magazines(self, cache, all);
    const bool has_unpurged = sweep_classes_locked(cache, sleeps, how);
    const size_t kept = hak_bigcache_expire(cache, how->kept_ticks);
    found->kept_bytes += kept;
    // Without lots left nobody knows whether there are more slabs.
    return is_idle && are_empty && !has_unpurged && kept == 0 && how->lots > 0;
}
