// addresses.h -- addresses for superslabs and large blocks: where they are had from the kernel, and given back.
//
// Owns      nothing; which addresses are in use is in the map.
// Threads   the holder of the arena's lock.
// Fails     NULL when the kernel refuses; what it does not take back, unreleased.h has.
#pragma once

#include "base/compiler.h"
#include "os/lock.h"

// Map `bytes` (a multiple of the page size) at a superslab boundary whose map slot is free, and keep the slot. NULL when the kernel
// refuses. `lock`: the arena's, which is dropped while the kernel maps, so that what others have mapped may change meanwhile; or
// NULL: it is held throughout.
HAK_INTERNAL char *hak_addresses_take(size_t bytes, struct hak_lock *lock);
// Unmap them and free the slots. False (nothing changed) when the kernel refuses.
HAK_INTERNAL bool hak_addresses_give(char *start, size_t bytes);
// The same, now or, when the kernel refuses, later (unreleased.h): they are the caller's no longer.
HAK_INTERNAL void hak_addresses_drop(char *start, size_t bytes);
// What is mapped next shall not lie right behind it, if it is long: so it may become four times as long where it is.
HAK_INTERNAL void hak_addresses_leave_room(const char *start, size_t bytes);
