// heap.c -- first-class heaps: caches without a thread, used under their lock.
#include <errno.h>

#include "base/bits.h"
#include "cache/dying.h"
#include "cache/fast_path.h"
#include "cache/heap.h"
#include "cache/large.h"
#include "cache/nested.h"
#include "cache/pools.h"
#include "cache/refuse.h"
#include "cache/start.h"
#include "cache/sweeper.h"
#include "front/alloc.h"
#include "hakmem/hakmem.h"

static struct hak_cache *cache_of(struct hak_heap *heap)
{
    return (struct hak_cache *)(void *)heap;
}

struct hak_heap *hak_heap_create(void)
{
    const struct hak_request request = {sizeof(struct hak_cache), HAK_CACHE_LINE, HAK_SITE};
    if (hak_dying_now()) {
        return hak_refuse(HAK_REFUSE_EXHAUSTION, request);
    }
    struct hak_cache *cache = hak_start_thread(NULL) != NULL ? hak_heap_make() : NULL;
    if (cache == NULL) {
        return hak_refuse_memory(request, 0);
    }
    return (struct hak_heap *)(void *)cache;
}

void hak_heap_destroy(struct hak_heap *heap)
{
    if (heap != NULL && hak_nested_may_wait()) {
        hak_heap_end(cache_of(heap));
        hak_sweeper_wanted(0);
    }
}

// `zeroed` as in hak_alloc_large; set only for a large block.
static void *heap_alloc(
    struct hak_heap *heap, size_t alignment, size_t bytes, bool *zeroed, const void *site)
{
    const struct hak_request request = {bytes, alignment, site};
    if (hak_dying_now()) {
        return hak_dying_take(request);
    }
    // The thread may hold the locks that this takes.
    if (hak_is_nested) {
        return hak_refuse(HAK_REFUSE_EXHAUSTION, request);
    }
    struct hak_cache *cache = cache_of(heap);
    const unsigned wanted = hak_aligned_class(alignment, bytes);
    const unsigned size_class = wanted < HAK_SMALL_CLASSES ? hak_pools_class(wanted) : wanted;
    if (size_class < HAK_SMALL_CLASSES) {
        return hak_heap_take(cache, size_class, request);
    }
    void *block = hak_alloc_large(request, 1, zeroed);
    if (block != NULL) {
        hak_large_belongs(block, cache);
    }
    return block;
}

void *hak_heap_malloc(struct hak_heap *heap, size_t bytes)
{
    return heap_alloc(heap, HAK_MALLOC_ALIGNMENT, bytes, NULL, HAK_SITE);
}

void *hak_heap_calloc(struct hak_heap *heap, size_t count, size_t bytes)
{
    size_t total;
    bool zeroed = false;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        return hak_refuse(HAK_REFUSE_THRESHOLD, (struct hak_request){SIZE_MAX, 1, HAK_SITE});
    }
    void *block = heap_alloc(heap, HAK_MALLOC_ALIGNMENT, total, &zeroed, HAK_SITE);
    return block == NULL || zeroed ? block : hak_large_clear(block, total);
}

void *hak_heap_aligned_alloc(struct hak_heap *heap, size_t alignment, size_t bytes)
{
    if (!hak_is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    const size_t least = HAK_MALLOC_ALIGNMENT;
    return heap_alloc(heap, alignment < least ? least : alignment, bytes, NULL, HAK_SITE);
}
