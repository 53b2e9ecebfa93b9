// small.h -- a small block when no fast path found one; and the ways to one when the kernel, or a limit, refuses more memory.
//
// Threads   any; no lock is held.
// Fails     NULL with errno ENOMEM: no free memory can serve the request.
//
// When memory is refused, these ways are tried, each dearer for other threads than the one before: all caches give back what they
// hold; the pool gets a free unit; a larger class serves; slabs of other threads become orphans; a large block serves.
#pragma once

#include "cache/cache.h"
#include "cache/request.h"

// A block of the class from `cache`, the calling thread's cache or a companion: out of its magazine, or by refill.
HAK_INTERNAL void *hak_small_take(struct hak_cache *cache,
                                  struct hak_request request,
                                  unsigned size_class);
// The same from a heap. Each malloc of a heap comes here, so none is timed as a refill (base/timings.def).
HAK_INTERNAL void *hak_small_take_of_heap(struct hak_cache *heap,
                                          struct hak_request request,
                                          unsigned size_class);
// A large block in place of a small one, because the pools of its class are off, or memory is refused.
HAK_INTERNAL HAK_COLD void *hak_small_take_large(struct hak_cache *cache,
                                                 struct hak_request request);
