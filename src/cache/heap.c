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

static void slab_end_locked(struct hak_cache *heap, struct hak_run *slab)
    HAK_REQUIRES(&heap->owner.lock)
{
    hak_list_remove(&slab->link);
    slab->free_blocks = hak_load_relaxed(&slab->fresh); // its blocks end with it
    if (slab->sampled_blocks != 0) {
        hak_hook_forget_slab(slab);
    }
    hak_slabs_end(&heap->owner, slab);
}

static struct hak_run *slab_full(struct hak_cache *heap) HAK_REQUIRES(&heap->owner.lock)
{
    struct hak_list *full = &heap->owner.full;
    return hak_list_is_empty(full) ? NULL : HAK_LIST_ITEM(full->next, struct hak_run, link);
}

// After how many slabs others may have the lock: some microseconds.
enum { END_TOGETHER = 64 };

// The heap's user does not want its lock any more. But a thread that takes all locks may want it, while all others wait for that
// thread. One that forks leaves no mark in the lock (os/lock.h), so the lock is dropped in any case.
static void let_others(struct hak_cache *heap, unsigned *ended) HAK_REQUIRES(&heap->owner.lock)
{
    if (++*ended % END_TOGETHER == 0) {
        hak_lock_pass(&heap->owner.lock);
        hak_lock_drop(&heap->owner.lock);
        hak_lock_take(&heap->owner.lock);
    }
}

// Blocks of a heap are in no parcel (hak_reclaim_or_post), so its slabs and large blocks are all there is to end.
void hak_heap_end(struct hak_cache *heap)
{
    unsigned ended = 0;
    struct hak_run *slab;
    heap->ended_by = &hak_cache_self;
    hak_lock_take(&heap->owner.lock);
    hak_magazine_forget_all(heap);
    hak_hook_forget(heap);
    HAK_EACH_LISTED (&heap->owner, size_class) {
        while ((slab = hak_slabs_first(&heap->owner, size_class)) != NULL) {
            slab_end_locked(heap, slab);
            let_others(heap, &ended);
        }
        hak_slabs_note_spare(&heap->owner, size_class);
    }
    while ((slab = slab_full(heap)) != NULL) {
        slab_end_locked(heap, slab);
        let_others(heap, &ended);
    }
    hak_lock_drop(&heap->owner.lock);
    hak_large_end_all(heap);
    hak_ended_bury(heap);
}

// The thread is in the parent only. It was between two lots of slabs, or behind them, and may have had one large block in hand, which
// is lost. Unless it is the thread that has forked, from a signal handler: it goes on here.
void hak_heap_end_forked(void)
{
    HAK_EACH_CACHE (cache) {
        if (HAK_UNLIKELY(cache->owner.role == HAK_ROLE_HEAP && cache->ended_by != NULL &&
                         cache->ended_by != &hak_cache_self)) {
            hak_hook_forked(cache);
            hak_heap_end(cache);
        }
    }
}
