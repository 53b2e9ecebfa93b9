// within.h -- blocks that an allocator takes from malloc's family for itself, while a call of the program's is in it.
//
// They are no calls of the program's, so neither is what frees them, whenever that is: at the end of a thread the C library
// frees what it has kept for the allocator's destructor there, and no call of the program's is at work then.
//
// Threads   any.
// Fails     never: a block for which there is no room is freed as one that nobody knows.
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

// Freed by the program's thread: is it one of them? It is none any more.
HAK_INLINE bool hak_within_ends(const void *block)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_within_any)) && hak_within_drop(block);
}

// The end of a call that gives `result`, which may have been taken from the family itself.
HAK_INLINE void hak_within_leave(const void *result)
{
    if (HAK_UNLIKELY(hak_recorder.inner != NULL)) {
        hak_within_keep(result);
    }
    hak_recorder_leave();
}

#endif
