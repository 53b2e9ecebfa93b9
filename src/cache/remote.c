// remote.c -- see remote.h.
#include "cache/remote.h"

#include "base/options.h"
#include "cache/parcels.h"
#include "owner/slabs.h"

static struct hak_owner *parcel_owner(struct hak_parcel *parcel)
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

// Open parcels of the owner's inbox until at most `bytes` wait there.
static void inbox_lower_locked(struct hak_cache *self, struct hak_owner *owner, size_t bytes)
    HAK_REQUIRES(&self->owner.lock, &owner->lock);

// Drain a part of an inbox that is too full: another owner's, or the cache's own. The rest is left to the owner's thread, which
// can put blocks straight into its magazines. Blocks of other owners go into the outboxes of `cache`, which may fill parcels and
// send them; a cache that helps does not help again, so that this ends. Step help of parcels.pml. Unproven: one lock or two, the
// second against the order of ranks, by hak_lock_try.
static void inbox_help(struct hak_cache *cache, struct hak_owner *owner, size_t bytes)
    HAK_REQUIRES(&cache->owner.lock) HAK_UNPROVEN
{
    const bool is_own = owner == &cache->owner;
    if (cache->is_helping || (!is_own && !hak_lock_try(&owner->lock))) {
        return;
    }
    cache->is_helping = true;
    inbox_lower_locked(cache, owner, bytes);
    cache->is_helping = false;
    if (!is_own) {
        hak_lock_drop(&owner->lock);
    }
}

// Push a parcel onto the inbox of its first block's owner. Slabs may have changed owners since it was begun, and it may be mixed:
// the receiver sends on the blocks of others. Step send of parcels.pml, step send_locked of outbox.pml.
static void parcel_send_locked(struct hak_cache *cache, struct hak_parcel *parcel)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_owner *owner = parcel_owner(parcel);
    if (owner == NULL) {
        hak_parcel_end(cache, parcel);
        return;
    }
    hak_count(&cache->counts.sent_parcels, 1);
    hak_count(&cache->counts.sent_blocks, hak_load_relaxed(&parcel->count));
    const size_t waiting = hak_inbox_push(owner, parcel);
    const size_t most = 16 * hak_load_relaxed(&hak_options.parcel_bytes);
    const bool is_full = hak_parcels_are_too_many();
    if (waiting > most || is_full) {
        inbox_help(cache, owner, is_full ? 0 : most - most / 8);
    }
}

// Put those blocks of a parcel into their slabs that have the same owner as the one at `first`, if that owner's lock is free.
// Holds two caches' locks, against the order of ranks: takes the second by hak_lock_try.
static void parcel_put_locked(struct hak_cache *cache, struct hak_parcel *parcel, uint32_t first)
    HAK_REQUIRES(&cache->owner.lock) HAK_UNPROVEN
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    struct hak_owner *owner = hak_owner_or_end(hak_place_load(&parcel->blocks[first]));
    const bool is_own = owner == &cache->owner;
    if (!is_own && !hak_lock_try(&owner->lock)) {
        return;
    }
    for (uint32_t i = first; i < count; i++) {
        void *block = hak_place_load(&parcel->blocks[i]);
        if (block != NULL && hak_owner_is(owner, block)) {
            hak_place_store(&parcel->blocks[i], NULL);
            hak_slabs_put(owner, hak_slab_owned(block), block);
        }
    }
    if (!is_own) {
        hak_lock_drop(&owner->lock);
    }
}

// Put the blocks of a mixed or nearly empty parcel into their slabs, one owner after another. If an owner's lock is not free, its
// thread is at work: the parcel is sent with its blocks.
static void parcel_share_out_locked(struct hak_cache *cache, struct hak_parcel *parcel)
    HAK_REQUIRES(&cache->owner.lock)
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
    HAK_REQUIRES(&cache->owner.lock)
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

// How many blocks can be read in a parcel that another thread may be filling.
static uint32_t parcel_count(const struct hak_parcel *parcel)
{
    return parcel != NULL ? hak_load_acquire(&parcel->count) : 0; // pairs with: hak_parcel_add
}

