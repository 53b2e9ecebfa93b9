// ended.h -- the caches of threads that have ended; and all, when the process ends.
//
// Threads   any; hak_ended_process: the one that ends the process.
#pragma once

#include "cache/cache.h"

// Nobody uses `cache` any more: it waits, as it is, for who needs it.
HAK_INTERNAL void hak_ended_bury(struct hak_cache *cache);
// The thread of `cache` ends, or has ended.
HAK_INTERNAL void hak_ended_cache(struct hak_cache *cache);
// Look for caches whose threads have ended behind our destructor, or past the C library (os/life.h). Each thread that comes
// looks at some, so there are no more of them than such threads at a time. With no lock of ours, and not in free: it may start a
// thread.
HAK_INTERNAL void hak_ended_look(void);
// At the end of the program, in exit: put the free blocks of the calling thread, and of those that have ended, back into their
// slabs, which checks them.
HAK_INTERNAL void hak_ended_process(void);
