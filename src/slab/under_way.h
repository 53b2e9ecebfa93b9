// under_way.h -- memory that is being given back to the system: a request that would fail waits for it.
//
// Owns      hak_arena.under_way.
// Threads   any. Functions that end in _locked: the holder of the arena's lock.
// Fails     never. If too many loads are under way at a time, nobody waits for the rest.
#pragma once

#include "slab/arena.h"

// Begin a load: from here on memory is given back without our lock. Returns the load's number, for the call that ends
// it. After that, without a lock, comes hak_under_way_tell, which wakes the waiters.
HAK_INTERNAL uint64_t hak_under_way_begin_locked(void) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_under_way_end_locked(uint64_t number) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_under_way_tell(void);
// Is another thread giving memory back?
HAK_INTERNAL bool hak_under_way_is_any(void);
// Wait, before a request is refused, until the memory that other threads are giving back is free.
HAK_INTERNAL void hak_under_way_wait(void);
