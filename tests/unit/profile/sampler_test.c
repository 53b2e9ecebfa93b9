// soak in: tsan
// Sampling: its estimates are unbiased, whatever the sizes and however blocks come and go; and the sample of a freed block
// is forgotten.
#include "profile/sampler.h"

#include "../census.h"
#include "base/check.h"
#include "base/options.h"
#include "cache/bigcache.h"
#include "cache/heap.h"
#include "cache/hooks.h"
#include "cache/large.h"
#include "cache/refill.h"
#include "cache/remote.h"
#include "hakmem/hakmem.h"
#include "meta/table.h"
#include "profile/sample.h"

enum { EVERY = 4096, HELD_MOST = 3000 };

static void *held[HELD_MOST];
static unsigned held_count;

static void sample_from_now_on(size_t every)
{
    hak_store_relaxed(&hak_options.sample_bytes, every);
    hak_sampler_kick();
}

static void take(unsigned size_class)
{
    UNIT_CHECK(held_count < HELD_MOST);
    held[held_count] = alloc(size_class);
    UNIT_CHECK(held[held_count] != NULL);
    held_count++;
}

static void give_one(unsigned index)
{
    give(held[index]);
    held[index] = held[--held_count];
    held[held_count] = NULL;
}

static void give_all(void)
{
    while (held_count > 0) {
        give_one(held_count - 1);
    }
}

static uint64_t allocated_blocks_256(void)
{
    struct hak_sample_tables *tables = hak_table_find(&hak_samples.tables);
    uint64_t sum = hak_samples.other.allocated.blocks_256;
    for (unsigned i = 0; tables != NULL && i < HAK_SAMPLE_STACK_BUCKETS; i++) {
        for (const struct hak_sample_stack *stack = tables->stack_buckets[i].first; stack != NULL;
             stack = stack->next) {
            sum += stack->allocated.blocks_256;
        }
    }
    return sum;
}

// The mean of a geometric distribution is one over the chance, its deviation less than that.
static void gaps_are_as_long_as_they_should_be(void)
{
    static const size_t sizes[] = {16, 48, 1024, EVERY - 16, EVERY, 2 * EVERY};
    enum { DRAWS = 200000 };
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double sum = 0;
        hak_sampler_seed(i);
        for (unsigned draw = 0; draw < DRAWS; draw++) {
            sum += (double)hak_sampler_gap(sizes[i], EVERY);
        }
        const double wanted = sizes[i] < EVERY ? (double)EVERY / (double)sizes[i] : 1;
        const double ratio = sum / (double)DRAWS / wanted;
        UNIT_CHECK(ratio > 0.99 && ratio < 1.01); // four deviations: 4 / sqrt(DRAWS)
    }
}

static void draws_are_as_frequent_as_they_should_be(void)
{
    enum { DRAWS = 200000 };
    unsigned samples = 0;
    hak_sampler_seed(7);
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        samples += hak_sampler_draw(1024, EVERY);
    }
    UNIT_CHECK(samples > DRAWS / 4 - 1000 && samples < DRAWS / 4 + 1000); // of 194
    UNIT_CHECK(hak_sampler_draw(EVERY, EVERY) && !hak_sampler_draw(EVERY, 0));
}

// A thread that allocates and frees in turn, `depth` blocks at a time.
static void go_up_and_down(unsigned size_class, unsigned depth, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        while (held_count < depth) {
            take(size_class);
        }
        give_all();
    }
}

// However a program uses its magazines, the expected estimate is what it has allocated: the mean of many
// runs is as near to it as the deviation allows.
static void estimates_are_unbiased(void)
{
    static const struct {
        unsigned size_class, depth, rounds;
    } programs[] = {{0, 1, 4000}, {0, 100, 40}, {7, 3, 1000}, {20, 700, 4}, {40, 1, 100}};
    enum { RUNS = 300 };
    new_thread();
    sample_from_now_on(EVERY);
    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        const double blocks = programs[i].depth * programs[i].rounds;
        const double times =
            (double)EVERY /
            (double)hak_classes[programs[i].size_class].bytes; // what a sample stands for
        const uint64_t before = allocated_blocks_256();
        hak_sampler_seed(i + 1);
        for (unsigned run = 0; run < RUNS; run++) {
            go_up_and_down(programs[i].size_class, programs[i].depth, programs[i].rounds);
        }
        const double mean = (double)(allocated_blocks_256() - before) / 256 / (double)RUNS;
        const double variance = blocks * times / (double)RUNS; // of the mean, at most
        UNIT_CHECK((mean - blocks) * (mean - blocks) < 16 * variance);
        census_check(held, held_count);
    }
    UNIT_EQUAL(hak_samples.sample_count, 0);
    UNIT_EQUAL(hak_samples.live.bytes, 0);
}

