// heap.c -- see heap.h.
#include "cache/heap.h"

#include "base/check.h"
#include "cache/direct.h"
#include "cache/failure.h"
#include "cache/fast_path.h"
#include "cache/hardened.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/magazine.h"
#include "cache/sample.h"
#include "cache/sampler.h"
#include "cache/sweep.h"
#include "cache/thread.h"
#include "cache/watch.h"
#include "os/refusal.h"

struct hak_cache *hak_heap_make(void)
{
    return hak_cache_make(HAK_ROLE_HEAP, NULL);
}

static void *heap_try(struct hak_cache *heap, size_t bytes, unsigned size_class)
{
    hak_lock_take(&heap->lock);
    hak_count(&heap->events, 1);
    hak_watch_note(heap);
    hak_place *top = hak_magazine_top(heap, size_class);
    void *block = hak_place_load(top - 1);
    if (block != NULL) {
        hak_magazine_set_top(heap, size_class, top - 1);
    } else {
        block = heap->is_direct ? hak_direct_take(heap, size_class, bytes)
                                : hak_magazine_refill(heap, size_class);
    }
    hak_lock_drop(&heap->lock);
    return block;
}

void *hak_heap_take(struct hak_cache *heap, unsigned size_class, struct hak_request request)
{
    if (HAK_UNLIKELY(heap->is_direct) && hak_injector_is_on() && hak_injector_takes(request)) {
        return hak_refuse(HAK_FAILURE_INJECTED, request);
    }
    void *block = heap_try(heap, request.bytes, size_class);
    if (HAK_UNLIKELY(block == NULL)) {
        hak_sweep_everything();
        const uint64_t mark = hak_refusal_mark();
        block = heap_try(heap, request.bytes, size_class);
        if (block == NULL) {
            return hak_refuse_memory(request, mark);
        }
    }
    const size_t every = hak_load_relaxed(&hak_options.sample_bytes);
    if (HAK_UNLIKELY(hak_sampler_draw(hak_classes[size_class].bytes, every))) {
        hak_sample_take(block, request, every);
    }
    return block;
}

static void slabs_end_locked(struct hak_cache *heap, struct hak_list *slabs)
{
    while (!hak_list_is_empty(slabs)) {
        struct hak_slab *slab = HAK_LIST_ITEM(slabs->next, struct hak_slab, link);
        hak_list_remove(&slab->link);
        slab->free_blocks = slab->fresh; // its blocks end with it
        if (slab->sampled_blocks != 0) {
            hak_sample_forget_slab(slab->base, slab->units * HAK_UNIT_BYTES);
        }
        hak_cache_end_slab(heap, slab);
    }
}

// Blocks of a heap are in no parcel (hak_inbox_post), so what is in the heap is all there is to end.
void hak_heap_end(struct hak_cache *heap)
{
    hak_lock_take(&heap->lock);
    hak_magazine_forget_all(heap);
    hak_hardened_forget(heap);
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        slabs_end_locked(heap, hak_cache_slabs(heap, size_class));
        slabs_end_locked(heap, hak_cache_swept_slabs(heap, size_class));
    }
    slabs_end_locked(heap, &heap->full);
    hak_large_end_all(heap);
    hak_lock_drop(&heap->lock);
    hak_cache_end(heap);
}
