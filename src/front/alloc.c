// alloc.c -- malloc, calloc, free.
#include <string.h>

#include "base/options.h"
#include "cache/bigcache.h"
#include "cache/dying.h"
#include "cache/fast_path.h"
#include "cache/hooks.h"
#include "cache/large.h"
#include "cache/pools.h"
#include "cache/refuse.h"
#include "cache/slow.h"
#include "cache/start.h"
#include "cache/take.h"
#include "front/alloc.h"
#include "front/override.h"
#include "front/replaced.h"
#include "hakmem/hakmem.h"
#include "slab/misuse.h"

// The cache that the calling thread may lock and allocate from: its own, or hak_cache_shared. NULL without memory.
static struct hak_cache *front_cache(void)
{
    struct hak_cache *cache = hak_cache_self;
    return HAK_LIKELY(cache != &hak_cache_nobody) ? cache : hak_start_thread(NULL);
}

void *hak_alloc_large(struct hak_request request, size_t wished, bool *zeroed)
{
    if (HAK_UNLIKELY(request.bytes > PTRDIFF_MAX || request.alignment > PTRDIFF_MAX)) {
        return hak_refuse(HAK_REFUSE_THRESHOLD, request);
    }
    struct hak_cache *cache = hak_dying_now() ? NULL : front_cache();
    if (HAK_UNLIKELY(cache == NULL)) {
        return hak_slow_without_cache(request);
    }
    if (HAK_UNLIKELY(cache->is_direct) && hak_hook_refuses(request)) {
        return hak_refuse(HAK_REFUSE_INJECTED, request);
    }
    return hak_large_serve(cache, request, wished, zeroed);
}

// Take a block from BigCache. True: it is ready for the program. False: it goes to malloc_large, because it is NULL or a feature
// has to see it.
HAK_INLINE bool take_kept(size_t bytes, void **block)
{
    struct hak_cache *cache = hak_cache_self;
    const unsigned bin = hak_size_class_bin(bytes);
    *block = hak_bigcache_reuse(cache, bin);
    return HAK_LIKELY(*block != NULL) && HAK_LIKELY(--cache->large_gaps[bin] != 0);
}

// `kept`: the block from take_kept.
static HAK_NOINLINE void *malloc_large(size_t bytes, void *kept, const void *site)
{
    if (HAK_UNLIKELY(kept != NULL) && !hak_dying_now()) {
        return hak_hook_counted(hak_cache_self, kept, bytes, site);
    }
    void *block = hak_hook_reuse(bytes, site);
    return block != NULL ? block : hak_alloc_large((struct hak_request){bytes, 1, site}, 1, NULL);
}

void *hak_alloc_above_tiny(size_t bytes, const void *site)
{
    if (HAK_LIKELY(bytes <= HAK_SMALL_MAX)) {
        return hak_cache_alloc_for(
            hak_cache_self, bytes, hak_size_class_of_small(bytes), HAK_MALLOC_ALIGNMENT, site);
    }
    void *kept;
    return take_kept(bytes, &kept) ? kept : malloc_large(bytes, kept, site);
}

// As hak_malloc_slow, called by a tail call, so HAK_SITE is the program's.
static HAK_NOINLINE void *malloc_large_here(size_t bytes, void *kept)
{
    return malloc_large(bytes, kept, HAK_SITE);
}

// For requests above HAK_TINY_MAX. Out of line, so that the path for small requests stays one screen of code.
static HAK_NOINLINE void *malloc_above_tiny(size_t bytes)
{
    if (HAK_LIKELY(bytes <= HAK_SMALL_MAX)) {
        return hak_cache_alloc(hak_cache_self, bytes, hak_size_class_of_small(bytes));
    }
    void *kept;
    return take_kept(bytes, &kept) ? kept : malloc_large_here(bytes, kept);
}

void *hak_malloc(size_t bytes)
{
    HAK_COUNT_CALL();
    if (HAK_UNLIKELY(bytes > HAK_TINY_MAX)) {
        return malloc_above_tiny(bytes);
    }
    return hak_cache_alloc(hak_cache_self, bytes, hak_size_class_of_tiny(bytes));
}

// Begins in the middle of a cache line, so that none of its branches is in the first of its two lines. When it began at the start
// of a line, loops of malloc and free took 5 % longer, and up to 18 instead of 9 % more while sampling (an EPYC of 2025, Zen 5).
HAK_MID_LINE void hak_free(void *block)
{
    HAK_COUNT_CALL();
    hak_cache_free(hak_cache_self, block);
}

// From this size on, calloc looks for a block whose pages are untouched: clearing a smaller one
// costs less than the lock.
#define FRESH_MIN HAK_KIB(4)

