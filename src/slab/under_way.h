// under_way.h -- what is on its way to the system at this moment: who is about to be refused waits for it.
//
// Owns      hak_arena.under_way.
// Threads   any; what ends in _locked under the arena's lock.
// Fails     never. When too many are under way at a time, nobody waits for the rest.
#pragma once

#include "slab/arena.h"

// Memory goes back from here on, without our lock. Returns the number to end it with; the second to be followed by the
// third, without a lock.
HAK_INTERNAL uint64_t hak_under_way_begin_locked(void) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_under_way_end_locked(uint64_t number) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_under_way_tell(void);
// Is another thread giving something back at this moment?
HAK_INTERNAL bool hak_under_way_is_any(void);
// What other threads are giving back at this moment is free when this returns: before memory is refused.
HAK_INTERNAL void hak_under_way_wait(void);
