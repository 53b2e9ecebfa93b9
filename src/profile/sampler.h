// sampler.h -- which allocations are sampled, and how that costs the fast paths nothing.
//
// Owns      the sampling state of each cache that samples.
// Threads   see each function.
// Fails     without memory a cache goes on without sampling.
//
// Option sample_bytes says one in how many bytes is a sample: a block of b bytes (its class's) is one with
// the probability b / sample_bytes, independently of all others. So the number of blocks of a class until
// the next sample is drawn in advance, and counted down.
//
// malloc's fast path has no instruction for that. So while a cache samples, the tops of its magazines lie elsewhere:
// HAK_APART places further on, where the fast path does not look. It finds nothing, and the next step takes the
// block from there and counts it (hak_cache_pop_counted): ten instructions more, and every block still comes from
// the top of its magazine. free subtracts `hit_tag` from an entry to get the class. While the cache samples,
// `hit_tag` is less by HAK_APART, so free finds these tops on its usual path, as fast as ever.
//
// Blocks from BigCache are always counted, by one instruction that also tells whether a sample is due: that is
// nothing beside BigCache's exchange, while a second path as for magazines cost a third while sampling. All other
// paths to a block are slow, and call hak_sampler_draw: heaps, fresh large blocks, caches without magazines.
//
// A loop that does nothing but allocate would be sampled some hundred thousand times a second, which
// nobody needs. So when there are more samples than option sample_rate allows, the cache makes the distance
// between them longer, and shorter again when there are few. Each sample notes the distance with which it was
// drawn, which is its weight. A new distance depends on past samples only, so estimates stay unbiased.
//
// A cache reads the option in its next slow path. A thread may have none for a long time, so the code that
// switches sampling on or off also sets the caches' hit_tag (hak_sampler_kick, or a tool from outside): then
// the next free finds no magazine, and takes the slow path. The free of a large block is slow anyway, but ends in
// BigCache before it reads the option; so the caches' frees_apart is set, too.
#pragma once

#include "base/options.h"
#include "cache/cache.h"

struct hak_sampling {
    size_t wanted; // the option when the cache began to sample; 0: it does not sample
    size_t
        every; // one in so many bytes is a sample: `wanted`, or more while that would be too many
    uint64_t since_ns; // thread: when `every` was last judged
    uint32_t taken;    // thread: samples since
    uint32_t looks;    // thread: slow paths in which it could have been judged
};

enum { HAK_SAMPLER_LOOKS = 256 };
HAK_INTERNAL void hak_sampler_follow_slow(struct hak_cache *cache);

// One in how many bytes is a sample in this cache; 0: it does not sample. The thread, or with the lock.
HAK_INLINE size_t hak_sampler_every(const struct hak_cache *cache)
{
    return cache->sampling != NULL ? cache->sampling->every : 0;
}

// Begin or end sampling if the option says so. The thread, in a slow path, without the lock.
HAK_INLINE void hak_sampler_follow(struct hak_cache *cache)
{
    struct hak_sampling *sampling = cache->sampling;
    const size_t wanted = sampling != NULL ? sampling->wanted : 0;
    const bool is_as_wanted =
        hak_load_relaxed(&hak_options.sample_bytes) == wanted &&
        (hak_load_relaxed(&cache->hit_tag) == cache->owner.tag) == (wanted == 0);
    // Has a thread that took too many samples become quiet? Asked from time to time only, as it takes the clock.
    const bool is_paced =
        wanted != 0 && sampling->every != wanted && ++sampling->looks % HAK_SAMPLER_LOOKS == 0;
    if (HAK_UNLIKELY((!is_as_wanted || is_paced) && !cache->is_direct)) {
        hak_sampler_follow_slow(cache);
    }
}

// A block of the class was taken on another path. If it is a sample, draws the distance to the next one, and returns one in how
// many bytes is a sample; else 0. With the lock.
HAK_INTERNAL size_t hak_sampler_note_slow(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
HAK_INLINE size_t hak_sampler_note(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    const bool may_be =
        hak_sampler_every(cache) != 0 || hak_load_relaxed(&hak_options.sample_bytes) != 0;
    return HAK_UNLIKELY(may_be) ? hak_sampler_note_slow(cache, size_class) : 0;
}

// Blocks of the class that the cache has handed out while it sampled: the sum of the distances drawn so far, less what is
// left of the latest one. Any thread; at the moment of a draw the result may be wrong by that distance.
HAK_INLINE uint64_t hak_sampler_counted(const struct hak_cache *cache, unsigned size_class)
{
    const uint64_t drawn = hak_load_relaxed(&cache->magazines[size_class].counts.drawn);
    const uint64_t gap = hak_load_relaxed(&cache->gaps[size_class]);
    return drawn > gap ? drawn - gap : 0;
}

// Draw whether a block of so many bytes is a sample of one in `every`, on a path that counts nothing. Any thread.
HAK_INTERNAL bool hak_sampler_draw(size_t block_bytes, size_t every);
// Draw the number of blocks of so many bytes to the next sample, which is included. Any thread.
HAK_INTERNAL uint64_t hak_sampler_gap(size_t block_bytes, size_t every);
// Count a large block that was a sample, if the cache samples. The thread, without the lock.
HAK_INTERNAL void hak_sampler_count(struct hak_cache *cache);
// Draw the distance to the next sample of BigCache's bin. The thread of a cache that samples.
HAK_INTERNAL void hak_sampler_draw_large(struct hak_cache *cache, unsigned bin);

// Stop sampling until the first slow path of the cache's next thread, and make the counts independent of the gaps.
HAK_INTERNAL void hak_sampler_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// Make all threads' caches read, in their next free, sample_bytes and the budget for magazines, which may be smaller.
// Any thread, without locks.
HAK_INTERNAL void hak_sampler_kick(void);
// For tests: set the seed of the next draws.
HAK_INTERNAL void hak_sampler_seed(uint64_t seed);