bool hak_remote_post(struct hak_cache *cache, void *block, uint32_t entry)
    HAK_REQUIRES(&cache->owner.lock)
{
    const uint32_t tag = HAK_MAP_TAG(entry);
    struct hak_outbox *outbox = hak_remote_outbox(cache, tag);
    if (outbox->parcel == NULL) {
        outbox->parcel = hak_parcel_make(cache);
        if (outbox->parcel == NULL) {
            return false;
        }
        outbox->tag = tag;
    } else if (outbox->tag != tag) {
        outbox->tag = HAK_OUTBOX_MIXED;
    }
    if (!hak_remote_add(cache, block, entry)) {
        hak_parcel_add(outbox->parcel, block, hak_classes[HAK_MAP_CLASS(entry)].bytes);
        outbox_send_locked(cache, outbox); // it is full
    }
    return true;
}

// Does not help drain inboxes: that could fill an outbox again that the loop has passed.
void hak_remote_post_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
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

bool hak_remote_is_empty(const struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
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
void hak_remote_send_on(struct hak_cache *self, struct hak_cache *cache)
    HAK_REQUIRES(&self->owner.lock, &cache->owner.lock)
{
    for (unsigned i = 0; i < HAK_OUTBOXES; i++) {
        struct hak_parcel *parcel = cache->outboxes[i].parcel;
        const uint32_t count = parcel_count(parcel);
        for (uint32_t j = 0; j < count; j++) {
            void *block = hak_place_load(&parcel->blocks[j]);
            if (block != NULL) {
                hak_place_store(&parcel->blocks[j], NULL);
                hak_remote_route(self, &cache->owner, block);
            }
        }
    }
    hak_parcels_give_all(cache);
}

void hak_remote_route(struct hak_cache *self, struct hak_owner *owner, void *block)
    HAK_REQUIRES(&self->owner.lock, &owner->lock)
{
    const uint32_t entry = hak_map_entry(block);
    struct hak_run *slab = hak_run_of(block);
    if (HAK_UNLIKELY(slab == NULL || !hak_map_is_small(entry))) {
        hak_slab_die_not_live(block);
    }
    if (HAK_MAP_TAG(entry) == owner->tag) {
        hak_slabs_put(owner, slab, block);
    } else if (HAK_MAP_TAG(entry) == self->owner.tag) { // `self` has reclaimed the slab meanwhile
        hak_slabs_put(&self->owner, slab, block);
    } else if (!hak_load_relaxed(&hak_slabs_end_nothing) && !hak_remote_post(self, block, entry)) {
        hak_inbox_push_loose(block);
    }
}

unsigned hak_remote_route_row(struct hak_cache *self,
                              struct hak_owner *owner,
                              hak_place *places,
                              unsigned count) HAK_REQUIRES(&self->owner.lock, &owner->lock)
{
    void *block = hak_place_load(&places[0]);
    if (HAK_MAP_TAG(hak_map_entry(block)) == owner->tag) {
        struct hak_run *slab = hak_slab_owned(block);
        if (count > 1 && hak_run_spans(slab, hak_place_load(&places[1]))) {
            return hak_slabs_put_row(owner, slab, places, count);
        }
        hak_slabs_put(owner, slab, block);
        return 1;
    }
    if (block != NULL) {
        hak_remote_route(self, owner, block);
    }
    return 1;
}

static void parcel_open_locked(struct hak_cache *self,
                               struct hak_owner *owner,
                               struct hak_parcel *parcel)
    HAK_REQUIRES(&self->owner.lock, &owner->lock)
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    hak_count(&owner->opened_parcels, 1);
    for (uint32_t i = 0; i < count;) {
        i += hak_remote_route_row(self, owner, &parcel->blocks[i], count - i);
    }
    hak_parcel_end(self, parcel);
}

static void inbox_lower_locked(struct hak_cache *self, struct hak_owner *owner, size_t bytes)
    HAK_REQUIRES(&self->owner.lock, &owner->lock)
{
    struct hak_parcel *parcel;
    while (hak_load_relaxed(&owner->inbox_bytes) > bytes &&
           (parcel = hak_inbox_next(owner)) != NULL) {
        parcel_open_locked(self, owner, parcel);
    }
}

bool hak_remote_drain(struct hak_cache *self, struct hak_owner *owner, int parcels)
    HAK_REQUIRES(&self->owner.lock, &owner->lock)
{
    for (; parcels > 0; parcels--) {
        struct hak_parcel *parcel = hak_inbox_next(owner);
        if (parcel == NULL) {
            break;
        }
        parcel_open_locked(self, owner, parcel);
    }
    struct hak_loose *loose = hak_inbox_next_loose(owner);
    while (loose != NULL) {
        struct hak_loose *next = loose->next;
        loose->next = NULL; // a hardened slab's free blocks are zeros
        hak_remote_route(self, owner, loose);
        loose = next;
    }
    return parcels == 0;
}
