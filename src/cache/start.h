// start.h -- how the allocator comes up.
#pragma once

#include "cache/cache.h"

// The calling thread's cache (hak_thread_cache); the first call of the process also sets up the tables, and asks for the
// ends of threads and for fork. NULL without memory for the tables: the next call tries again; and inside of a call that gives
// back (nested.h). `block`: what the thread is about to free, or NULL.
HAK_INTERNAL struct hak_cache *hak_start_thread(const void *block);
// Once, as early as the options of the environment are known.
HAK_INTERNAL void hak_start_process(void);
