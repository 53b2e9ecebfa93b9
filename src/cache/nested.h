// nested.h -- malloc and free inside a call of ours that gives memory back to the system.
//
// Owns      a small heap of its own: 4 MiB at the start of the map's window, whose map slot nothing else uses.
// Threads   any; no lock.
// Fails     hak_nested_alloc returns NULL, with errno set.
//
// Libraries may listen to munmap and madvise (os/heard.h). We call such a listener in the middle of our work: with locks held,
// and with the thread's cache half changed. If the listener allocates or frees, that must touch neither. So during such a call
// the thread has no cache, which sends all of malloc's family to the slow paths; and those come here. A block allocated here
// may live for as long as the program likes, and is freed like any other block. A block freed inside such a call waits for the
// next slow path outside of it.
//
// The same holds for a function of the program's that we call with all locks held (report/visit.h).
//
// A block has a header. The block and its header take a power of two of bytes, which serves blocks of that size for good.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "cache/dying.h"
#include "cache/request.h"
#include "meta/map.h"
#include "meta/size_class.h"

// Is the calling thread inside such a call?
HAK_INTERNAL extern HAK_TLS bool hak_is_nested;

// May the calling thread wait for our locks? Not inside such a call, as it may hold them; nor in a process that ends for a misuse.
HAK_INLINE bool hak_nested_may_wait(void)
{
    return !hak_is_nested && !hak_dying_now();
}

// Called before and after such a call; the second takes what the first returned.
HAK_INTERNAL void *hak_nested_begin(void);
HAK_INTERNAL void hak_nested_end(void *before);

HAK_INTERNAL void *hak_nested_alloc(struct hak_request request);
// Free a block of the small heap; or, inside, any block.
HAK_INTERNAL void hak_nested_free(void *block);
HAK_INTERNAL size_t hak_nested_usable(const void *block);

// In the child of a fork.
HAK_INTERNAL void hak_nested_forked(void);

// Does the small heap exist, and does `block` lie in it?
HAK_INTERNAL extern _Atomic(uint32_t) hak_nested_state;
enum hak_nested_states { HAK_NESTED_NONE, HAK_NESTED_BUSY, HAK_NESTED_READY, HAK_NESTED_REFUSED };
HAK_INLINE bool hak_nested_owns(const void *block)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_nested_state) == HAK_NESTED_READY) &&
           (uintptr_t)block - (uintptr_t)hak_map.window < HAK_SUPER_BYTES;
}

// Free the blocks that were freed inside such calls. Only outside of them, without a lock.
struct hak_nested_later;
HAK_INTERNAL extern _Atomic(struct hak_nested_later *) hak_nested_waiting;
HAK_INTERNAL void hak_nested_free_waiting_slow(void);
HAK_INLINE void hak_nested_free_waiting(void)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_nested_waiting) != NULL)) {
        hak_nested_free_waiting_slow();
    }
}
