// Large blocks: kept for reuse, expired, resized, and misuse of them.
#include "../census.h"
#include "cache/bigcache.h"
#include "cache/large.h"
#include "cache/sweep.h"
#include "cache/sweeper.h"
#include "rules/site.h"
#include "slab/purge.h"

static void *make(size_t bytes)
{
    bool zeroed;
    void *block = hak_large_alloc(bytes, 1, 0, &zeroed);
    UNIT_CHECK(block != NULL && hak_map_is_large(hak_map_entry(block)));
    UNIT_CHECK(hak_run_of(block)->bytes >= bytes);
    return block;
}

static size_t used_bytes(void)
{
    return hak_arena.super_bytes - hak_arena.free_bytes + hak_arena.mapping_bytes;
}

static void freed_blocks_are_kept_and_reused(void)
{
    for (unsigned bin = 0; bin < HAK_LARGE_BINS; bin++) {
        const size_t bytes = hak_size_class_bin_bytes(bin);
        void *block = make(bytes);
        UNIT_CHECK(hak_large_keep(hak_cache_self, block));
        UNIT_CHECK(!hak_map_is_large(hak_map_entry(block)));
        UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, hak_size_class_bin(bytes / 2)) != block);
        UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, hak_size_class_bin(bytes)) == block);
        UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, hak_size_class_bin(bytes)) == NULL);
        UNIT_EQUAL(hak_map_entry(block), HAK_MAP_LARGE(bin));
        give(block);
        hak_bigcache_expire(hak_cache_self, 0);
        UNIT_EQUAL(used_bytes(), 0);
        UNIT_CHECK(hak_run_of(block) == NULL);
    }
}

// One block of each doubling is kept: the latest.
static void the_later_block_takes_the_place(void)
{
    void *first = make(HAK_KIB(40));
    void *second = make(HAK_KIB(48));
    void *other = make(HAK_KIB(100));
    give(first);
    give(other);
    UNIT_EQUAL(used_bytes(), 4 * HAK_UNIT_BYTES);
    give(second);
    UNIT_EQUAL(used_bytes(), 3 * HAK_UNIT_BYTES);
    UNIT_CHECK(hak_run_of(first) == NULL);
    UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, hak_size_class_bin(HAK_KIB(40))) == NULL);
    UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, hak_size_class_bin(HAK_KIB(48))) == second);
    UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, hak_size_class_bin(HAK_KIB(100))) == other);
    give(second);
    give(other);
    hak_bigcache_expire(hak_cache_self, 0);
    UNIT_EQUAL(used_bytes(), 0);
}

// Calls that need zeros do not use BigCache, so their blocks are not kept either.
static void what_needs_zeros_is_not_kept(void)
{
    const struct hak_request request = {HAK_KIB(100), 1, NULL};
    const unsigned bin = hak_size_class_bin(request.bytes);
    bool zeroed;
    give(hak_large_serve(hak_cache_self, request, 1, &zeroed));
    UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, bin) == NULL);
    UNIT_EQUAL(used_bytes(), 0);
    give(hak_large_alloc(request.bytes, 1, HAK_WAY_ZERO, &zeroed));
    UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, bin) == NULL);
    void *block = hak_large_serve(hak_cache_self, request, 1, NULL);
    give(block);
    UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, bin) == block);
    give(block);
    hak_bigcache_expire(hak_cache_self, 0);
    UNIT_EQUAL(used_bytes(), 0);
}