// Blocks of many sizes with skewed lifetimes: the live bytes are estimated, too.
static void what_lives_is_estimated(void)
{
    double off = 0;
    enum { RUNS = 200 };
    for (unsigned run = 0; run < RUNS; run++) {
        size_t live = 0;
        hak_sampler_seed(1000 + run);
        for (unsigned i = 0; i < 2500; i++) {
            const unsigned size_class = i * i % 37;
            take(size_class);
            if (i % 3 == 0) {
                give_one((i * 7919) % held_count);
            }
        }
        for (unsigned i = 0; i < held_count; i++) {
            live += hak_classes[HAK_MAP_CLASS(hak_map_entry(held[i]))].bytes;
        }
        off += (double)hak_samples.live.bytes / (double)live - 1;
        UNIT_CHECK(hak_samples.peak.bytes >= hak_samples.live.bytes);
        census_check(held, held_count);
        give_all();
        UNIT_EQUAL(hak_samples.live.bytes, 0);
    }
    UNIT_CHECK(off / (double)RUNS > -0.02 && off / (double)RUNS < 0.02);
}

static void marks_go_with_the_last_sample(void)
{
    sample_from_now_on(1); // everything
    hak_sampler_follow(hak_cache_self);
    take(5);
    take(5);
    struct hak_run *slab = hak_run_of(held[0]);
    UNIT_CHECK(slab->sampled_blocks > 0 && hak_map_is_sampled(hak_map_entry(held[0])));
    const unsigned both = slab->sampled_blocks;
    give_one(0);
    UNIT_EQUAL(slab->sampled_blocks, both - 1);
    give_all();
    UNIT_CHECK(!hak_map_is_sampled(hak_map_entry(slab->base)));
}

static void blocks_freed_by_others_are_forgotten(void)
{
    struct hak_cache *first = hak_cache_self;
    for (unsigned i = 0; i < 200; i++) {
        take(3);
    }
    UNIT_CHECK(hak_samples.sample_count == 200);
    new_thread();
    give_all();
    UNIT_EQUAL(hak_samples.sample_count, 0);
    become(first);
}

static void a_heaps_samples_end_with_it(void)
{
    struct hak_cache *heap = hak_heap_make();
    for (unsigned i = 0; i < 100; i++) {
        UNIT_CHECK(hak_heap_take(heap, 9, (struct hak_request){100, 1, NULL}) != NULL);
    }
    UNIT_EQUAL(hak_samples.sample_count, 100);
    const uint64_t before = hak_looks;
    hak_heap_end(heap);
    UNIT_EQUAL(hak_samples.sample_count, 0);
    UNIT_CHECK(hak_looks - before <= hak_classes[9].blocks); // fewer than any slab may have
}

// As a tool switches sampling on from outside: it sets the tag, in a thread that takes only fast paths.
static void a_busy_thread_takes_notice(void)
{
    sample_from_now_on(0);
    go_up_and_down(0, 1, 1000);
    take(0); // with the next call at the latest
    give_all();
    UNIT_EQUAL(hak_sampler_every(hak_cache_self), 0);
    UNIT_EQUAL(hak_cache_self->hit_tag, hak_cache_self->owner.tag);
    const uint64_t before = hak_cache_self->owner.events;
    go_up_and_down(0, 1, 1000);
    UNIT_EQUAL(hak_cache_self->owner.events, before);
    hak_store_relaxed(&hak_options.sample_bytes, EVERY);
    hak_cache_self->hit_tag = hak_cache_self->owner.tag - HAK_APART;
    go_up_and_down(0, 1, 1);
    UNIT_EQUAL(hak_sampler_every(hak_cache_self), EVERY);
    // A tool that sets only the tag changes nothing.
    sample_from_now_on(0);
    go_up_and_down(0, 1, 1000);
    hak_cache_self->hit_tag = hak_cache_self->owner.tag - HAK_APART;
    go_up_and_down(0, 1, 1);
    UNIT_EQUAL(hak_sampler_every(hak_cache_self), 0);
    UNIT_EQUAL(hak_cache_self->hit_tag, hak_cache_self->owner.tag);
    census_check(held, held_count);
}

