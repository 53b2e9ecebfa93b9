// large.c -- see large.h.
#include "cache/large.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/options.h"
#include "cache/sweep.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/misuse.h"

// The bin of a request, which takes whole pages: with pages of 16 or 64 KiB the smallest bins
// stay empty.
static unsigned large_bin(size_t bytes)
{
    return hak_large_bin_of(hak_align_up(bytes, hak_os_page_bytes()));
}

// What a request takes: a size that its bin's other blocks have too.
static size_t large_block_bytes(size_t bytes)
{
    const unsigned bin = large_bin(bytes);
    return bin < HAK_LARGE_BINS ? hak_large_bin_bytes(bin)
                                : hak_align_up(bytes, hak_os_page_bytes());
}

static unsigned units_for(size_t bytes)
{
    return (unsigned)((bytes + HAK_UNIT_BYTES - 1) >> HAK_UNIT_LOG2);
}

static struct hak_slab *bin_take_locked(struct hak_cache *cache, unsigned bin)
{
    const uint64_t bit = UINT64_C(1) << (bin % 64);
    if ((cache->bins_used[bin / 64] & bit) == 0) {
        return NULL;
    }
    struct hak_list *list = &cache->bins[bin];
    struct hak_slab *slab = HAK_LIST_ITEM(list->next, struct hak_slab, link);
    hak_list_remove(&slab->link);
    if (hak_list_is_empty(list)) {
        cache->bins_used[bin / 64] &= ~bit;
    }
    hak_count(&cache->large_bytes, (size_t)0 - slab->bytes);
    return slab;
}

static void bin_put_locked(struct hak_cache *cache, unsigned bin, struct hak_slab *slab)
{
    const uint64_t bit = UINT64_C(1) << (bin % 64);
    struct hak_list *list = &cache->bins[bin];
    if ((cache->bins_used[bin / 64] & bit) == 0) {
        cache->bins_used[bin / 64] |= bit;
        hak_list_start(list);
    }
    hak_list_push(list, &slab->link);
    hak_count(&cache->large_bytes, slab->bytes);
}

static struct hak_slab *large_make(size_t block_bytes, size_t alignment)
{
    if (block_bytes > HAK_LARGE_RUN_MAX || alignment > HAK_SUPER_BYTES) {
        return hak_arena_map(block_bytes, alignment);
    }
    const unsigned align_units = alignment > HAK_UNIT_BYTES ? units_for(alignment) : 1;
    struct hak_slab *slab = hak_arena_take(units_for(block_bytes), align_units);
    if (slab != NULL) {
        slab->bytes = block_bytes;
    }
    return slab;
}

static void large_give(struct hak_slab *slab)
{
    hak_map_set_one(slab->base, HAK_MAP_NOTHING);
    if (slab->units == 0) {
        hak_arena_unmap(slab);
    } else {
        hak_arena_give(slab);
    }
}

// What the map says of a block in use.
static uint32_t large_entry(const struct hak_slab *slab)
{
    const unsigned bin = hak_large_bin_of(slab->bytes);
    // A heap's block leaves its heap's list when it is freed, which is no short way.
    const bool is_plain = bin < HAK_LARGE_BINS && hak_load_relaxed(&slab->owner) == NULL;
    return HAK_MAP_LARGE(is_plain ? bin : HAK_LARGE_BINS);
}

void *hak_large_alloc(struct hak_cache *cache, size_t bytes, size_t alignment, bool *zeroed)
{
    const unsigned bin = large_bin(bytes);
    struct hak_slab *slab = NULL;
    if (bin < HAK_LARGE_BINS && alignment <= HAK_UNIT_BYTES) {
        hak_lock_take(&cache->lock);
        slab = bin_take_locked(cache, bin);
        hak_lock_drop(&cache->lock);
    }
    if (slab == NULL) {
        slab = large_make(large_block_bytes(bytes), alignment);
        if (slab == NULL) {
            return NULL;
        }
        *zeroed = slab->zeroed;
        slab->zeroed = false;
        hak_store_relaxed(&slab->owner, NULL);
        slab->state = HAK_SLAB_LARGE;
    }
    hak_map_set_one(slab->base, large_entry(slab));
    return slab->base;
}

