// stack.h -- who called: the return addresses on the calling thread's stack.
//
// Layer     stacks (may include: base, os)
// Owns      a table of what it has learnt about return addresses.
// Threads   any, also in a signal handler: no lock, no allocation, no errno.
// Fails     with fewer frames: it ends where a frame cannot be told from what is around it.
//
// Programs and libraries are mostly compiled without frame pointers, but with tables for exceptions
// (.eh_frame), which say for each instruction where its caller's frame is. The C library's unwinder
// reads them, too, but loads another library for it, allocates and takes locks; so we read them
// ourselves, as far as it takes to find return addresses. Code without a table (made at run time) is
// taken to keep frame pointers.
//
// A stack may be anybody's: a thread's, a coroutine's, a signal handler's. Each page of it is probed
// before it is read, so a wrong frame costs frames, and never a fault.
#pragma once

#include "base/compiler.h"

// Fill in the places (stacks/code.h) of return addresses, those of the caller's callers, innermost first. Returns how many. `is_quiet`: no
// file is read, as the program may be in a sandbox.
HAK_INTERNAL unsigned hak_stack_walk(uintptr_t *frames, unsigned most, bool is_quiet);

// The same from the program's call at `site` on: our own functions are on top of it, a few. Where the site is not among the
// frames, as they could not be followed, it is all that is known. At least 1, at most HAK_STACK_MOST.
enum { HAK_STACK_MOST = 64 };
HAK_INTERNAL unsigned hak_stack_walk_from(const void *site,
                                          uintptr_t *frames,
                                          unsigned most,
                                          bool is_quiet);