// In memory that no other thread writes to: the cache of the thread that asks.
static void each_cache_counts_what_it_asks_for(void)
{
    struct hak_cache *first = hak_cache_self;
    struct hak_cache *second = new_thread();
    const unsigned bin = hak_size_class_bin(HAK_KIB(100));
    const uint64_t before = first->large_counts[bin];
    void *block = hak_large_serve(second, (struct hak_request){HAK_KIB(100), 1, NULL}, 1, NULL);
    void *larger = hak_large_serve(second, (struct hak_request){HAK_MIB(5), 1, NULL}, 1, NULL);
    UNIT_EQUAL(second->large_counts[bin], 1);
    UNIT_EQUAL(second->large_counts[HAK_LARGE_BINS], 1);
    UNIT_EQUAL(first->large_counts[bin], before);
    give(block);
    give(larger);
    hak_bigcache_expire(second, 0);
    UNIT_EQUAL(used_bytes(), 0);
    become(first);
}

static void kept_blocks_expire_by_age(void)
{
    hak_arena.tick = 1000;
    give(make(HAK_KIB(40)));
    hak_arena.tick = 1003;
    give(make(HAK_KIB(80)));
    hak_arena.tick = 1005;
    UNIT_CHECK(hak_bigcache_expire(hak_cache_self, 6) >= HAK_KIB(96));
    UNIT_EQUAL(used_bytes(), 3 * HAK_UNIT_BYTES);
    UNIT_EQUAL(hak_bigcache_expire(hak_cache_self, 5), HAK_KIB(64)); // at least; still waits
    UNIT_EQUAL(used_bytes(), 2 * HAK_UNIT_BYTES);
    UNIT_EQUAL(hak_bigcache_expire(hak_cache_self, 2), 0);
    UNIT_EQUAL(used_bytes(), 0);
    // The tick is kept in 32 bits.
    hak_arena.tick = UINT32_MAX;
    give(make(HAK_KIB(40)));
    hak_arena.tick = UINT64_C(1) << 32;
    UNIT_CHECK(hak_bigcache_expire(hak_cache_self, 2) > 0);
    hak_arena.tick = (UINT64_C(1) << 32) + 1;
    UNIT_EQUAL(hak_bigcache_expire(hak_cache_self, 2), 0);
    hak_arena.tick = 0;
}

// Keeping a megabyte wakes the sweeper, which gives it back.
static void megabytes_are_kept_with_a_sweeper(void)
{
    census_have_sweeper();
    for (unsigned i = 0; i < 2; i++) {
        hak_bigcache_expire(hak_cache_self, 0);
        void *block = make(HAK_MIB(2));
        UNIT_CHECK(hak_large_keep(hak_cache_self, block));
        UNIT_CHECK(hak_sweep_runs != 0);
    }
    // Run by hand, the sweeper gives back the block, then the pages, and ends.
    hak_sweeper_work();
    UNIT_EQUAL(used_bytes(), 0);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    UNIT_EQUAL(hak_sweep_runs, 0);
}

static void resizing_keeps_the_map_right(void)
{
    void *block = make(HAK_KIB(100));
    struct hak_run *slab = hak_run_of(block);
    UNIT_CHECK(hak_large_resize(slab, HAK_KIB(150)) == block);
    UNIT_EQUAL(hak_map_entry(block), HAK_MAP_LARGE(hak_size_class_bin(HAK_KIB(150))));
    UNIT_CHECK(slab->bytes >= HAK_KIB(150) && slab->units == 3);
    UNIT_CHECK(hak_large_resize(slab, HAK_KIB(33)) == block);
    UNIT_EQUAL(hak_map_entry(block), HAK_MAP_LARGE(0));
    UNIT_EQUAL(used_bytes(), HAK_UNIT_BYTES);
    UNIT_CHECK(hak_large_resize(slab, HAK_SMALL_MAX) == NULL);
    UNIT_CHECK(hak_large_resize(slab, HAK_LARGE_RUN_GROWN + 1) == NULL);
    UNIT_EQUAL(slab->bytes, HAK_KIB(36));
    give(block);
    hak_bigcache_expire(hak_cache_self, 0);
    UNIT_EQUAL(used_bytes(), 0);
}

