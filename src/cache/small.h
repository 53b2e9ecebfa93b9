// small.h -- a small block that no fast path found; and the ways to one when the kernel, or a limit, refuses more memory.
//
// Threads   any; no lock is held.
// Fails     NULL with errno ENOMEM: then nothing that is free can serve.
//
// Once there is no more memory, one way after another, each dearer for others than the one before: what all hold goes back, a free
// unit describes a slab, blocks of a class above serve, slabs of other threads become orphans, a large block serves.
#pragma once

#include "cache/cache.h"
#include "cache/request.h"

// A block of the class: out of the magazine of `cache`, the calling thread's or a rule's, or the slabs.
HAK_INTERNAL void *hak_small_take(struct hak_cache *cache,
                                  struct hak_request request,
                                  unsigned size_class);
// The same of a heap. Each of its mallocs comes here, so none is timed as a refill (base/timings.def).
HAK_INTERNAL void *hak_small_take_of_heap(struct hak_cache *heap,
                                          struct hak_request request,
                                          unsigned size_class);
// The pools of the class are off: a large block.
HAK_INTERNAL HAK_COLD void *hak_small_take_large(struct hak_cache *cache,
                                                 struct hak_request request);
