// inbox.c -- see inbox.h.
#include "cache/inbox.h"

#include "base/check.h"
#include "base/options.h"
#include "cache/fast_path.h"
#include "cache/loot.h"
#include "cache/magazine.h"
#include "cache/parcels.h"
#include "cache/watch.h"
#include "slab/arena.h"
#include "slab/misuse.h"

static struct hak_outbox *outbox_for(struct hak_cache *cache, uint32_t tag)
{
    return &cache->outboxes[(tag >> 8) % HAK_OUTBOXES];
}

// What the program has freed twice may have ended with the first free, and its memory may be
// something else by now, or become so at any moment: every look below is one that may find nothing.
struct hak_cache *hak_cache_owner_of(const void *p)
{
    const struct hak_slab *slab = hak_map_is_small(hak_map_entry(p)) ? hak_slab_of(p) : NULL;
    if (slab == NULL || slab->state != HAK_SLAB_SMALL) {
        return NULL;
    }
    return hak_load_acquire(&slab->owner); // pairs with: hak_slab_move
}

struct hak_cache *hak_cache_owner_or_end(const void *block)
{
    struct hak_cache *owner = hak_cache_owner_of(block);
    if (HAK_UNLIKELY(owner == NULL)) {
        hak_slab_die_not_live(block);
    }
    return owner;
}

static struct hak_cache *parcel_owner(struct hak_parcel *parcel)
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    for (uint32_t i = 0; i < count; i++) {
        void *block = hak_place_load(&parcel->blocks[i]);
        if (block != NULL) {
            return hak_cache_owner_or_end(block);
        }
    }
    return NULL; // a purger has emptied it
}

// Until no more than so many bytes wait.
static void inbox_lower_locked(struct hak_cache *self, struct hak_cache *cache, size_t bytes)
    HAK_REQUIRES(&self->lock, &cache->lock);

// An owner that does not come to empty its inbox, or `cache` itself, which only frees: do some of it. What is left the owner
// takes straight into its magazines if it does come. What is not its own comes back into the outboxes, whose parcels may be
// full with that: nobody helps while it helps, so that this ends. Step help of parcels.pml. Unproven: one lock or two, the
// second against the order of ranks, by hak_lock_try.
static void inbox_help(struct hak_cache *cache, struct hak_cache *owner, size_t bytes)
    HAK_REQUIRES(&cache->lock) HAK_UNPROVEN
{
    if (cache->is_helping || (owner != cache && !hak_lock_try(&owner->lock))) {
        return;
    }
    cache->is_helping = true;
    inbox_lower_locked(cache, owner, bytes);
    cache->is_helping = false;
    if (owner != cache) {
        hak_lock_drop(&owner->lock);
    }
}

// Push a parcel onto its owner's inbox. The owner may have changed since it was begun, and there may be blocks of others:
// the receiver sends on what is not its own. Step send of parcels.pml, step send_locked of outbox.pml.
static void parcel_send_locked(struct hak_cache *cache, struct hak_parcel *parcel)
    HAK_REQUIRES(&cache->lock)
{
    struct hak_cache *owner = parcel_owner(parcel);
    if (owner == NULL) {
        hak_parcel_end(cache, parcel);
        return;
    }
    hak_count(&cache->counts.sent_parcels, 1);
    hak_count(&cache->counts.sent_blocks, hak_load_relaxed(&parcel->count));
    // Before the parcel can be opened, so that the sum never falls below zero.
    const size_t bytes = parcel->bytes;
    const size_t waiting = hak_add_relaxed(&owner->inbox_bytes, bytes) + bytes;
    struct hak_parcel *head = hak_load_relaxed(&owner->inbox);
    do {
        parcel->next = head;
    } while (!hak_cas_release(&owner->inbox, &head, parcel)); // pairs with: inbox_next_locked
    hak_keep_order(); // see hak_watch_judge
    hak_watch_note(owner);
    const size_t most = 16 * hak_load_relaxed(&hak_options.parcel_bytes);
    const bool is_full = hak_parcels_are_too_many();
    if (waiting > most || is_full) {
        inbox_help(cache, owner, is_full ? 0 : most - most / 8);
    }
}

