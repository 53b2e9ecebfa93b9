// world.h -- taking and dropping all locks.
//
// Threads   any.
#pragma once

#include "base/compiler.h"

// Take every lock, in order of rank, and drop them: nothing changes in between, except the
// places and tops of magazines. For fork, and for exact statistics.
HAK_INTERNAL void hak_world_lock(void);
// The same, but false, with nothing taken, if one of them cannot be had within `ms` milliseconds.
HAK_INTERNAL bool hak_world_lock_within(unsigned ms);
HAK_INTERNAL void hak_world_unlock(void);
// For fork, which a signal handler may call that has interrupted a call of ours. False, with nothing taken: the thread itself
// holds one of the locks and there is no other thread; or the process is dying (dying.h). The caches' locks are only found free,
// if possible, behind a closed gate: a thread that takes one waits (os/lock.h).
HAK_INTERNAL bool hak_world_lock_to_fork(void);
// Drop them in the child: the caches of the parent's other threads are dead there.
HAK_INTERNAL void hak_world_unlock_in_child(void);
