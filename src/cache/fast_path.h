// fast_path.h -- allocate and free a small block: the two paths that count.
//
// Threads   the calling thread's own cache; no atomic instruction, no lock.
//
// Whatever is out of the ordinary -- the first call of a thread, a full or stolen
// magazine, HAKMEM_CHECK, another owner's block, a large one, a wild pointer, a sample -- is
// made to look like an empty or a full magazine or a foreign tag, so it costs
// these paths nothing. The calls at the end are tail calls: keep them last, or the
// compiler starts saving registers here. tests/golden holds the instruction mix.
#pragma once

#include "cache/cache.h"
#include "cache/hooks.h"

// Neither atomic nor volatile, so that they become operands of other instructions. What a thief may
// write into a place is NULL, and what others make of the tag is another way to the slow path: whichever
// value is read, the answer is right.
#if HAK_TSAN
#    define hak_place_is_end(place)  (hak_load_relaxed(place) == HAK_FULL)
#    define hak_cache_hit_tag(cache) hak_load_relaxed(&(cache)->hit_tag)
#else
#    define hak_place_is_end(place)  (*(void *const *)(const void *)(place) == HAK_FULL)
#    define hak_cache_hit_tag(cache) (*(const uint32_t *)(const void *)&(cache)->hit_tag)
#endif

// `site`, here and below: where the program's call returns to. Of a function that ends with the call of
// hak_malloc_slow it is the return address.
#define HAK_SITE __builtin_return_address(0)
HAK_INTERNAL void *hak_malloc_slow(size_t bytes, size_t size_class, struct hak_cache *cache);
HAK_INTERNAL void hak_free_slow(void *block, struct hak_cache *cache); // the thread's own

// The block at a top (hak_cache_top_number), or NULL. Step malloc of steal.pml.
HAK_INLINE void *hak_cache_pop(struct hak_cache *cache, size_t top_number)
{
    hak_place *top = hak_peek(&cache->top[top_number]);
    void *block = hak_place_load(top - 1);
    HAK_FORGET(block);
    if (HAK_LIKELY(block != NULL)) {
        hak_poke(&cache->top[top_number], top - 1);
    }
    return block;
}

// A block from the top of the magazine of a cache that samples, if the block is no sample, or NULL (sampler.h).
HAK_INLINE void *hak_cache_pop_counted(struct hak_cache *cache, size_t size_class)
{
    hak_place *top = hak_peek(&cache->top[size_class + HAK_APART]);
    void *block = hak_place_load(top - 1);
    HAK_FORGET(block);
    if (block == NULL) {
        return NULL;
    }
    // By way of a register: from one instruction that counts in memory to the next takes longer.
    const uint64_t gap = hak_peek(&cache->gaps[size_class]) - 1;
    if (HAK_UNLIKELY(gap == 0)) {
        return NULL; // the slow path counts it
    }
    hak_poke(&cache->gaps[size_class], gap);
    hak_poke(&cache->top[size_class + HAK_APART], top - 1);
    return block;
}

// A block of `size_class` for a request of `bytes`, or NULL with errno set: as the last call of what the
// program calls.
HAK_INLINE void *hak_cache_alloc(struct hak_cache *cache, size_t bytes, size_t size_class)
{
    void *block = hak_cache_pop(cache, size_class);
    block = HAK_LIKELY(block != NULL) ? block : hak_cache_pop_counted(cache, size_class);
    return HAK_LIKELY(block != NULL) ? block : hak_malloc_slow(bytes, size_class, cache);
}

// The same anywhere else.
HAK_INLINE void *hak_cache_alloc_for(
    struct hak_cache *cache, size_t bytes, size_t size_class, size_t alignment, const void *site)
{
    void *block = hak_cache_pop(cache, size_class);
    block = HAK_LIKELY(block != NULL) ? block : hak_cache_pop_counted(cache, size_class);
    return HAK_LIKELY(block != NULL) ? block
                                     : hak_hook_malloc(bytes, size_class, cache, site, alignment);
}

// Put a block at the place `top`, where `at` points and which is no end. Step free of steal.pml.
HAK_INLINE void hak_cache_push_at(_Atomic(hak_place *) *at, hak_place *top, void *block)
{
    hak_place_store(top, block);
    hak_poke(at, top + 1);
}

// Put a block at a top, if there is one of that number and room in the magazine.
HAK_INLINE bool hak_cache_push_into(struct hak_cache *cache, uint32_t top_number, void *block)
{
    if (HAK_LIKELY(top_number < HAK_TOPS)) {
        hak_place *top = hak_peek(&cache->top[top_number]);
        if (HAK_LIKELY(!hak_place_is_end(top))) {
            hak_cache_push_at(&cache->top[top_number], top, block);
            return true;
        }
    }
    return false;
}

// Put a block into its magazine, if it is the thread's own and there is room. One compare answers "mine,
// small, and into which magazine": a unit's entry less our tag is below HAK_TOPS for nothing else, as
// the entries of other owners are further away.
HAK_INLINE bool hak_cache_push(struct hak_cache *cache, void *block)
{
    return hak_cache_push_into(cache, hak_map_entry(block) - hak_cache_hit_tag(cache), block);
}

// Free any pointer.
HAK_INLINE void hak_cache_free(struct hak_cache *cache, void *block)
{
    if (HAK_UNLIKELY(!hak_cache_push(cache, block))) {
        hak_free_slow(block, cache);
    }
}