// The sweeper may mark the cache asleep after the owner has read that mark, and before it reads the options.
static void who_falls_asleep_stays_so_until_it_is_woken(void)
{
    struct hak_cache *cache = hak_cache_self;
    for (unsigned every = 0; every <= EVERY; every += EVERY) {
        take(0);
        hak_lock_take(&cache->owner.lock);
        hak_store_relaxed(&cache->is_asleep, true);
        hak_store_relaxed(&cache->hit_tag, HAK_TAG_ASLEEP);
        hak_lock_drop(&cache->owner.lock);
        hak_store_relaxed(&hak_options.sample_bytes, every);
        hak_sampler_follow(cache);
        UNIT_EQUAL(cache->hit_tag, HAK_TAG_ASLEEP);
        give_all();
        UNIT_CHECK(!cache->is_asleep);
        UNIT_EQUAL(hak_sampler_every(cache), every);
        UNIT_EQUAL(cache->hit_tag, cache->owner.tag - (every != 0 ? HAK_APART : 0));
    }
    sample_from_now_on(0);
    take(0);
    give_all();
}

// A loop that cannot be sampled as densely as requested: its samples become fewer, each stands for more, and
// the sum stays what was allocated. When the thread is quiet again, they are as dense as before.
static void too_many_samples_stand_for_more(void)
{
    enum { ROUNDS = 20000, DEPTH = 50, SIZE_CLASS = 40, RUNS = 20 };
    double off = 0;
    const struct hak_sampling *sampling = hak_cache_self->sampling;
    hak_store_relaxed(&hak_options.sample_rate, 1000);
    for (unsigned run = 0; run < RUNS; run++) {
        hak_sampler_seed(2000 + run);
        sample_from_now_on(0);
        go_up_and_down(0, 1, 1000);
        sample_from_now_on(EVERY);
        take(0);
        give_all();
        UNIT_EQUAL(sampling->every, EVERY);
        const uint64_t before = allocated_blocks_256();
        const uint64_t taken = hak_samples.taken;
        for (unsigned round = 0; round < ROUNDS; round++) {
            go_up_and_down(SIZE_CLASS, DEPTH, 1);
            hak_add_relaxed(&hak_fake.now_ns, 10000); // all rounds: 200 ms
        }
        const double blocks = (double)(ROUNDS * DEPTH);
        off += (double)(allocated_blocks_256() - before) / 256 / blocks - 1;
        UNIT_CHECK(hak_samples.taken - taken < 1000); // 200, and some to learn the rate
        UNIT_CHECK(sampling->every > EVERY && sampling->wanted == EVERY);
        census_check(held, held_count);
    }
    UNIT_CHECK(off / (double)RUNS > -0.05 && off / (double)RUNS < 0.05);
    for (unsigned i = 0; i < 2000; i++) {
        hak_add_relaxed(&hak_fake.now_ns, 1000000000);
        go_up_and_down(SIZE_CLASS, 700, 1);
        if (sampling->every == EVERY) {
            break;
        }
    }
    UNIT_EQUAL(sampling->every, EVERY);
    hak_store_relaxed(&hak_options.sample_rate, 0);
}

