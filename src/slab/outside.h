// outside.h -- the list of large blocks' own mappings outside our window, in order of address: the map knows only the
// start of such a mapping.
//
// Owns      the list.
// Threads   any. Functions that end in _locked: the holder of the arena's lock.
// Fails     hak_outside_reserve_locked returns false without memory.
#pragma once

#include "slab/arena.h"

// Make room for one more entry, before it is added. False without memory.
HAK_INTERNAL bool hak_outside_reserve_locked(void) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_outside_add_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_outside_remove_locked(const struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock);
// The mapping outside the window that `p` lies in, also beyond the part that the map knows; or NULL. Takes the arena's lock.
HAK_INTERNAL struct hak_super *hak_outside_find(const void *p);
