// world.h -- all locks at a time.
//
// Threads   any.
#pragma once

#include "base/compiler.h"

// Take every lock there is, in order of rank, and drop them: nothing changes in between, but for
// the places and tops of magazines. For fork, and for who wants exact figures.
HAK_INTERNAL void hak_world_lock(void);
// The same, but false, with nothing taken, when one of them is not to be had for `ms` milliseconds.
HAK_INTERNAL bool hak_world_lock_within(unsigned ms);
HAK_INTERNAL void hak_world_unlock(void);
// For fork, which may be called in the handler of a signal that has interrupted a call of ours: false, with nothing taken,
// when the thread itself holds one of them and there is no other thread; or when the process is dying (dying.h). Those of caches
// are only seen to be free, if that can be done, and whoever takes one waits (os/lock.h).
HAK_INTERNAL bool hak_world_lock_to_fork(void);
// In the child: the threads that stayed with the parent have ended.
HAK_INTERNAL void hak_world_unlock_in_child(void);
