// nested.h -- malloc and free inside a call of ours that gives memory back.
//
// Owns      a small heap of its own: 4 MiB at the beginning of the map's window, whose map slot nobody else has.
// Threads   any; no lock.
// Fails     hak_nested_alloc returns NULL, with errno set.
//
// Who listens to munmap and madvise (os/heard.h) is called by us in the middle of our work: with locks held, and with the
// thread's cache half changed. If it allocates or frees, that must touch neither. So the thread has no cache for the time of such a
// call, which leads all of malloc's family to its slow paths; and those come here. What is allocated here may live for as long as
// the program likes, and is freed like any other block. What is freed inside of such a call waits for the next slow
// path outside of it.
//
// A block has a header, and takes a power of two of bytes, which serve blocks of that size for good.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "cache/request.h"
#include "meta/map.h"
#include "meta/size_class.h"

// Is the calling thread inside of such a call?
HAK_INTERNAL extern HAK_TLS bool hak_is_nested;

// Around such a call: the first returns what the second is told.
HAK_INTERNAL void *hak_nested_begin(void);
HAK_INTERNAL void hak_nested_end(void *before);

HAK_INTERNAL void *hak_nested_alloc(struct hak_request request);
// Free a block of the small heap; or, inside, any block.
HAK_INTERNAL void hak_nested_free(void *block);
HAK_INTERNAL size_t hak_nested_usable(const void *block);

// Has the small heap been made, and is this one of its addresses?
HAK_INTERNAL extern _Atomic(uint32_t) hak_nested_state;
enum hak_nested_states { HAK_NESTED_NONE, HAK_NESTED_BUSY, HAK_NESTED_READY, HAK_NESTED_REFUSED };
HAK_INLINE bool hak_nested_owns(const void *block)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_nested_state) == HAK_NESTED_READY) &&
           (uintptr_t)block - (uintptr_t)hak_map.window < HAK_SUPER_BYTES;
}

// Free what was freed inside. Outside, without a lock.
struct hak_nested_later;
HAK_INTERNAL extern _Atomic(struct hak_nested_later *) hak_nested_waiting;
HAK_INTERNAL void hak_nested_free_waiting_slow(void);
HAK_INLINE void hak_nested_free_waiting(void)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_nested_waiting) != NULL)) {
        hak_nested_free_waiting_slow();
    }
}
