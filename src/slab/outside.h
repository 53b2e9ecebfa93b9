// outside.h -- the list of large blocks' own mappings outside our window, in order of address: the map knows only the
// start of such a mapping.
//
// Owns      the list.
// Threads   any. Functions that end in _locked: the holder of the arena's lock. A lock of the list's own lets a thread look that
//           holds all others, as one does in a function that hak_visit_blocks calls.
// Fails     hak_outside_reserve_locked returns false without memory.
#pragma once

#include "slab/arena.h"

// Rank "outside", the last. Written with the arena's lock as well, so fork need not take it.
HAK_INTERNAL extern struct hak_lock hak_outside_lock;

// Make room for one more entry, before it is added. False without memory.
HAK_INTERNAL bool hak_outside_reserve_locked(void) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_outside_add_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_outside_remove_locked(const struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock);
// The mapping outside the window that `p` lies in, also beyond the part that the map knows; or NULL.
HAK_INTERNAL struct hak_super *hak_outside_find(const void *p);
