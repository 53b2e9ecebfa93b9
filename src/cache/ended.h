// ended.h -- the caches of threads that have ended; and all caches, when the process ends.
//
// Threads   any; hak_ended_process: the one that ends the process.
#pragma once

#include "cache/cache.h"

// `cache` is dead from now on: it waits, whole, for the next thread or heap.
HAK_INTERNAL void hak_ended_bury(struct hak_cache *cache);
// The thread of `cache` ends, or has ended.
HAK_INTERNAL void hak_ended_cache(struct hak_cache *cache);
// Find caches whose threads ended after our destructor had run, or without the C library (os/life.h). Each new thread looks at
// some caches, so there are never more such caches than threads of that kind at a time. With no lock of ours, and not in free:
// this may start a thread.
HAK_INTERNAL void hak_ended_look(void);
// At the end of the program, in exit: put the free blocks of the calling thread, and of threads that have ended, into their
// slabs, which checks them.
HAK_INTERNAL void hak_ended_process(void);
