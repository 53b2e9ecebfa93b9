// heap.h -- caches that belong to a heap instead of a thread.
//
// Threads   hak_heap_take: any. hak_heap_end: any, while nobody else uses the heap.
#pragma once

#include "cache/cache.h"
#include "cache/request.h"

// Make a heap's cache. NULL without memory.
HAK_INTERNAL struct hak_cache *hak_heap_make(void);
// A block of `size_class`; NULL with errno ENOMEM.
HAK_INTERNAL void *hak_heap_take(struct hak_cache *heap,
                                 unsigned size_class,
                                 struct hak_request request);
// Free all blocks that are left in the heap, and end it.
HAK_INTERNAL void hak_heap_end(struct hak_cache *heap);
// After fork, in the child: end the heaps that threads of the parent were ending.
HAK_INTERNAL void hak_heap_end_forked(void);