// Each block counts, whatever samples are drawn meanwhile; but none while the cache does not sample.
static void what_is_handed_out_is_counted(void)
{
    enum { SIZE_CLASS = 20 };
    new_thread();
    const struct hak_cache *cache = hak_cache_self;
    const _Atomic(uint64_t) *misses = &cache->magazines[SIZE_CLASS].counts.misses;
    sample_from_now_on(EVERY);
    hak_sampler_follow(hak_cache_self);
    UNIT_EQUAL(hak_sampler_counted(cache, SIZE_CLASS), 0);
    go_up_and_down(SIZE_CLASS, 1, 5000);
    go_up_and_down(SIZE_CLASS, 700, 3);
    UNIT_EQUAL(hak_sampler_counted(cache, SIZE_CLASS), 7100);
    UNIT_CHECK(hak_load_relaxed(misses) > 0 && hak_load_relaxed(misses) < 7100);
    sample_from_now_on(0);
    hak_sampler_follow(hak_cache_self);
    const uint64_t missed = hak_load_relaxed(misses);
    go_up_and_down(SIZE_CLASS, 1, 100);
    UNIT_EQUAL(hak_sampler_counted(cache, SIZE_CLASS), 7100);
    sample_from_now_on((size_t)1 << 40);
    hak_sampler_follow(hak_cache_self);
    go_up_and_down(SIZE_CLASS, 1, 10);
    UNIT_EQUAL(hak_sampler_counted(cache, SIZE_CLASS), 7110);
    UNIT_EQUAL(hak_load_relaxed(misses), missed);
    sample_from_now_on(0);
    hak_sampler_follow(hak_cache_self);
}

// Whether a cache samples or not, the block freed last is used first.
static void blocks_stay_in_their_order(void)
{
    enum { SIZE_CLASS = 4, BLOCKS = 20 };
    void *freed[BLOCKS];
    new_thread();
    for (unsigned i = 0; i < BLOCKS; i++) {
        take(SIZE_CLASS);
        freed[i] = held[held_count - 1];
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        give(freed[i]);
    }
    held_count = 0;
    sample_from_now_on(HAK_MIB(1024));
    hak_sampler_follow(hak_cache_self);
    for (unsigned i = 0; i < BLOCKS; i++) {
        take(SIZE_CLASS);
        UNIT_CHECK(held[held_count - 1] == freed[BLOCKS - 1 - i]);
    }
    give_all();
    sample_from_now_on(0);
    hak_sampler_follow(hak_cache_self);
    for (unsigned i = 0; i < BLOCKS; i++) {
        take(SIZE_CLASS);
        UNIT_CHECK(held[held_count - 1] == freed[BLOCKS - 1 - i]);
    }
    census_check(held, held_count);
    give_all();
}

// A tool that switches sampling on sets the tag at any time, also just before blocks come back from other threads.
static void blocks_from_others_find_the_magazine(void)
{
    enum { SIZE_CLASS = 11, BLOCKS = 300 };
    new_thread();
    struct hak_cache *first = hak_cache_self;
    for (unsigned to_samples = 0; to_samples < 2; to_samples++) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            take(SIZE_CLASS);
        }
        new_thread();
        give_all();
        hak_lock_take(&hak_cache_self->owner.lock);
        hak_remote_post_all(hak_cache_self);
        hak_lock_drop(&hak_cache_self->owner.lock);
        become(first);
        sample_from_now_on(to_samples == 0 ? EVERY : 0);
        hak_lock_take(&first->owner.lock);
        hak_refill_by_parcels(first, SIZE_CLASS, BLOCKS);
        hak_lock_drop(&first->owner.lock);
        census_check(held, held_count);
        hak_sampler_follow(first);
        UNIT_EQUAL(hak_sampler_every(first), to_samples == 0 ? EVERY : 0);
        census_check(held, held_count);
    }
}

static void kept_large_blocks_are_sampled(void)
{
    enum { ROUNDS = 20000 };
    const size_t bytes = HAK_SMALL_MAX * 2;
    const unsigned bin = hak_size_class_bin(bytes);
    sample_from_now_on(HAK_MIB(4));
    hak_sampler_follow(hak_cache_self);
    const uint64_t before = allocated_blocks_256();
    unsigned reused = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        bool zeroed;
        void *block = hak_bigcache_reuse(hak_cache_self, bin);
        reused += block != NULL;
        if (block != NULL && (--hak_cache_self->large_gaps[bin] == 0)) {
            block = hak_hook_counted(hak_cache_self, block, bytes, NULL);
        } else if (block == NULL) {
            block = hak_large_alloc(bytes, 1, 0, &zeroed);
            hak_hook_large(block, (struct hak_request){bytes, 1, NULL});
        }
        give(block);
    }
    const double off = (double)(allocated_blocks_256() - before) / 256 / (double)ROUNDS - 1;
    const double deviation = 8.0 / 141; // 64 blocks to a sample: the root of 64 / ROUNDS
    UNIT_CHECK(off > -4 * deviation && off < 4 * deviation);
    UNIT_CHECK(reused > ROUNDS * 9 / 10);
    UNIT_EQUAL(hak_samples.sample_count, 0);
    sample_from_now_on(0);
    hak_sampler_follow(hak_cache_self);
}

