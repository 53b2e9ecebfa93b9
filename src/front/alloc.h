// alloc.h -- what the files of the front share.
#pragma once

#include "cache/fast_path.h"

// A block of more than HAK_SMALL_MAX bytes or with a larger alignment; `wished` (1: none) as of hak_large_serve, and `zeroed`, which is
// false before. NULL with errno ENOMEM.
HAK_INTERNAL void *hak_alloc_large(struct hak_request request, size_t wished, bool *zeroed);

// malloc, for a function that the program called at `site`.
HAK_INTERNAL void *hak_alloc_above_tiny(size_t bytes, const void *site);
HAK_INLINE void *hak_alloc(size_t bytes, const void *site)
{
    return HAK_LIKELY(bytes <= HAK_TINY_MAX) ? hak_cache_alloc_for(hak_cache_self,
                                                                   bytes,
                                                                   hak_size_class_of_tiny(bytes),
                                                                   HAK_MALLOC_ALIGNMENT,
                                                                   site)
                                             : hak_alloc_above_tiny(bytes, site);
}

// Did realloc ever leave a block longer than it should be, as there was no memory for a shorter one? It stays true: the block may
// outlive the limit.
HAK_INTERNAL extern _Atomic(bool) hak_realloc_left_long;

// delete with a size, of a block that takes the slow path.
HAK_INTERNAL void hak_delete_slow(void *block, size_t bytes, size_t alignment);

// aligned_alloc, of a power of two, likewise.
HAK_INTERNAL void *hak_alloc_aligned(size_t alignment, size_t bytes, const void *site);

// As the C library's memalign.
HAK_INTERNAL void *hak_memalign(size_t alignment, size_t bytes);

// The smallest class whose blocks are at least `bytes` and aligned; HAK_SMALL_CLASSES: none.
HAK_INTERNAL unsigned hak_aligned_class(size_t alignment, size_t bytes);