// Put all blocks of a parcel that are the owner's of the one at `first` into their slabs; none if its lock is not free.
// Two caches' locks, against the order of ranks: the second by hak_lock_try.
static void parcel_put_locked(struct hak_cache *cache, struct hak_parcel *parcel, uint32_t first)
    HAK_REQUIRES(&cache->lock) HAK_UNPROVEN
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    struct hak_cache *owner = hak_cache_owner_or_end(hak_place_load(&parcel->blocks[first]));
    if (owner != cache && !hak_lock_try(&owner->lock)) {
        return;
    }
    for (uint32_t i = first; i < count; i++) {
        void *block = hak_place_load(&parcel->blocks[i]);
        if (block != NULL && hak_cache_owns_locked(owner, block)) {
            hak_place_store(&parcel->blocks[i], NULL);
            hak_cache_put(owner, hak_slab_owned(block), block);
        }
    }
    if (owner != cache) {
        hak_lock_drop(&owner->lock);
    }
}

// A parcel with blocks of several owners, or with a few: into their slabs, one owner after another. What owners have whose
// lock is not free is handed over: they are at work.
static void parcel_share_out_locked(struct hak_cache *cache, struct hak_parcel *parcel)
    HAK_REQUIRES(&cache->lock)
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    for (uint32_t i = 0; i < count; i++) {
        if (hak_place_load(&parcel->blocks[i]) != NULL) {
            parcel_put_locked(cache, parcel, i);
        }
    }
    parcel_send_locked(cache, parcel);
}

static void outbox_send_locked(struct hak_cache *cache, struct hak_outbox *outbox)
    HAK_REQUIRES(&cache->lock)
{
    struct hak_parcel *parcel = outbox->parcel;
    const bool is_mixed = outbox->tag == HAK_OUTBOX_MIXED;
    const bool is_small = hak_load_relaxed(&parcel->count) < HAK_PARCEL_BLOCKS / 4 &&
                          parcel->bytes < hak_load_relaxed(&hak_options.parcel_bytes) / 4;
    outbox->parcel = NULL;
    outbox->tag = 0;
    if (is_mixed || is_small) {
        parcel_share_out_locked(cache, parcel);
    } else {
        parcel_send_locked(cache, parcel);
    }
}

// The blocks in the parcel that another thread may be filling: those below this are there.
static uint32_t parcel_count(const struct hak_parcel *parcel)
{
    return parcel != NULL ? hak_load_acquire(&parcel->count) : 0; // pairs with: hak_parcel_add
}

// When there is no memory for a parcel: the link goes into the freed block itself, which
// is the one thing that we do not do otherwise, and cannot fail.
static void inbox_push_loose(void *block)
{
    struct hak_cache *owner = hak_cache_owner_or_end(block);
    struct hak_loose *loose = block;
    struct hak_loose *head = hak_load_relaxed(&owner->loose);
    do {
        loose->next = head;
    } while (!hak_cas_release(&owner->loose, &head, loose)); // pairs with: hak_inbox_drain
    hak_keep_order(); // see hak_watch_judge
    hak_watch_note(owner);
}

// False: no memory for a parcel.
static bool outbox_post_locked(struct hak_cache *cache, void *block, uint32_t entry)
    HAK_REQUIRES(&cache->lock)
{
    const uint32_t tag = HAK_MAP_TAG(entry);
    struct hak_outbox *outbox = outbox_for(cache, tag);
    if (outbox->parcel == NULL) {
        outbox->parcel = hak_parcel_make(cache);
        if (outbox->parcel == NULL) {
            return false;
        }
        outbox->tag = tag;
    } else if (outbox->tag != tag) {
        outbox->tag = HAK_OUTBOX_MIXED;
    }
    if (!hak_inbox_add(cache, block, entry)) {
        hak_parcel_add(outbox->parcel, block, hak_classes[HAK_MAP_CLASS(entry)].bytes);
        outbox_send_locked(cache, outbox); // it is full
    }
    return true;
}

// A heap's, or that of another owner whose lock is waited for.
static void put_at_home(void *block)
{
    struct hak_cache *owner = hak_cache_lock_owner(block);
    if (HAK_UNLIKELY(owner == NULL)) {
        hak_slab_die_not_live(block);
    }
    hak_lock_is_held(&owner->lock);
    hak_cache_put(owner, hak_slab_of(block), block);
    hak_lock_drop(&owner->lock);
}