// Remove a block from its bin and give it back.
static void bin_evict_locked(struct hak_cache *cache, unsigned bin, struct hak_slab *slab)
{
    hak_list_remove(&slab->link);
    if (hak_list_is_empty(&cache->bins[bin])) {
        cache->bins_used[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
    }
    hak_count(&cache->large_bytes, (size_t)0 - slab->bytes);
    large_give(slab);
}

// Largest first: they are the fewest, and hold the most.
static void bins_shrink_locked(struct hak_cache *cache, size_t target)
{
    for (unsigned bin = HAK_LARGE_BINS; bin-- > 0;) {
        while ((cache->bins_used[bin / 64] >> (bin % 64) & 1) != 0) {
            if (hak_load_relaxed(&cache->large_bytes) <= target) {
                return;
            }
            bin_evict_locked(cache, bin, HAK_LIST_ITEM(cache->bins[bin].prev, struct hak_slab, link));
        }
    }
}

static void hot_expire_locked(struct hak_cache *cache, uint64_t age)
{
    const uint32_t now = (uint32_t)hak_load_relaxed(&hak_arena.tick);
    for (unsigned bin = 0; bin < HAK_HOT_BINS; bin++) {
        if ((uintptr_t)hak_load_relaxed(&cache->hot[bin]) <= (uintptr_t)HAK_FULL ||
            now - hak_load_relaxed(&cache->hot_tick[bin]) < age) {
            continue;
        }
        void *block = hak_swap_acquire(&cache->hot[bin], NULL); // pairs with: hak_large_keep
        if (block != NULL) {
            large_give(hak_slab_of(block));
        }
    }
}

void hak_large_expire(struct hak_cache *cache, uint64_t age)
{
    const uint64_t now = hak_load_relaxed(&hak_arena.tick);
    hot_expire_locked(cache, age);
    for (unsigned bin = 0; bin < HAK_LARGE_BINS; bin++) {
        while ((cache->bins_used[bin / 64] >> (bin % 64) & 1) != 0) {
            struct hak_slab *oldest = HAK_LIST_ITEM(cache->bins[bin].prev, struct hak_slab, link);
            if (now - oldest->kept_tick < age) {
                break;
            }
            bin_evict_locked(cache, bin, oldest);
        }
    }
}

void hak_large_belongs(void *block, struct hak_cache *heap)
{
    struct hak_slab *slab = hak_slab_of(block);
    hak_lock_take(&heap->lock);
    hak_store_relaxed(&slab->owner, heap);
    hak_list_push(&heap->larges, &slab->link);
    hak_map_set_one(block, large_entry(slab));
    hak_lock_drop(&heap->lock);
}

static void large_leave_heap(struct hak_slab *slab)
{
    struct hak_cache *heap = hak_load_relaxed(&slab->owner);
    hak_lock_take(&heap->lock);
    hak_list_remove(&slab->link);
    hak_store_relaxed(&slab->owner, NULL);
    hak_lock_drop(&heap->lock);
}

void hak_large_end_all(struct hak_cache *heap)
{
    while (!hak_list_is_empty(&heap->larges)) {
        struct hak_slab *slab = HAK_LIST_ITEM(heap->larges.next, struct hak_slab, link);
        hak_list_remove(&slab->link);
        hak_store_relaxed(&slab->owner, NULL);
        large_give(slab);
    }
}

// The run of `block`, or the end: `entry` names no owner.
static struct hak_slab *large_of(void *block, uint32_t entry)
{
    struct hak_slab *slab = hak_slab_of(block);
    if (slab == NULL) {
        hak_die_wild_free(block);
    }
    if (slab->base != block) {
        hak_die_interior(block, (size_t)((char *)block - slab->base), slab->bytes);
    }
    if (!hak_map_is_large(entry)) {
        hak_die_double_free(block, slab->bytes);
    }
    return slab;
}

// Into the bin of its size, unless it exceeds what may be kept. With the lock.
static void large_shelve_locked(struct hak_cache *cache, struct hak_slab *slab)
{
    const size_t keep = cache->is_direct ? 0 : hak_options.large_keep_bytes;
    const unsigned bin = hak_large_bin_of(slab->bytes);
    if (bin >= HAK_LARGE_BINS || slab->bytes > keep) {
        large_give(slab);
        return;
    }
    slab->kept_tick = hak_load_relaxed(&hak_arena.tick);
    bin_put_locked(cache, bin, slab);
    if (hak_load_relaxed(&cache->large_bytes) > keep) {
        bins_shrink_locked(cache, keep / 2);
    }
}

void hak_large_free(struct hak_cache *cache, void *block, uint32_t entry)
{
    struct hak_slab *slab = large_of(block, entry);
    if (hak_load_relaxed(&slab->owner) != NULL) {
        large_leave_heap(slab);
    }
    hak_map_set_one(block, HAK_MAP_KEPT);
    hak_lock_take(&cache->lock);
    large_shelve_locked(cache, slab);
    const size_t kept = hak_load_relaxed(&cache->large_bytes);
    hak_lock_drop(&cache->lock);
    hak_sweep_wanted(kept);
}

void *hak_large_resize(struct hak_slab *slab, size_t bytes)
{
    if (bytes <= HAK_SMALL_MAX) {
        return NULL;
    }
    const size_t block_bytes = large_block_bytes(bytes);
    if (block_bytes == slab->bytes) {
        return slab->base;
    }
    if (slab->units == 0) {
        if (block_bytes <= HAK_LARGE_RUN_MAX || !hak_arena_remap(slab, block_bytes)) {
            return NULL;
        }
        hak_map_set_one(slab->base, large_entry(slab));
        return slab->base;
    }
    if (block_bytes > HAK_LARGE_RUN_MAX || !hak_arena_resize(slab, units_for(block_bytes))) {
        return NULL;
    }
    slab->bytes = block_bytes;
    hak_map_set_one(slab->base, large_entry(slab));
    return slab->base;
}
