// heard.h -- giving memory back so that whoever listens hears it.
//
// Included  by files of its layer only, and hakmem.c.
// Threads   any.
// Fails     as the kernel does: each returns the value, or the error number, negative. errno stays.
//
// Libraries that register a program's buffers with a device (UCX, libfabric, Open MPI) have to hear when such memory goes.
// They write a jump over the first instructions of the C library's munmap, madvise and mremap, or exchange their addresses in
// the tables of all that is loaded, or define them anew. A system call of our own passes all of that by, and data would then be
// written to pages that are gone. So before each call we look at the function that the name leads to: where it begins with
// the system call, as the C library has it, nobody listens, and the call is made here; else that function is called.
#pragma once

#include "base/compiler.h"

// Once, when all that the program was linked with can be called: from here on others are looked for. `begin` and `end` are called
// around each call of a function that is not ours; the second gets what the first returned.
HAK_INTERNAL void hak_heard_start(void *(*begin)(void), void (*end)(void *));

HAK_INTERNAL HAK_MUST_USE long hak_heard_munmap(void *start, size_t bytes);
HAK_INTERNAL HAK_MUST_USE long hak_heard_madvise(void *start, size_t bytes, int advice);
HAK_INTERNAL HAK_MUST_USE long hak_heard_mremap(
    void *start, size_t old_bytes, size_t bytes, int flags, void *target);

// Would somebody hear madvise? What takes another way then is not made.
HAK_INTERNAL bool hak_heard_has_listeners(void);