bool hak_inbox_post(struct hak_cache *cache, void *block, uint32_t entry)
{
    bool posted = true;
    const uint32_t tag = HAK_MAP_TAG(entry);
    if (hak_tag_is_heap(tag)) {
        put_at_home(block);
        return false;
    }
    hak_lock_take(&cache->lock);
    const uint64_t sent = hak_load_relaxed(&cache->counts.sent_parcels);
    if (outbox_for(cache, tag)->tag == tag || !hak_loot_adopt(cache, block, HAK_MAP_CLASS(entry))) {
        posted = outbox_post_locked(cache, block, entry);
    }
    const bool has_sent = hak_load_relaxed(&cache->counts.sent_parcels) != sent;
    hak_lock_drop(&cache->lock);
    if (!posted) {
        inbox_push_loose(block);
    }
    return has_sent;
}

// Without helping: that could fill an outbox again which was passed already.
void hak_inbox_post_all(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    const bool was_helping = cache->is_helping;
    cache->is_helping = true;
    for (unsigned i = 0; i < HAK_OUTBOXES; i++) {
        if (cache->outboxes[i].parcel != NULL) {
            outbox_send_locked(cache, &cache->outboxes[i]);
        }
    }
    cache->is_helping = was_helping;
    hak_parcels_keep_none(cache);
}

bool hak_outbox_is_empty(const struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    for (unsigned i = 0; i < HAK_OUTBOXES; i++) {
        struct hak_parcel *parcel = cache->outboxes[i].parcel;
        const uint32_t count = parcel_count(parcel);
        for (uint32_t j = 0; j < count; j++) {
            if (hak_place_load(&parcel->blocks[j]) != NULL) {
                return false;
            }
        }
    }
    return true;
}

// Step loot of outbox.pml.
void hak_outbox_loot(struct hak_cache *self, struct hak_cache *cache)
    HAK_REQUIRES(&self->lock, &cache->lock)
{
    for (unsigned i = 0; i < HAK_OUTBOXES; i++) {
        struct hak_parcel *parcel = cache->outboxes[i].parcel;
        const uint32_t count = parcel_count(parcel);
        for (uint32_t j = 0; j < count; j++) {
            void *block = hak_place_load(&parcel->blocks[j]);
            if (block != NULL) {
                hak_place_store(&parcel->blocks[j], NULL);
                hak_inbox_route(self, cache, block);
            }
        }
    }
    hak_parcels_keep_none(cache);
}

void hak_inbox_route(struct hak_cache *self, struct hak_cache *cache, void *block)
    HAK_REQUIRES(&self->lock, &cache->lock)
{
    const uint32_t entry = hak_map_entry(block);
    struct hak_slab *slab = hak_slab_of(block);
    if (HAK_UNLIKELY(slab == NULL || !hak_map_is_small(entry))) {
        hak_slab_die_not_live(block);
    }
    if (HAK_MAP_TAG(entry) == cache->tag) {
        hak_cache_put(cache, slab, block);
    } else if (HAK_MAP_TAG(entry) == self->tag) { // the slab was taken over meanwhile
        hak_cache_put(self, slab, block);
    } else if (!hak_load_relaxed(&hak_cache_ends_nothing) &&
               !outbox_post_locked(self, block, entry)) {
        inbox_push_loose(block);
    }
}

unsigned hak_inbox_route_row(struct hak_cache *self,
                             struct hak_cache *cache,
                             hak_place *places,
                             unsigned count) HAK_REQUIRES(&self->lock, &cache->lock)
{
    void *block = hak_place_load(&places[0]);
    if (HAK_MAP_TAG(hak_map_entry(block)) == cache->tag) {
        struct hak_slab *slab = hak_slab_owned(block);
        if (count > 1 && hak_slab_spans(slab, hak_place_load(&places[1]))) {
            return hak_cache_put_row(cache, slab, places, count);
        }
        hak_cache_put(cache, slab, block);
        return 1;
    }
    if (block != NULL) {
        hak_inbox_route(self, cache, block);
    }
    return 1;
}

// The next parcel of `cache` to open, or NULL. Step take of parcels.pml.
static struct hak_parcel *inbox_next_locked(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    if (cache->pending == NULL && hak_load_relaxed(&cache->inbox) != NULL) {
        cache->pending = hak_swap_acquire(&cache->inbox, NULL); // pairs with: parcel_send_locked
    }
    struct hak_parcel *parcel = cache->pending;
    if (parcel != NULL) {
        cache->pending = parcel->next;
        hak_sub_relaxed(&cache->inbox_bytes, parcel->bytes);
    }
    return parcel;
}

