// outside.h -- mappings of their own that lie outside our window, in order of address: the map knows the start of such a
// one only.
//
// Owns      the list of them.
// Threads   any; what ends in _locked under the arena's lock.
// Fails     hak_outside_reserve_locked returns false without memory.
#pragma once

#include "slab/arena.h"

// Before one is added there has to be room for it: false without memory.
HAK_INTERNAL bool hak_outside_reserve_locked(void) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_outside_add_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_outside_remove_locked(const struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock);
// The mapping of its own that `p` lies in where the map does not know it, or NULL. Takes the lock.
HAK_INTERNAL struct hak_super *hak_outside_find(const void *p);
