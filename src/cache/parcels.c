// parcels.c -- see parcels.h.
#include "cache/parcels.h"

#include "owner/slabs.h"
#include "slab/arena.h"

struct hak_pool_shelf hak_parcels = {.item_bytes = sizeof(struct hak_parcel)};

bool hak_parcels_are_too_many(void)
{
    const size_t most = HAK_MIB(1) + hak_arena_used_bytes() / 16;
    return hak_load_relaxed(&hak_parcels.out_bytes) > most;
}

struct hak_parcel *hak_parcel_make(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    if (cache->spare_parcel == NULL) {
        cache->spare_parcel = hak_pool_shelf_take(&hak_parcels, &cache->spare_count);
    }
    struct hak_parcel *parcel = cache->spare_parcel;
    if (HAK_LIKELY(parcel != NULL)) {
        cache->spare_parcel = parcel->next;
        cache->spare_count--;
        hak_store_relaxed(&parcel->count, 0);
        parcel->bytes = 0;
    }
    return parcel;
}

void hak_parcel_end(struct hak_cache *cache, struct hak_parcel *parcel)
    HAK_REQUIRES(&cache->owner.lock)
{
    parcel->next = cache->spare_parcel;
    cache->spare_parcel = parcel;
    if (++cache->spare_count < 2 * HAK_PARCELS_TOGETHER ||
        hak_load_relaxed(&hak_slabs_end_nothing)) {
        return;
    }
    struct hak_parcel *last = parcel;
    for (unsigned i = 1; i < HAK_PARCELS_TOGETHER; i++) {
        last = last->next;
    }
    cache->spare_parcel = last->next;
    cache->spare_count -= HAK_PARCELS_TOGETHER;
    last->next = NULL;
    hak_pool_shelf_put(&hak_parcels, parcel, HAK_PARCELS_TOGETHER);
}

void hak_parcels_give_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    if (cache->spare_parcel != NULL) {
        hak_pool_shelf_put(&hak_parcels, cache->spare_parcel, cache->spare_count);
        cache->spare_parcel = NULL;
        cache->spare_count = 0;
    }
}
