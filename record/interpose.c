// interpose.c -- malloc and its family: record the call, and let the program's own allocator do it.
//
// An allocation is recorded when it has returned, a free before it begins. So the time of a block's
// free is never before that of its malloc, and never after that of the next malloc that returns the
// same address, in whichever threads they are.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "next.h"
#include "recorder.h"
#include "within.h"

// The C library's headers declare these without our attributes, and not all of them have free_sized.
HAK_EXPORT void cfree(void *block);
HAK_EXPORT void free_sized(void *block, size_t bytes);
HAK_EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes);
HAK_EXPORT void *memalign(size_t alignment, size_t bytes);
HAK_EXPORT void *pvalloc(size_t bytes);
HAK_EXPORT size_t malloc_usable_size(void *block);

static unsigned log2_of(size_t alignment)
{
    return alignment > 1 ? (unsigned)(63 - __builtin_clzll(alignment)) : 0;
}

HAK_EXPORT void *malloc(size_t bytes)
{
    if (HAK_UNLIKELY(!hak_recorder_enter())) {
        void *inner = hak_next.malloc != NULL ? hak_next.malloc(bytes) : hak_early_alloc(bytes);
        if (HAK_UNLIKELY(inner == NULL)) {
            hak_record_refused(EVENT_MALLOC, bytes, 0);
        }
        hak_within_note(inner, bytes);
        return inner;
    }
    void *block = hak_next.malloc(bytes);
    hak_record(EVENT_MALLOC, block, bytes);
    hak_within_leave(block);
    return block;
}

HAK_EXPORT void *calloc(size_t count, size_t bytes)
{
    size_t all;
    const bool fits = !__builtin_mul_overflow(count, bytes, &all);
    if (HAK_UNLIKELY(!hak_recorder_enter())) {
        // Early blocks are zero: none is used twice.
        void *inner =
            hak_next.calloc != NULL ? hak_next.calloc(count, bytes) : hak_early_alloc(all);
        hak_within_note(inner, all);
        return inner;
    }
    void *block = hak_next.calloc(count, bytes);
    hak_record(EVENT_CALLOC, block, fits ? all : SIZE_MAX);
    hak_within_leave(block);
    return block;
}

HAK_EXPORT void free(void *block)
{
    if (block == NULL || HAK_UNLIKELY(hak_early_owns(block))) {
        return;
    }
    if (HAK_UNLIKELY(!hak_recorder_enter())) {
        hak_within_forget(block);
        hak_next.free(block);
        return;
    }
    if (!hak_within_ends(block)) {
        hak_record(EVENT_FREE, block, 0);
    }
    hak_next.free(block);
    hak_within_leave(NULL);
}

static void *realloc_early(void *block, size_t bytes)
{
    void *grown = malloc(bytes);
    if (grown != NULL) {
        const size_t before = hak_early_size(block);
        memcpy(grown, block, before < bytes ? before : bytes);
    }
    return grown;
}

static void *realloc_within(void *block, size_t bytes)
{
    void *moved =
        hak_next.realloc != NULL ? hak_next.realloc(block, bytes) : hak_early_alloc(bytes);
    if (moved != NULL) {
        hak_within_forget(block);
        hak_within_note(moved, bytes);
    }
    return moved;
}

HAK_EXPORT void *realloc(void *block, size_t bytes)
{
    if (HAK_UNLIKELY(block != NULL && hak_early_owns(block))) {
        return realloc_early(block, bytes);
    }
    if (HAK_UNLIKELY(!hak_recorder_enter())) {
        return realloc_within(block, bytes);
    }
    const bool is_known = block != NULL && !hak_within_ends(block);
    if (is_known) {
        hak_record(EVENT_REALLOC_FROM, block, 0);
    }
    void *moved = hak_next.realloc(block, bytes);
    hak_record(is_known ? EVENT_REALLOC_TO : EVENT_MALLOC, moved, bytes);
    hak_within_leave(moved);
    return moved;
}

HAK_EXPORT void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        if (hak_recorder_enter()) {
            hak_record(EVENT_MALLOC, NULL, SIZE_MAX); // as calloc's
            hak_within_leave(NULL);
        }
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, all);
}

HAK_EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (HAK_UNLIKELY(!hak_recorder_enter())) {
        const int inner = hak_next.posix_memalign(block, alignment, bytes);
        if (inner != 0) {
            hak_record_refused(EVENT_ALIGNED, bytes, log2_of(alignment));
        } else {
            hak_within_note(*block, bytes);
        }
        return inner;
    }
    const int error = hak_next.posix_memalign(block, alignment, bytes);
    hak_record_long(EVENT_ALIGNED, error == 0 ? *block : NULL, bytes, log2_of(alignment));
    hak_within_leave(error == 0 ? *block : NULL);
    return error;
}

HAK_EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    if (HAK_UNLIKELY(!hak_recorder_enter())) {
        void *inner = hak_next.aligned_alloc(alignment, bytes);
        if (inner == NULL) {
            hak_record_refused(EVENT_ALIGNED, bytes, log2_of(alignment));
        }
        hak_within_note(inner, bytes);
        return inner;
    }
    void *block = hak_next.aligned_alloc(alignment, bytes);
    hak_record_long(EVENT_ALIGNED, block, bytes, log2_of(alignment));
    hak_within_leave(block);
    return block;
}

HAK_EXPORT void *memalign(size_t alignment, size_t bytes)
{
    if (HAK_UNLIKELY(!hak_recorder_enter())) {
        void *inner = hak_next.memalign(alignment, bytes);
        hak_within_note(inner, bytes);
        return inner;
    }
    void *block = hak_next.memalign(alignment, bytes);
    hak_record_long(EVENT_ALIGNED, block, bytes, log2_of(alignment));
    hak_within_leave(block);
    return block;
}

HAK_EXPORT void *valloc(size_t bytes)
{
    if (HAK_UNLIKELY(!hak_recorder_enter())) {
        void *inner = hak_next.valloc(bytes);
        hak_within_note(inner, bytes);
        return inner;
    }
    void *block = hak_next.valloc(bytes);
    hak_record_long(EVENT_ALIGNED, block, bytes, 12);
    hak_within_leave(block);
    return block;
}

HAK_EXPORT void *pvalloc(size_t bytes)
{
    if (HAK_UNLIKELY(!hak_recorder_enter())) {
        void *inner = hak_next.pvalloc(bytes);
        hak_within_note(inner, bytes);
        return inner;
    }
    void *block = hak_next.pvalloc(bytes);
    hak_record_long(EVENT_ALIGNED, block, bytes, 12);
    hak_within_leave(block);
    return block;
}

// This records nothing. It is here because the program's allocator knows nothing of early blocks.
HAK_EXPORT size_t malloc_usable_size(void *block)
{
    if (block == NULL) {
        return 0;
    }
    if (HAK_UNLIKELY(hak_early_owns(block))) {
        return hak_early_size(block);
    }
    if (HAK_UNLIKELY(!hak_recorder_enter())) {
        return hak_next.malloc_usable_size(block);
    }
    const size_t bytes = hak_next.malloc_usable_size(block);
    hak_recorder_leave();
    return bytes;
}

// Other names of free. The program's allocator may lack them, but it has free().

HAK_EXPORT void cfree(void *block)
{
    free(block);
}

HAK_EXPORT void free_sized(void *block, size_t bytes)
{
    (void)bytes;
    free(block);
}

HAK_EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
    (void)alignment;
    (void)bytes;
    free(block);
}
