// heap.c -- see heap.h.
#include "cache/heap.h"

#include "cache/ended.h"
#include "cache/hooks.h"
#include "cache/large.h"
#include "cache/magazine.h"
#include "cache/refuse.h"
#include "cache/registry.h"
#include "cache/small.h"
#include "cache/sweep.h"
#include "owner/slabs.h"
#include "slab/feed.h"

struct hak_cache *hak_heap_make(void)
{
    struct hak_cache *heap = hak_registry_get(HAK_ROLE_HEAP, NULL);
    if (HAK_UNLIKELY(heap == NULL)) {
        hak_sweep_everything();
        heap = hak_registry_get(HAK_ROLE_HEAP, NULL);
    }
    if (HAK_UNLIKELY(heap == NULL) && hak_feed_pool(0, 0, sizeof *heap)) {
        heap = hak_registry_get(HAK_ROLE_HEAP, NULL);
    }
    return heap;
}

void *hak_heap_take(struct hak_cache *heap, unsigned size_class, struct hak_request request)
{
    if (HAK_UNLIKELY(heap->is_direct) && hak_hook_refuses(request)) {
        return hak_refuse(HAK_REFUSE_INJECTED, request);
    }
    return hak_small_take_of_heap(heap, request, size_class);
}

static void slabs_end_locked(struct hak_cache *heap, struct hak_list *slabs)
{
    while (!hak_list_is_empty(slabs)) {
        struct hak_run *slab = HAK_LIST_ITEM(slabs->next, struct hak_run, link);
        hak_list_remove(&slab->link);
        slab->free_blocks = hak_load_relaxed(&slab->fresh); // its blocks end with it
        if (slab->sampled_blocks != 0) {
            hak_hook_forget_slab(slab);
        }
        hak_slabs_end(&heap->owner, slab);
    }
}

// Blocks of a heap are in no parcel (hak_reclaim_or_post), so what is in the heap is all there is to end.
void hak_heap_end(struct hak_cache *heap)
{
    hak_lock_take(&heap->owner.lock);
    hak_magazine_forget_all(heap);
    hak_hook_forget(heap);
    HAK_EACH_LISTED (&heap->owner, size_class) {
        slabs_end_locked(heap, hak_slabs_of(&heap->owner, size_class));
        slabs_end_locked(heap, hak_slabs_swept(&heap->owner, size_class));
        hak_slabs_note_spare(&heap->owner, size_class);
    }
    slabs_end_locked(heap, &heap->owner.full);
    hak_large_end_all(heap);
    hak_lock_drop(&heap->owner.lock);
    hak_ended_bury(heap);
}