// Into the owner's magazine, which grows as with what its thread frees itself. False: not the owner's block, or
// one of a slab with samples.
static bool inbox_keep_locked(struct hak_cache *cache, void *block) HAK_REQUIRES(&cache->lock)
{
    const uint32_t size_class = hak_map_entry(block) - cache->tag;
    if (size_class >= HAK_SMALL_CLASSES) {
        return false;
    }
    if (!hak_cache_push_into(cache, hak_top_of(cache, size_class), block)) {
        hak_magazine_spill(cache, size_class, block);
    }
    return true;
}

// The owner gets a parcel back. By class these are counted roughly: one look for a parcel must do.
static void count_returned(struct hak_cache *cache, const struct hak_parcel *parcel, uint32_t count)
{
    const uint32_t size_class = hak_map_entry(hak_place_load(&parcel->blocks[0])) - cache->tag;
    if (size_class < HAK_SMALL_CLASSES) {
        hak_count(&cache->class_counts[size_class].returned_blocks, count);
    }
}

// `keep`: the caller is the owner, and its magazines come first.
static void parcel_open_locked(struct hak_cache *self,
                               struct hak_cache *cache,
                               struct hak_parcel *parcel,
                               bool keep) HAK_REQUIRES(&self->lock, &cache->lock)
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    hak_count(&cache->counts.opened_parcels, 1);
    if (keep) {
        count_returned(cache, parcel, count);
    }
    for (uint32_t i = 0; i < count;) {
        const bool is_kept = keep && inbox_keep_locked(cache, hak_place_load(&parcel->blocks[i]));
        i += is_kept ? 1 : hak_inbox_route_row(self, cache, &parcel->blocks[i], count - i);
    }
    hak_parcel_end(self, parcel);
}

static void inbox_lower_locked(struct hak_cache *self, struct hak_cache *cache, size_t bytes)
    HAK_REQUIRES(&self->lock, &cache->lock)
{
    struct hak_parcel *parcel;
    while (hak_load_relaxed(&cache->inbox_bytes) > bytes &&
           (parcel = inbox_next_locked(cache)) != NULL) {
        parcel_open_locked(self, cache, parcel, false);
    }
}

void hak_inbox_refill(struct hak_cache *cache, unsigned size_class, uint32_t blocks)
    HAK_REQUIRES(&cache->lock)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&cache->loose) != NULL)) {
        hak_inbox_drain(cache, cache, HAK_INBOX_ALL); // blocks from a time without memory
    }
    struct hak_parcel *parcel;
    while (hak_magazine_top(cache, size_class) - cache->magazines[size_class].base <= blocks &&
           (parcel = inbox_next_locked(cache)) != NULL) {
        parcel_open_locked(cache, cache, parcel, true);
    }
}

bool hak_inbox_drain(struct hak_cache *self, struct hak_cache *cache, int parcels)
    HAK_REQUIRES(&self->lock, &cache->lock)
{
    for (; parcels > 0; parcels--) {
        struct hak_parcel *parcel = inbox_next_locked(cache);
        if (parcel == NULL) {
            break;
        }
        parcel_open_locked(self, cache, parcel, false);
    }
    struct hak_loose *loose = hak_load_relaxed(&cache->loose);
    if (HAK_LIKELY(loose == NULL)) {
        return parcels == 0;
    }
    loose = hak_swap_acquire(&cache->loose, NULL); // pairs with: inbox_push_loose
    while (loose != NULL) {
        struct hak_loose *next = loose->next;
        loose->next = NULL; // a hardened slab's free blocks are zeros
        hak_inbox_route(self, cache, loose);
        loose = next;
    }
    return parcels == 0;
}

bool hak_cache_owns_locked(const struct hak_cache *cache, const void *p) HAK_REQUIRES(&cache->lock)
{
    return HAK_MAP_TAG(hak_map_entry(p)) == cache->tag;
}

// Step lock_owner of owners.pml. Unproven: which lock is its answer; hak_lock_is_held for who gets it.
struct hak_cache *hak_cache_lock_owner(const void *p) HAK_UNPROVEN
{
    struct hak_cache *owner;
    while ((owner = hak_cache_owner_of(p)) != NULL) {
        hak_lock_take(&owner->lock);
        if (hak_cache_owns_locked(owner, p)) {
            return owner;
        }
        hak_lock_drop(&owner->lock); // it changed hands meanwhile, or ended
    }
    return NULL;
}
