// bigcache.c -- see bigcache.h.
#include "cache/bigcache.h"

#include "cache/hooks.h"
#include "owner/watch.h"
#include "slab/mapping.h"
#include "slab/runs.h"
#include "slab/slab.h"

void hak_bigcache_give(struct hak_run *run)
{
    hak_map_set_one(run->base, HAK_MAP_NOTHING);
    if (HAK_UNLIKELY(hak_mapping_is_inset(run))) {
        hak_hook_inset_freed(run);
    }
    if (run->units == 0) {
        hak_mapping_end(run);
    } else {
        hak_runs_give(run);
    }
}

// Give back a kept block. Dies if it is none: when two threads free a block at the same moment, both keep
// it, and the second one ends the process here.
static void give_kept(void *block)
{
    struct hak_run *run = hak_run_of(block);
    if (HAK_UNLIKELY(run == NULL || run->base != block ||
                     (hak_map_entry(block) & HAK_MAP_KEPT) == 0)) {
        hak_slab_die_not_live(block);
    }
    hak_bigcache_give(run);
}

// Give back kept blocks that have waited for `age` ticks, from place number `place` on. Step expire of bigcache.pml.
static size_t expire_from(struct hak_cache *cache, unsigned place, uint64_t age)
{
    const uint32_t now = (uint32_t)hak_load_relaxed(&hak_arena.tick);
    size_t kept = 0;
    for (unsigned i = place; i < HAK_HOT_PLACES; i++) {
        if ((uintptr_t)hak_load_relaxed(&cache->hot[i].block) <= (uintptr_t)HAK_FULL) {
            continue;
        }
        if (now - hak_load_relaxed(&cache->hot[i].tick) < age) {
            kept += HAK_SMALL_MAX << i; // a lower bound
            continue;
        }
        void *block = hak_swap_acquire(&cache->hot[i].block, NULL); // pairs with: hak_bigcache_put
        if (block != NULL) {
            give_kept(block);
        }
    }
    return kept;
}

void hak_bigcache_make_room(struct hak_cache *cache, size_t bytes)
{
    const unsigned bin = hak_size_class_bin(bytes);
    if (bin < HAK_LARGE_BINS) {
        expire_from(cache, bin / 8, 0);
    }
}

size_t hak_bigcache_expire(struct hak_cache *cache, uint64_t age)
{
    return expire_from(cache, 0, age);
}

void hak_bigcache_keep_nothing(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    hak_bigcache_expire(cache, 0);
    for (unsigned i = 0; i < HAK_HOT_PLACES; i++) {
        cache->hot[i].bin = HAK_LARGE_NO_BIN;
        hak_store_relaxed(&cache->hot[i].block, HAK_FULL);
    }
}

// The block that was freed later is the likelier to be reused. Step keep_instead of bigcache.pml.
bool hak_bigcache_keep_instead(struct hak_cache *cache, void *block, size_t bytes)
{
    const unsigned bin = hak_size_class_bin(bytes);
    struct hak_hot *hot = hak_bigcache_place(cache, bin);
    void *other = hak_load_relaxed(&hot->block);
    if (other == HAK_FULL) {
        return false;
    }
    if (other != NULL) {
        other = hak_swap_acquire(&hot->block, NULL); // pairs with: hak_bigcache_put
    }
    hak_bigcache_put(hot, block, bin, hak_map_place(block));
    hak_fence_compiler(); // see unwatch_judge
    hak_watch_note(&cache->owner);
    if (other != NULL) {
        give_kept(other);
    }
    return true;
}