// Whatever is known of the heap by then, as the rule has asked for it.
static void what_a_rule_makes_huge_stays_so_as_it_grows(void)
{
    const size_t part_bytes = hak_arena.part_bytes;
    const size_t refusals = hak_fake.huge_refusals;
    bool zeroed;
    hak_arena.grants_huge = true;
    hak_arena.part_bytes = HAK_MIB(64);
    hak_options.huge_start_bytes = HAK_MIB(8);
    hak_fake.resident_bytes = 0; // the block is empty
    void *block = hak_large_alloc(HAK_MIB(20), 1, HAK_WAY_HUGE, &zeroed);
    void *other = hak_large_alloc(HAK_MIB(20), 1, HAK_WAY_UNMAP, &zeroed);
    block = hak_large_resize(hak_run_of(block), HAK_MIB(44));
    UNIT_CHECK(block != NULL);
    UNIT_EQUAL(hak_fake.huge_refusals, refusals);
    other = hak_large_resize(hak_run_of(other), HAK_MIB(44));
    UNIT_CHECK(other != NULL);
    UNIT_EQUAL(hak_fake.huge_refusals, refusals + 1); // the second block was only judged dense
    give(block);
    give(other);
    hak_options.huge_start_bytes = SIZE_MAX;
    hak_arena.part_bytes = part_bytes;
    hak_arena.grants_huge = false;
}

static void misuse_dies(void)
{
    char *block = make(HAK_KIB(200));
    give(block);
    UNIT_DIES(give(block), "double free: ");
    UNIT_DIES(give(block + 65536), "points 65536 bytes into a block of");
    hak_bigcache_expire(hak_cache_self, 0);
    UNIT_DIES(give(block), "(block of 212992 bytes) is already free");
    UNIT_DIES(give(block + 65536), "was not allocated by hakmem");
    char *mapping = make(HAK_LARGE_RUN_MAX + 1);
    UNIT_DIES(give(mapping + 16), "points 16 bytes into a block of");
    give(mapping);
    UNIT_DIES(give(mapping), "was not allocated by hakmem");
}

// Two threads that free a block at the same moment may both find it in use.
static void one_block_kept_twice_dies(void)
{
    struct hak_cache *cache = hak_cache_self;
    struct hak_cache *other = new_thread();
    void *block = make(HAK_KIB(200));
    const uint32_t entry = hak_map_entry(block);
    UNIT_CHECK(hak_large_keep(cache, block));
    hak_map_set_one(block, entry);
    UNIT_CHECK(hak_large_keep(other, block));
    UNIT_CHECK(hak_bigcache_reuse(other, hak_size_class_bin(HAK_KIB(200))) == block);
    UNIT_DIES(hak_bigcache_expire(cache, 0), "is already free, and its memory is in use again");
    give(block);
    hak_bigcache_expire(other, 0);
    hak_bigcache_put(hak_bigcache_place(cache, 0), block, 0, hak_map_place(block));
    UNIT_DIES(hak_bigcache_expire(cache, 0), "is already free");
    block = make(HAK_MIB(8));
    const uint32_t large = hak_map_entry(block);
    hak_map_set_one(block, HAK_MAP_NOTHING);
    UNIT_DIES(hak_large_free(cache, block, large), "double free: ");
}

int main(void)
{
    new_thread();
    hak_options.purge_start_bytes = HAK_MIB(1);
    hak_options.huge_start_bytes = SIZE_MAX;
    hak_options.purger = 0;
    freed_blocks_are_kept_and_reused();
    the_later_block_takes_the_place();
    what_needs_zeros_is_not_kept();
    each_cache_counts_what_it_asks_for();
    kept_blocks_expire_by_age();
    hak_sweep_everything();
    hak_options.purger = 1;
    megabytes_are_kept_with_a_sweeper();
    resizing_keeps_the_map_right();
    what_a_rule_makes_huge_stays_so_as_it_grows();
    misuse_dies();
    one_block_kept_twice_dies();
    return 0;
}