// All that a thread with only large blocks does: BigCache serves each, and gets it back.
static void use_kept(size_t bytes, unsigned rounds)
{
    const unsigned bin = hak_size_class_bin(bytes);
    for (unsigned i = 0; i < rounds; i++) {
        void *block = hak_bigcache_reuse(hak_cache_self, bin);
        UNIT_CHECK(block != NULL);
        if (--hak_cache_self->large_gaps[bin] == 0) {
            block = hak_hook_counted(hak_cache_self, block, bytes, NULL);
        }
        give(block);
        if (hak_load_relaxed(&hak_cache_self->hot[bin / 8].block) == NULL) { // it was a sample
            bool zeroed;
            give(hak_large_alloc(bytes, 1, 0, &zeroed));
        }
    }
}

static void a_thread_with_large_blocks_takes_notice(void)
{
    enum { ROUNDS = 1000 };
    const size_t bytes = HAK_SMALL_MAX * 2;
    bool zeroed;
    new_thread();
    give(hak_large_alloc(bytes, 1, 0, &zeroed));
    use_kept(bytes, ROUNDS);
    const uint64_t before = hak_samples.taken;
    sample_from_now_on(HAK_MIB(1));
    use_kept(bytes, ROUNDS);
    UNIT_CHECK(hak_samples.taken > before + 20); // of 62
    UNIT_EQUAL(hak_cache_self->frees_apart, 0);
    sample_from_now_on(0);
    use_kept(bytes, 1);
    UNIT_EQUAL(hak_sampler_every(hak_cache_self), 0);
    UNIT_EQUAL(hak_cache_self->frees_apart, 0);
}

// A tool that was killed cannot switch sampling off: the first sample after its lease does.
static void sampling_ends_with_its_lease(void)
{
    sample_from_now_on(EVERY);
    hak_store_relaxed(&hak_samples.lease_ns, hak_os_now_ns() + 1000);
    while (hak_samples.sample_count == 0) {
        take(8);
    }
    UNIT_CHECK(hak_load_relaxed(&hak_options.sample_bytes) == EVERY);
    UNIT_CHECK(!hak_profile_start(SIZE_MAX)); // a refused call leaves the tool's lease
    give_all();
    hak_add_relaxed(&hak_fake.now_ns, 2000);
    const uint64_t before = hak_samples.taken;
    for (unsigned i = 0; i < HELD_MOST; i++) {
        take(8);
    }
    UNIT_CHECK(hak_load_relaxed(&hak_options.sample_bytes) == 0);
    UNIT_CHECK(hak_samples.taken - before <= 2);
    UNIT_CHECK(hak_load_relaxed(&hak_samples.lease_ns) == 0);
    give_all();
}

int main(void)
{
    hak_store_relaxed(&hak_options.sample_rate, 0); // the clock stands still: any rate is too high
    gaps_are_as_long_as_they_should_be();
    draws_are_as_frequent_as_they_should_be();
    estimates_are_unbiased();
    what_lives_is_estimated();
    marks_go_with_the_last_sample();
    blocks_freed_by_others_are_forgotten();
    a_heaps_samples_end_with_it();
    a_busy_thread_takes_notice();
    who_falls_asleep_stays_so_until_it_is_woken();
    sample_from_now_on(EVERY);
    take(0);
    give_all();
    too_many_samples_stand_for_more();
    what_is_handed_out_is_counted();
    blocks_stay_in_their_order();
    blocks_from_others_find_the_magazine();
    kept_large_blocks_are_sampled();
    a_thread_with_large_blocks_takes_notice();
    sampling_ends_with_its_lease();
    return 0;
}