// A block that was never handed out, from pages that read as zero. NULL if there is none, if the magazine has
// blocks, or if the cache samples: it counts the blocks that pass its magazines.
static void *calloc_fresh(size_t size_class)
{
    struct hak_cache *cache = front_cache();
    if (cache == NULL || hak_dying_now() || cache->is_direct || cache->apart != 0 ||
        !hak_pools_have(size_class) || cache->magazines[size_class].is_ruled ||
        hak_place_load(hak_load_relaxed(&cache->top[size_class]) - 1) != NULL) {
        return NULL;
    }
    bool zeroed = false;
    hak_lock_take(&cache->owner.lock);
    void *block = hak_take_fresh(cache, (unsigned)size_class, &zeroed);
    hak_lock_drop(&cache->owner.lock);
    if (block != NULL && !zeroed) {
        memset(block, 0, hak_classes[size_class].bytes);
    }
    return block;
}

void *hak_calloc(size_t count, size_t bytes)
{
    HAK_COUNT_CALL();
    size_t total;
    if (HAK_UNLIKELY(__builtin_mul_overflow(count, bytes, &total))) {
        return hak_refuse(HAK_REFUSE_THRESHOLD, (struct hak_request){SIZE_MAX, 1, HAK_SITE});
    }
    if (total > HAK_SMALL_MAX) {
        bool zeroed = false;
        void *block = hak_alloc_large((struct hak_request){total, 1, HAK_SITE}, 1, &zeroed);
        return block == NULL || zeroed ? block : hak_large_clear(block, total);
    }
    if (total >= FRESH_MIN) {
        void *block = calloc_fresh(hak_size_class_of_small(total));
        if (block != NULL) {
            return block;
        }
    }
    void *block = hak_alloc(total, HAK_SITE);
    return HAK_LIKELY(block != NULL) ? memset(block, 0, total) : NULL;
}

// May a block of `usable` bytes have been allocated for `bytes`? It may be as large as its alignment, or twice as large as the size
// that realloc shrank it to; larger still, once realloc had no memory for a shorter block. A block of up to a unit may be any small
// request's, once such a request was served by a larger class.
static bool may_be_of(size_t usable, size_t bytes, size_t alignment)
{
    const size_t least = bytes > alignment ? bytes : alignment;
    const bool is_large_enough = usable <= 128 || least >= usable / 2 - 8;
    const bool is_from_above = hak_load_relaxed(&hak_pools_went_above) && usable <= HAK_UNIT_BYTES;
    return bytes <= usable &&
           (is_large_enough || is_from_above || hak_load_relaxed(&hak_realloc_left_long));
}

static void check_size(const void *block, size_t bytes, size_t alignment)
{
    const size_t usable = hak_usable_size(block);
    if (block != NULL && usable != 0 && !may_be_of(usable, bytes, alignment)) {
        hak_misuse_wrong_size(block, bytes, usable);
    }
}

// The size in a C++ delete is checked only with option check.
void hak_delete_slow(void *block, size_t bytes, size_t alignment)
{
    if (hak_load_relaxed(&hak_options.check) != 0) {
        check_size(block, bytes, alignment);
    }
    hak_free_slow(block, hak_cache_self);
}

// The size is checked when the block takes the slow path: every block if the cache keeps no magazines,
// else a sample. This costs the fast path nothing.
static HAK_NOINLINE void free_sized_slow(void *block, size_t bytes, size_t alignment)
{
    if (HAK_UNLIKELY(hak_replaced)) {
        hak_replaced_free(block);
        return;
    }
    check_size(block, bytes, alignment);
    hak_free_slow(block, hak_cache_self);
}

void hak_free_sized(void *block, size_t bytes)
{
    if (HAK_UNLIKELY(!hak_cache_push(hak_cache_self, block))) {
        free_sized_slow(block, bytes, 1);
    }
}

void hak_free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
    if (HAK_UNLIKELY(!hak_cache_push(hak_cache_self, block))) {
        free_sized_slow(block, bytes, alignment);
    }
}

HAK_ALSO(void *, malloc, (size_t), hak_malloc);
HAK_ALSO(void *, calloc, (size_t, size_t), hak_calloc);
HAK_ALSO(void, free, (void *), hak_free);
HAK_ALSO(void, cfree, (void *), hak_free);
HAK_ALSO(void, free_sized, (void *, size_t), hak_free_sized);
HAK_ALSO(void, free_aligned_sized, (void *, size_t, size_t), hak_free_aligned_sized);
HAK_ALSO(void *, __libc_calloc, (size_t, size_t), hak_calloc);
HAK_ALSO(void, __libc_cfree, (void *), hak_free);
