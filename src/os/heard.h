// heard.h -- giving memory back through the functions that libraries listen to.
//
// Included  by files of its layer only, and hakmem.c.
// Threads   any.
// Fails     as the kernel does: each returns the value, or the error number, negative. errno does not change.
//
// Libraries that register a program's buffers with a device (UCX, libfabric, Open MPI) have to hear when such memory goes.
// They write a jump over the first instructions of the C library's munmap, madvise and mremap, or replace their addresses in
// the tables of all loaded objects, or define these functions themselves. If we made the system call ourselves, they would not
// hear of it, and the device would write to pages that are gone. So before each call we look at the function that the name is
// bound to. If it begins with the system call, as the C library's does, nobody listens, and we make the call here; if not, we
// call that function.
#pragma once

#include "base/compiler.h"

// Called once, when all libraries that the program was linked with can be called: from here on we look for listeners. `begin` and
// `end` are called around each call of a listener's function; `end` gets what `begin` returned.
HAK_INTERNAL void hak_heard_start(void *(*begin)(void), void (*end)(void *));

HAK_INTERNAL HAK_MUST_USE long hak_heard_munmap(void *start, size_t bytes);
HAK_INTERNAL HAK_MUST_USE long hak_heard_madvise(void *start, size_t bytes, int advice);
HAK_INTERNAL HAK_MUST_USE long hak_heard_mremap(
    void *start, size_t old_bytes, size_t bytes, int flags, void *target);

// Does a library listen? Then callers avoid system calls that it would not hear.
HAK_INTERNAL bool hak_heard_has_listeners(void);
