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
// All other ways to a block are slow ones, and ask hak_sampler_draw: heaps, large blocks, caches without
// magazines. BigCache keeps nothing meanwhile.
//
// A cache takes notice of the option in its next slow path. A thread may have none for a long time, so
// who switches sampling on also sets the caches' hit_tag (hak_sampler_kick, or a tool from outside):
// then the next free finds a magazine that was never made, and becomes slow.
#ifndef HAK_CACHE_SAMPLER_H
#define HAK_CACHE_SAMPLER_H

#include "base/options.h"
#include "cache/cache.h"
#include "cache/failure.h"

struct hak_sampling {
    size_t every; // the option as it was when the cache began; 0: it does not sample
    struct {
        uint64_t gap;  // blocks that will be handed out until the next sample, that one included
        uint32_t held; // blocks in the magazine when that was true
    } classes[HAK_SMALL_CLASSES];
};

HAK_INTERNAL void hak_sampler_follow_slow(struct hak_cache *cache);

// How many bytes there are to a sample in this cache, 0: it takes none. The owner or the lock.
HAK_INLINE size_t hak_sampler_every(const struct hak_cache *cache)
{
    return cache->sampling != NULL ? cache->sampling->every : 0;
}

// Begin or end to sample if the option says so. The owner, in a slow path, without the lock.
HAK_INLINE void hak_sampler_follow(struct hak_cache *cache)
{
    const size_t every = hak_sampler_every(cache);
    const bool is_as_wanted = hak_load_relaxed(&hak_options.sample_bytes) == every &&
                              (hak_load_relaxed(&cache->hit_tag) == cache->tag) == (every == 0);
    if (HAK_UNLIKELY(!is_as_wanted && !cache->is_direct)) {
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
// A block of the class was handed out by the slow path, after hak_sampler_count: is it a sample? Draws the
// distance to the next, if so. With the lock.
HAK_INTERNAL bool hak_sampler_passes(struct hak_cache *cache, unsigned size_class);

// Is a block of so many bytes, come by in a way that nobody counts, a sample of one in `every`? Any.
HAK_INTERNAL bool hak_sampler_draw(size_t block_bytes, size_t every);
// Blocks of so many bytes to the next sample, that one included. Any.
HAK_INTERNAL uint64_t hak_sampler_gap(size_t block_bytes, size_t every);
// A large block was made for a request, or resized for it. Any, without locks.
HAK_INTERNAL void hak_sampler_large(void *block, struct hak_request request);

// Make all caches take notice of the option, that was set. Any, without locks.
HAK_INTERNAL void hak_sampler_kick(void);
// For tests: what the next draws depend on.
HAK_INTERNAL void hak_sampler_seed(uint64_t seed);

#endif
