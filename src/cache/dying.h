// dying.h -- malloc and free in a process that ends for a misuse.
//
// Threads   any, and in the handler of a signal that interrupted any of them: no lock.
// Fails     NULL when its addresses are used up.
//
// Whoever finds a misuse may be in the middle of a change, with locks held, and the process ends there. But SIGABRT has
// handlers: crash reporters allocate, fork, load libraries, and wait for other threads. So from then on nobody takes a lock
// of ours. All that is not served from a thread's own magazine comes from addresses apart, one behind the other, and
// what is freed stays where it is. The thread that found the misuse uses its magazines no more: it may have been at
// work on them, and what was freed wrongly may lie there.
//
// A thread that waits for a lock at that moment, waits until the process has ended.
#pragma once

#include "base/atomic.h"
#include "cache/request.h"

HAK_INTERNAL extern _Atomic(bool) hak_dying; // written once
HAK_INLINE bool hak_dying_now(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_dying));
}

// Before main: from then on misuse leads here.
HAK_INTERNAL void hak_dying_start(void);
// Zeros, aligned as asked for, and at least to 16.
HAK_INTERNAL HAK_COLD void *hak_dying_take(struct hak_request request);
// What it was taken with, or 0 of any other address.
HAK_INTERNAL size_t hak_dying_bytes(const void *block);
