// life.h -- has a thread ended without running our destructor?
//
// Threads   hak_life_begin and hak_life_end: the thread itself; the others: any.
// Fails     never; where it cannot be known, no thread counts as ended.
//
// A thread's destructors run in rounds. A thread that first allocates in the last of them does not run ours; nor does a thread
// that ends by the system call, past the C library. So each thread holds a robust mutex (set_robust_list(2)) for as long as it
// has a cache: the kernel marks the mutex when the thread ends. A mutex that nobody waits for takes no system call.
#pragma once

#include <pthread.h>

#include "base/compiler.h"

struct hak_life {
    pthread_mutex_t mutex;
    bool is_made;          // used by the cache's thread only
    _Atomic(bool) is_held; // the thread has taken the mutex; nobody has called hak_life_end since
};

HAK_INTERNAL void hak_life_begin(struct hak_life *life);
HAK_INTERNAL void hak_life_end(struct hak_life *life);
// Has its thread ended without calling hak_life_end? If so, no other thread is told, until this one calls hak_life_end, after
// which nobody is, or hak_life_leave.
HAK_INTERNAL HAK_MUST_USE bool hak_life_is_over(struct hak_life *life);
HAK_INTERNAL void hak_life_leave(struct hak_life *life);
// For the child of a fork: the thread exists only in the parent.
HAK_INTERNAL void hak_life_forget(struct hak_life *life);
