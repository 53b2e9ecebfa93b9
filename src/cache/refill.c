// refill.c -- see refill.h.
#include "cache/refill.h"

#include "base/check.h"
#include "base/probe.h"
#include "cache/fast_path.h"
#include "cache/hooks.h"
#include "cache/magazine.h"
#include "cache/parcels.h"
#include "cache/remote.h"
#include "cache/steal.h"
#include "cache/take.h"

// The most blocks that one refill moves: enough that its fixed cost no longer shows.
enum { REFILL_MAX = 128 };

// Put `block` into its magazine, which may grow as if the thread had freed the block. False: the block has another owner, or
// its slab has samples.
static bool put_into_magazine(struct hak_cache *cache, void *block) HAK_REQUIRES(&cache->owner.lock)
{
    const uint32_t size_class = hak_map_entry(block) - cache->owner.tag;
    if (size_class >= HAK_SMALL_CLASSES) {
        return false;
    }
    if (!hak_cache_push_into(cache, hak_cache_top_number(cache, size_class), block)) {
        hak_magazine_spill(cache, size_class, block);
    }
    return true;
}

// Count the blocks of a parcel that came back, roughly: all for the class of its first, so that one look at the map is enough.
static void count_returned(struct hak_cache *cache, const struct hak_parcel *parcel, uint32_t count)
{
    const uint32_t size_class =
        hak_map_entry(hak_place_load(&parcel->blocks[0])) - cache->owner.tag;
    if (size_class < HAK_SMALL_CLASSES) {
        hak_count(&cache->magazines[size_class].counts.returned_blocks, count);
    }
}

// Put a parcel's blocks into magazines, if possible; if not, into their slabs.
static void open_parcel(struct hak_cache *cache, struct hak_parcel *parcel)
    HAK_REQUIRES(&cache->owner.lock)
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    hak_count(&cache->owner.opened_parcels, 1);
    count_returned(cache, parcel, count);
    for (uint32_t i = 0; i < count;) {
        const bool is_put = put_into_magazine(cache, hak_place_load(&parcel->blocks[i]));
        i += is_put ? 1 : hak_remote_route_row(cache, &cache->owner, &parcel->blocks[i], count - i);
    }
    hak_parcel_end(cache, parcel);
}

void hak_refill_by_parcels(struct hak_cache *cache, unsigned size_class, uint32_t blocks)
    HAK_REQUIRES(&cache->owner.lock)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&cache->owner.loose) != NULL)) {
        hak_remote_drain(cache, &cache->owner, HAK_REMOTE_ALL); // freed when there was no memory
    }
    struct hak_parcel *parcel;
    while (hak_cache_top(cache, size_class) - cache->magazines[size_class].base <= blocks &&
           (parcel = hak_inbox_next(&cache->owner)) != NULL) {
        open_parcel(cache, parcel);
    }
}

// One block of a class without a magazine.
static void *take_seldom(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    void *block = hak_take_one(cache, size_class);
    if (HAK_LIKELY(block != NULL)) {
        hak_count(&cache->magazines[size_class].counts.refills, 1);
        hak_count(&cache->magazines[size_class].counts.refilled_blocks, 1);
    }
    return block;
}

// Not inlined, so that a class without a magazine does not pay for the array on the stack.
static HAK_NOINLINE void *magazine_fill(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    const struct hak_magazine *magazine = &cache->magazines[size_class];
    hak_count(&cache->magazines[size_class].counts.refills, 1);
    hak_refill_by_parcels(cache, size_class, (hak_cache_magazine_slots(magazine) + 1) / 2);
    // Opened parcels may have changed the magazine, so its size is read here.
    const uint32_t want = hak_hook_refill(
        cache, size_class, hak_magazine_part(magazine, hak_cache_magazine_slots(magazine)));
    hak_place *top = hak_cache_top(cache, size_class);
    if (hak_magazine_held(cache, size_class) == 0) {
        void *blocks[REFILL_MAX];
        const uint32_t most = want < REFILL_MAX ? want : REFILL_MAX;
        const unsigned got = hak_take_many(cache, size_class, blocks, most);
        if (got == 0) {
            return NULL;
        }
        for (unsigned i = 0; i < got; i++) {
            hak_place_store(top + i, blocks[i]);
        }
        top += got;
    }
    hak_count(&cache->magazines[size_class].counts.refilled_blocks,
              (size_t)(top - magazine->base) - 1);
    HAK_PROBE2("hakmem", "refill", hak_classes[size_class].bytes, top - magazine->base - 1);
    hak_cache_set_top(cache, size_class, top - 1);
    return hak_place_load(top - 1);
}

void *hak_refill(struct hak_cache *cache, unsigned size_class) HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    HAK_ASSERT(hak_place_load(hak_cache_top(cache, size_class) - 1) == NULL);
    magazine->is_refilled |= !magazine->is_ruled;
    if (magazine->base == NULL) {
        if (!hak_magazine_start_if_due(cache, size_class)) {
            return take_seldom(cache, size_class);
        }
    } else {
        void *block = hak_steal_fenced(cache, size_class);
        if (block != NULL) {
            return block; // the magazine only looked empty
        }
        magazine->bottom = 0;
        hak_cache_set_top(cache, size_class, magazine->base + 1);
        hak_magazine_note(cache, size_class, false);
    }
    return magazine_fill(cache, size_class);
}
