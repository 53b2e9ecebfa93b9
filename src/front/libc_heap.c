// libc_heap.c -- see libc_heap.h.
#include "front/libc_heap.h"

#include "front/alloc.h"
#include "front/override.h"
#include "hakmem/hakmem.h"

struct hak_libc_heap hak_libc_heap;

#ifndef HAK_NO_OVERRIDE

static HAK_MAYBE_UNUSED void *libc_malloc(size_t bytes)
{
    return HAK_UNLIKELY(hak_libc_heap.malloc != NULL) ? hak_libc_heap.malloc(bytes)
                                                      : hak_malloc(bytes);
}

static HAK_MAYBE_UNUSED void *libc_memalign(size_t alignment, size_t bytes)
{
    return HAK_UNLIKELY(hak_libc_heap.memalign != NULL) ? hak_libc_heap.memalign(alignment, bytes)
                                                        : hak_memalign(alignment, bytes);
}

static HAK_MAYBE_UNUSED void *libc_realloc(void *block, size_t bytes)
{
    return HAK_UNLIKELY(hak_libc_heap.realloc != NULL) && !hak_owns(block)
               ? hak_libc_heap.realloc(block, bytes)
               : hak_realloc(block, bytes);
}

static HAK_MAYBE_UNUSED void libc_free(void *block)
{
    if (HAK_UNLIKELY(hak_libc_heap.free != NULL) && !hak_owns(block)) {
        hak_libc_heap.free(block);
        return;
    }
    hak_free(block);
}

HAK_ALSO(void *, __libc_malloc, (size_t), libc_malloc);
HAK_ALSO(void *, __libc_memalign, (size_t, size_t), libc_memalign);
HAK_ALSO(void *, __libc_realloc, (void *, size_t), libc_realloc);
HAK_ALSO(void, __libc_free, (void *), libc_free);

#endif
