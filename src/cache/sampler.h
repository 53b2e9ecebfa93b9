// sampler.h -- which allocations are sampled, and how that costs the fast paths nothing.
//
// Layer     cache
// Owns      what each cache that samples has to know about it.
// Threads   see each function.
// Fails     without memory a cache goes on without sampling.
//
// Option sample_bytes says one in how many bytes is a sample: a block of b bytes (its class's) is one with
// the chance b / sample_bytes, each block for itself. So it is known in advance how many blocks of a
// class are handed out until the next sample, and an allocation that has to be looked at can be made to
// look like an empty magazine: a NULL is put into the magazine below as many blocks (a fence, as a
// thief's in steal.h), where the slow path finds the sample.
//
// For that every allocation must take one place of the magazine, but a thread that allocates and frees in
// turn uses the same place for ever. So while a cache samples, its frees go elsewhere: `hit_tag`, which
// free subtracts from an entry to get the class, is less by HAK_RETURNS, so free finds the second half of
// the cache's magazines. When the first runs empty the two change places (hak_magazine_refill). Neither path
// has an instruction more, and the distance that the top has moved says exactly how many blocks were
// handed out.
//
// BigCache has two halves of places likewise. Blocks that came from the second one have bins of their own in the
// map, which are the second half's: so free puts them back there by the same instructions. malloc finds
// nothing in the first, looks into the second, and counts. All other ways to a block are slow ones, and ask
// hak_sampler_draw: heaps, fresh large blocks, caches without magazines.
//
// A loop that does nothing but allocate would be sampled some hundred thousand times a second, which
// nobody needs. So when there are more samples than option sample_rate allows, the cache takes one in more bytes,
// and in fewer again when they become few. Each sample notes the distance that it was drawn with and stands for
// as much, and how the distance changes depends on past samples only, never on those to come; so estimates
// stay without bias.
//
// A cache takes notice of the option in its next slow path. A thread may have none for a long time, so
// who switches sampling on also sets the caches' hit_tag (hak_sampler_kick, or a tool from outside):
// then the next free finds a magazine that was never made, and becomes slow.
#ifndef HAK_CACHE_SAMPLER_H
#define HAK_CACHE_SAMPLER_H

#include "base/options.h"
#include "cache/cache.h"
#include "cache/failure.h"
#include "cache/large.h"

struct hak_sampling {
    size_t wanted; // the option as it was when the cache began; 0: it does not sample
    size_t
        every; // one in so many bytes is a sample: `wanted`, or more while that would be too many
    uint64_t since_ns; // owner: when `every` was last looked at
    uint32_t taken;    // owner: samples since
    uint32_t looks;    // owner: slow paths in which it might have been looked at
    struct {
        uint64_t gap;  // blocks that will be handed out until the next sample, that one included
        uint32_t held; // blocks in the magazine when that was true
        // Places that each of the two magazines has at least. As many blocks cost a turn, but come from further
        // away than the few that a thread would use without sampling: so they double only while
        // turns come fast, which they do where hardly anything is done with the blocks.
        uint32_t slots;
        uint32_t turns;
        uint64_t turned_ns; // when the turns were judged last
    } classes[HAK_SMALL_CLASSES];
    uint64_t large_gaps[HAK_LARGE_BINS]; // owner: the same of blocks that BigCache hands out
};

enum { HAK_SAMPLER_LOOKS = 256 };
HAK_INTERNAL void hak_sampler_follow_slow(struct hak_cache *cache);

// How many bytes there are to a sample in this cache, 0: it takes none. The owner or the lock.
HAK_INLINE size_t hak_sampler_every(const struct hak_cache *cache)
{
    return cache->sampling != NULL ? cache->sampling->every : 0;
}

// Begin or end to sample if the option says so. The owner, in a slow path, without the lock.
HAK_INLINE void hak_sampler_follow(struct hak_cache *cache)
{
    struct hak_sampling *sampling = cache->sampling;
    const size_t wanted = sampling != NULL ? sampling->wanted : 0;
    const bool is_as_wanted = hak_load_relaxed(&hak_options.sample_bytes) == wanted &&
                              (hak_load_relaxed(&cache->hit_tag) == cache->tag) == (wanted == 0);
    // From time to time, as the clock is part of it: has a thread that took too many become quiet?
    const bool is_paced =
        wanted != 0 && sampling->every != wanted && ++sampling->looks % HAK_SAMPLER_LOOKS == 0;
    if (HAK_UNLIKELY((!is_as_wanted || is_paced) && !cache->is_direct)) {
        hak_sampler_follow_slow(cache);
    }
}

// The magazine that the frees of a class go to. The owner or the lock.
HAK_INLINE unsigned hak_sampler_returns(const struct hak_cache *cache, unsigned size_class)
{
    return size_class + (hak_sampler_every(cache) != 0 ? HAK_RETURNS : 0);
}

// The magazine of a class is about to change other than by allocations: count what was handed out since
// the last time. And it has changed: put up the next fence. The owner or the lock, and the lock.
HAK_INTERNAL void hak_sampler_count(struct hak_cache *cache, unsigned size_class);
HAK_INTERNAL void hak_sampler_set(struct hak_cache *cache, unsigned size_class);
// Between the two: the magazine, of which none was handed out since, holds others now, and may yet be emptied
// for another's sake.
HAK_INTERNAL void hak_sampler_turned(struct hak_cache *cache, unsigned size_class);
// A block of the class was handed out by the slow path, after hak_sampler_count: is it a sample? Draws the
// distance to the next, if so. With the lock.
HAK_INTERNAL bool hak_sampler_passes(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->lock);

// hak_large_reuse of a cache that samples: a kept large block for a request as malloc's, or NULL. `bin`: of `bytes`. And
// what to do when that block is a sample; returns it. The owner.
HAK_INTERNAL HAK_NEVER_NULL void *hak_sampler_take_kept(struct hak_cache *cache,
                                                        void *block,
                                                        size_t bytes,
                                                        const void *site);
HAK_INLINE void *hak_sampler_reuse(struct hak_cache *cache,
                                   size_t bytes,
                                   unsigned bin,
                                   const void *site)
{
    if (bin >= HAK_LARGE_BINS) {
        return NULL;
    }
    void *block = hak_large_take_kept(cache, HAK_LARGE_BINS + bin);
    if (HAK_LIKELY(block == NULL || --cache->sampling->large_gaps[bin] != 0)) {
        return block;
    }
    return hak_sampler_take_kept(cache, block, bytes, site);
}

// Is a block of so many bytes, come by in a way that nobody counts, a sample of one in `every`? Any.
HAK_INTERNAL bool hak_sampler_draw(size_t block_bytes, size_t every);
// Places that the magazines of a class need for the turn that is about to come. With the lock.
HAK_INTERNAL uint32_t hak_sampler_slots(struct hak_cache *cache, unsigned size_class);
// Blocks of so many bytes to the next sample, that one included. Any.
HAK_INTERNAL uint64_t hak_sampler_gap(size_t block_bytes, size_t every);
// A large block was made for the thread's request, or resized for it. Without locks.
HAK_INTERNAL void hak_sampler_large(void *block, struct hak_request request);

// Make all threads' caches take notice, in their next free, of sample_bytes or of a smaller budget for magazines.
// Any, without locks.
HAK_INTERNAL void hak_sampler_kick(void);
// For tests: what the next draws depend on.
HAK_INTERNAL void hak_sampler_seed(uint64_t seed);

#endif
