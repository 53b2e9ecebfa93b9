// life.h -- has a thread ended, without anybody having told us?
//
// Threads   hak_life_begin and hak_life_end: the thread; the rest any.
// Fails     never; where it cannot be known, no thread has ended.
//
// A thread's destructors run in rounds, of which ours may have had the last when it allocates for the first time; and a thread
// may end by the system call, past the C library. The kernel tells all the same who held a robust mutex (set_robust_list(2)): it
// writes that into the mutex when a thread ends, and a mutex that nobody waits for takes no system call. Our thread holds one for as
// long as it has a cache.
#pragma once

#include <pthread.h>

#include "base/compiler.h"

struct hak_life {
    pthread_mutex_t mutex;
    bool is_made;          // whose cache it is
    _Atomic(bool) is_held; // by the thread, as far as it has told
};

HAK_INTERNAL void hak_life_begin(struct hak_life *life);
HAK_INTERNAL void hak_life_end(struct hak_life *life);
// Has its thread ended without the call before? Said to one who asks only.
HAK_INTERNAL HAK_MUST_USE bool hak_life_is_over(struct hak_life *life);
// In the child of a fork: its thread stayed with the parent.
HAK_INTERNAL void hak_life_forget(struct hak_life *life);
