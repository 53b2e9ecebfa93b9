// alloc.h -- what the files of the front share.
#pragma once

#include "cache/fast_path.h"

// A block of more than HAK_SMALL_MAX bytes, or with a larger alignment. `wished` (1: none) and `zeroed` (false before the call) are
// as in hak_large_serve. NULL with errno ENOMEM.
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

// Did realloc ever leave a block too long, because there was no memory for a shorter one? Stays true: the block may live for longer
// than the lack of memory.
HAK_INTERNAL extern _Atomic(bool) hak_realloc_left_long;

// The slow path of delete with a size.
HAK_INTERNAL void hak_delete_slow(void *block, size_t bytes, size_t alignment);

// aligned_alloc, for a function that the program called at `site`. `alignment` is a power of two.
HAK_INTERNAL void *hak_alloc_aligned(size_t alignment, size_t bytes, const void *site);

// As the C library's memalign.
HAK_INTERNAL void *hak_memalign(size_t alignment, size_t bytes);

// The smallest class whose blocks are at least `bytes` long and aligned; HAK_SMALL_CLASSES: there is none.
HAK_INTERNAL unsigned hak_aligned_class(size_t alignment, size_t bytes);
