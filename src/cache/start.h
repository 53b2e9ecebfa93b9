// start.h -- how the allocator starts.
#pragma once

#include "cache/cache.h"

// The calling thread's cache (hak_thread_cache). The first call of the process also sets up the tables, and registers for
// the ends of threads and for fork. NULL: no memory for the tables, and the next call tries again; or inside a call that gives
// memory back (nested.h). `block`: what the thread is about to free, or NULL.
HAK_INTERNAL struct hak_cache *hak_start_thread(const void *block);
// Called once, as soon as the options of the environment are known.
HAK_INTERNAL void hak_start_process(void);
