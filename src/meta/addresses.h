// addresses.h -- addresses for superslabs and large blocks: takes them from the kernel, and gives them back.
//
// Owns      nothing; which addresses are in use is in the map.
// Threads   the holder of the arena's lock.
// Fails     NULL when the kernel refuses; addresses that it does not take back go to unreleased.h.
#pragma once

#include "base/compiler.h"
#include "os/lock.h"

// Map `bytes` (a multiple of the page size) at a superslab boundary whose map slot is free, and mark its slots used. NULL when the
// kernel refuses. `lock`: the arena's; it is dropped while the kernel maps, so other threads may change what is mapped. NULL: the
// lock is held throughout.
HAK_INTERNAL char *hak_addresses_take(size_t bytes, struct hak_lock *lock);
// Unmap the addresses and free their slots. False, and nothing has changed, when the kernel refuses.
HAK_INTERNAL bool hak_addresses_give(char *start, size_t bytes);
// The same, at once or, when the kernel refuses, later (unreleased.h): the caller has no claim to them any more.
HAK_INTERNAL void hak_addresses_drop(char *start, size_t bytes);
// Leave addresses free behind a long mapping, so that it can grow to four times its length in place.
HAK_INTERNAL void hak_addresses_leave_room(const char *start, size_t bytes);
