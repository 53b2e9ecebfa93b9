// sampler.h -- which allocations are sampled, and how that costs the fast paths nothing.
//
// Layer     profile
// Owns      what each cache that samples has to know about it.
// Threads   see each function.
// Fails     without memory a cache goes on without sampling.
//
// Option sample_bytes says one in how many bytes is a sample: a block of b bytes (its class's) is one with
// the chance b / sample_bytes, each block for itself. So it is known in advance how many blocks of a
// class are handed out until the next sample, and somebody has to count them.
//
// malloc's fast path has no instruction for that. So while a cache samples, the tops of its magazines are elsewhere: HAK_APART
// places further on, where malloc does not look. It finds nothing, and then takes the block from
// there and counts (hak_cache_pop_counted): ten instructions more, and every block comes from the top of its magazine, as it
// would without sampling. free looks where `hit_tag` says, which it subtracts from an entry to get the class, and
// which is less by HAK_APART then: its path is the same, and as fast.
//
// What BigCache hands out is counted always, by the one instruction that also says whether a sample is due: next to
// its exchange that is nothing, and a second way like the magazines' cost a third while sampling. All other ways to a
// block are slow ones, and ask hak_sampler_draw: heaps, fresh large blocks, caches without magazines.
//
// A loop that does nothing but allocate would be sampled some hundred thousand times a second, which
// nobody needs. So when there are more samples than option sample_rate allows, the cache takes one in more bytes,
// and in fewer again when they become few. Each sample notes the distance that it was drawn with and stands for
// as much, and how the distance changes depends on past samples only, never on those to come; so estimates
// stay without bias.
//
// A cache takes notice of the option in its next slow path. A thread may have none for a long time, so
// who switches sampling on or off also sets the caches' hit_tag (hak_sampler_kick, or a tool from outside):
// then the next free finds no magazine, and becomes slow. A large block's free is slow without that, but ends in
// BigCache before it looks; so the same sets the caches' frees_apart, too.
#pragma once

#include "base/options.h"
#include "cache/cache.h"

struct hak_sampling {
    size_t wanted; // the option as it was when the cache began; 0: it does not sample
    size_t
        every; // one in so many bytes is a sample: `wanted`, or more while that would be too many
    uint64_t since_ns; // thread: when `every` was last looked at
    uint32_t taken;    // thread: samples since
    uint32_t looks;    // thread: slow paths in which it might have been looked at
};

enum { HAK_SAMPLER_LOOKS = 256 };
HAK_INTERNAL void hak_sampler_follow_slow(struct hak_cache *cache);

// How many bytes there are to a sample in this cache, 0: it takes none. The thread or the lock.
HAK_INLINE size_t hak_sampler_every(const struct hak_cache *cache)
{
    return cache->sampling != NULL ? cache->sampling->every : 0;
}

// Begin or end to sample if the option says so. The thread, in a slow path, without the lock.
HAK_INLINE void hak_sampler_follow(struct hak_cache *cache)
{
    struct hak_sampling *sampling = cache->sampling;
    const size_t wanted = sampling != NULL ? sampling->wanted : 0;
    const bool is_as_wanted =
        hak_load_relaxed(&hak_options.sample_bytes) == wanted &&
        (hak_load_relaxed(&cache->hit_tag) == cache->owner.tag) == (wanted == 0);
    // From time to time, as the clock is part of it: has a thread that took too many become quiet?
    const bool is_paced =
        wanted != 0 && sampling->every != wanted && ++sampling->looks % HAK_SAMPLER_LOOKS == 0;
    if (HAK_UNLIKELY((!is_as_wanted || is_paced) && !cache->is_direct)) {
        hak_sampler_follow_slow(cache);
    }
}

// A block of the class was taken in another way: one in how many bytes is a sample, if it is one, else 0. Draws the distance
// to the next, if so. With the lock.
HAK_INTERNAL size_t hak_sampler_note_slow(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
HAK_INLINE size_t hak_sampler_note(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    const bool may_be =
        hak_sampler_every(cache) != 0 || hak_load_relaxed(&hak_options.sample_bytes) != 0;
    return HAK_UNLIKELY(may_be) ? hak_sampler_note_slow(cache, size_class) : 0;
}

// Blocks of the class that the cache has handed out while it sampled: those to all samples that were drawn, less what is
// left of the way to the next one. Any; may miss that way, or add it, for the moment in which it is drawn.
HAK_INLINE uint64_t hak_sampler_counted(const struct hak_cache *cache, unsigned size_class)
{
    const uint64_t drawn = hak_load_relaxed(&cache->magazines[size_class].counts.drawn);
    const uint64_t gap = hak_load_relaxed(&cache->gaps[size_class]);
    return drawn > gap ? drawn - gap : 0;
}

// Is a block of so many bytes, come by in a way that nobody counts, a sample of one in `every`? Any.
HAK_INTERNAL bool hak_sampler_draw(size_t block_bytes, size_t every);
// Blocks of so many bytes to the next sample, that one included. Any.
HAK_INTERNAL uint64_t hak_sampler_gap(size_t block_bytes, size_t every);
// A large block was a sample: it counts where the cache samples. The thread, without the lock.
HAK_INTERNAL void hak_sampler_count(struct hak_cache *cache);
// Draw the distance to the next sample of BigCache's bin. The thread of a cache that samples.
HAK_INTERNAL void hak_sampler_draw_large(struct hak_cache *cache, unsigned bin);

// The cache samples no more, until its next thread's first slow path, and its counts no longer need its gaps.
HAK_INTERNAL void hak_sampler_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// Make all threads' caches take notice, in their next free, of sample_bytes or of a smaller budget for magazines.
// Any, without locks.
HAK_INTERNAL void hak_sampler_kick(void);
// For tests: what the next draws depend on.
HAK_INTERNAL void hak_sampler_seed(uint64_t seed);
