// inbox.c -- see inbox.h.
#include "cache/inbox.h"

#include "base/check.h"
#include "base/options.h"
#include "cache/fast_path.h"
#include "cache/owner.h"
#include "cache/parcels.h"
#include "cache/slabs.h"
#include "cache/watch.h"
#include "slab/arena.h"
#include "slab/misuse.h"

static struct hak_outbox *outbox_for(struct hak_cache *cache, uint32_t tag)
{
    return &cache->outboxes[(tag >> 8) % HAK_OUTBOXES];
}

static struct hak_cache *parcel_owner(struct hak_parcel *parcel)
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    for (uint32_t i = 0; i < count; i++) {
        void *block = hak_place_load(&parcel->blocks[i]);
        if (block != NULL) {
            return hak_owner_or_end(block);
        }
    }
    return NULL; // a sweep has emptied it
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
    } while (!hak_cas_release(&owner->inbox, &head, parcel)); // pairs with: hak_inbox_next
    hak_fence_compiler(); // see hak_unwatch_judge
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
    struct hak_cache *owner = hak_owner_or_end(hak_place_load(&parcel->blocks[first]));
    if (owner != cache && !hak_lock_try(&owner->lock)) {
        return;
    }
    for (uint32_t i = first; i < count; i++) {
        void *block = hak_place_load(&parcel->blocks[i]);
        if (block != NULL && hak_owner_is(owner, block)) {
            hak_place_store(&parcel->blocks[i], NULL);
            hak_slabs_put(owner, hak_slab_owned(block), block);
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

void hak_inbox_push_loose(void *block)
{
    struct hak_cache *owner = hak_owner_or_end(block);
    struct hak_loose *loose = block;
    struct hak_loose *head = hak_load_relaxed(&owner->loose);
    do {
        loose->next = head;
    } while (!hak_cas_release(&owner->loose, &head, loose)); // pairs with: hak_inbox_drain
    hak_fence_compiler(); // see hak_unwatch_judge
    hak_watch_note(owner);
}

bool hak_inbox_post(struct hak_cache *cache, void *block, uint32_t entry) HAK_REQUIRES(&cache->lock)
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

void hak_inbox_put(void *block)
{
    struct hak_cache *owner = hak_owner_lock(block);
    if (HAK_UNLIKELY(owner == NULL)) {
        hak_slab_die_not_live(block);
    }
    hak_lock_is_held(&owner->lock);
    hak_slabs_put(owner, hak_run_of(block), block);
    hak_lock_drop(&owner->lock);
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
    hak_parcels_give_all(cache);
}

bool hak_inbox_is_open(const struct hak_cache *cache, uint32_t tag)
{
    return cache->outboxes[(tag >> 8) % HAK_OUTBOXES].tag == tag;
}

bool hak_inbox_is_empty(const struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    if (cache->pending != NULL || hak_load_relaxed(&cache->inbox) != NULL ||
        hak_load_relaxed(&cache->loose) != NULL) {
        return false;
    }
    for (unsigned i = 0; i < HAK_OUTBOXES; i++) {
        const struct hak_parcel *parcel = cache->outboxes[i].parcel;
        const uint32_t count = parcel_count(parcel);
        for (uint32_t j = 0; j < count; j++) {
            if (hak_place_load(&parcel->blocks[j]) != NULL) {
                return false;
            }
        }
    }
    return true;
}

// Step send_on of outbox.pml.
void hak_inbox_send_on(struct hak_cache *self, struct hak_cache *cache)
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
    hak_parcels_give_all(cache);
}

void hak_inbox_route(struct hak_cache *self, struct hak_cache *cache, void *block)
    HAK_REQUIRES(&self->lock, &cache->lock)
{
    const uint32_t entry = hak_map_entry(block);
    struct hak_run *slab = hak_run_of(block);
    if (HAK_UNLIKELY(slab == NULL || !hak_map_is_small(entry))) {
        hak_slab_die_not_live(block);
    }
    if (HAK_MAP_TAG(entry) == cache->tag) {
        hak_slabs_put(cache, slab, block);
    } else if (HAK_MAP_TAG(entry) == self->tag) { // the slab was taken over meanwhile
        hak_slabs_put(self, slab, block);
    } else if (!hak_load_relaxed(&hak_slabs_end_nothing) && !hak_inbox_post(self, block, entry)) {
        hak_inbox_push_loose(block);
    }
}

unsigned hak_inbox_route_row(struct hak_cache *self,
                             struct hak_cache *cache,
                             hak_place *places,
                             unsigned count) HAK_REQUIRES(&self->lock, &cache->lock)
{
    void *block = hak_place_load(&places[0]);
    if (HAK_MAP_TAG(hak_map_entry(block)) == cache->tag) {
        struct hak_run *slab = hak_slab_owned(block);
        if (count > 1 && hak_run_spans(slab, hak_place_load(&places[1]))) {
            return hak_slabs_put_row(cache, slab, places, count);
        }
        hak_slabs_put(cache, slab, block);
        return 1;
    }
    if (block != NULL) {
        hak_inbox_route(self, cache, block);
    }
    return 1;
}

// Step take of parcels.pml.
struct hak_parcel *hak_inbox_next(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
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

static void parcel_open_locked(struct hak_cache *self,
                               struct hak_cache *cache,
                               struct hak_parcel *parcel) HAK_REQUIRES(&self->lock, &cache->lock)
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    hak_count(&cache->counts.opened_parcels, 1);
    for (uint32_t i = 0; i < count;) {
        i += hak_inbox_route_row(self, cache, &parcel->blocks[i], count - i);
    }
    hak_parcel_end(self, parcel);
}

static void inbox_lower_locked(struct hak_cache *self, struct hak_cache *cache, size_t bytes)
    HAK_REQUIRES(&self->lock, &cache->lock)
{
    struct hak_parcel *parcel;
    while (hak_load_relaxed(&cache->inbox_bytes) > bytes &&
           (parcel = hak_inbox_next(cache)) != NULL) {
        parcel_open_locked(self, cache, parcel);
    }
}

bool hak_inbox_drain(struct hak_cache *self, struct hak_cache *cache, int parcels)
    HAK_REQUIRES(&self->lock, &cache->lock)
{
    for (; parcels > 0; parcels--) {
        struct hak_parcel *parcel = hak_inbox_next(cache);
        if (parcel == NULL) {
            break;
        }
        parcel_open_locked(self, cache, parcel);
    }
    struct hak_loose *loose = hak_load_relaxed(&cache->loose);
    if (HAK_LIKELY(loose == NULL)) {
        return parcels == 0;
    }
    loose = hak_swap_acquire(&cache->loose, NULL); // pairs with: hak_inbox_push_loose
    while (loose != NULL) {
        struct hak_loose *next = loose->next;
        loose->next = NULL; // a hardened slab's free blocks are zeros
        hak_inbox_route(self, cache, loose);
        loose = next;
    }
    return parcels == 0;
}
