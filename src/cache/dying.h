// dying.h -- malloc and free in a process that ends for a misuse.
//
// Threads   any, also in a signal handler that has interrupted any of them: no lock.
// Fails     NULL when its addresses are used up.
//
// A thread that finds a misuse ends the process. It may be in the middle of a change, with locks held. But SIGABRT has
// handlers: crash reporters allocate, fork, load libraries, and wait for other threads. So from then on no thread takes a
// lock of ours. What a thread's own magazines do not serve comes from a separate range of addresses, which is used up from
// its start; freed blocks stay where they are. The thread that found the misuse no longer uses its magazines: it may have
// been changing them, and they may contain the wrongly freed block.
//
// A thread that already waits for a lock goes on waiting until the process has ended.
#pragma once

#include "base/atomic.h"
#include "cache/request.h"

HAK_INTERNAL extern _Atomic(bool) hak_dying; // written once
HAK_INLINE bool hak_dying_now(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_dying));
}

// Before main: have misuse lead here.
HAK_INTERNAL void hak_dying_start(void);
// A zeroed block, aligned as asked for, and at least to 16.
HAK_INTERNAL HAK_COLD void *hak_dying_take(struct hak_request request);
// The size of a block from here; 0 for any other address.
HAK_INTERNAL size_t hak_dying_bytes(const void *block);
