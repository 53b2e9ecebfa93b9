// within.h -- blocks that an allocator takes from the malloc family for itself, during a call of the program.
//
// These allocations are not the program's calls, so neither are their frees, even outside a call of the program: when a thread
// ends, the C library frees what it has kept for the allocator's destructor.
//
// Threads   any.
// Fails     never: the free of a block for which there is no room is recorded as that of an unknown block.
#ifndef HAK_RECORD_WITHIN_H
#define HAK_RECORD_WITHIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "recorder.h"

HAK_INTERNAL extern _Atomic(bool) hak_within_any; // was there ever one?

HAK_INTERNAL void hak_within_note(const void *block, size_t bytes);
HAK_INTERNAL void hak_within_forget(const void *block);
HAK_INTERNAL void hak_within_keep(const void *result);
HAK_INTERNAL bool hak_within_drop(const void *block);

// The program's thread frees a block: is it one of these blocks? It is forgotten then.
HAK_INLINE bool hak_within_ends(const void *block)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_within_any)) && hak_within_drop(block);
}

// The end of a call that returns `result`, which the allocator may have taken from the malloc family.
HAK_INLINE void hak_within_leave(const void *result)
{
    if (HAK_UNLIKELY(hak_recorder.inner != NULL)) {
        hak_within_keep(result);
    }
    hak_recorder_leave();
}

#endif
