// fast_path.h -- the fast paths of malloc and free.
//
// Threads   the calling thread's own cache; no atomic instruction, no lock.
//
// Every special case -- the first call of a thread, a full or stolen magazine,
// HAKMEM_CHECK, another owner's block, a large one, a wild pointer, a sample -- looks
// like an empty magazine, a full one or a foreign tag, so it costs these
// paths nothing. The calls at the end are tail calls: keep them last, or the
// compiler starts saving registers here. tests/golden holds the instruction mix.
#pragma once

#include "cache/cache.h"
#include "cache/hooks.h"

// Plain loads, neither atomic nor volatile, so that the compiler can make them operands of other
// instructions. Any value is right: a thief only writes NULL into a place, and other threads
// change the tag only to send free to its slow path.
#if HAK_TSAN
#    define hak_place_is_end(place)  (hak_load_relaxed(place) == HAK_FULL)
#    define hak_cache_hit_tag(cache) hak_load_relaxed(&(cache)->hit_tag)
#else
#    define hak_place_is_end(place)  (*(void *const *)(const void *)(place) == HAK_FULL)
#    define hak_cache_hit_tag(cache) (*(const uint32_t *)(const void *)&(cache)->hit_tag)
#endif

// `site`, here and below: where the program's call returns to. In a function that ends with a tail call of
// hak_malloc_slow, that is the return address.
#define HAK_SITE __builtin_return_address(0)
HAK_INTERNAL void *hak_malloc_slow(size_t bytes, size_t size_class, struct hak_cache *cache);
HAK_INTERNAL void hak_free_slow(void *block, struct hak_cache *cache); // the thread's own

// Pop the block below top[top_number] (hak_cache_top_number); NULL: the magazine is empty. Step malloc of steal.pml.
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

// The same while the cache samples; NULL also if the block would be a sample (sampler.h).
HAK_INLINE void *hak_cache_pop_counted(struct hak_cache *cache, size_t size_class)
{
    hak_place *top = hak_peek(&cache->top[size_class + HAK_APART]);
    void *block = hak_place_load(top - 1);
    HAK_FORGET(block);
    if (block == NULL) {
        return NULL;
    }
    // Counted in a register: two read-modify-write instructions in a row on the same memory are slower.
    const uint64_t gap = hak_peek(&cache->gaps[size_class]) - 1;
    if (HAK_UNLIKELY(gap == 0)) {
        return NULL; // the slow path counts it
    }
    hak_poke(&cache->gaps[size_class], gap);
    hak_poke(&cache->top[size_class + HAK_APART], top - 1);
    return block;
}

// A block of `size_class` for a request of `bytes`, or NULL with errno set. Only as the last call of a function
// that the program calls.
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

// Push a block: `at` is the top's address, `top` its value, which is not the magazine's end. Step free of steal.pml.
HAK_INLINE void hak_cache_push_at(_Atomic(hak_place *) *at, hak_place *top, void *block)
{
    hak_place_store(top, block);
    hak_poke(at, top + 1);
}

// Push a block onto top[top_number]. False: there is no such top, or its magazine is full.
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

// Push a block into its magazine, if the thread's cache owns it and there is room. One compare tells that the
// block is small and ours, and in which magazine it belongs: only then is the unit's entry minus our
// tag below HAK_TOPS; the entries of other owners are further away.
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
