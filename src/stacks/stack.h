// stack.h -- who called: the return addresses on the calling thread's stack.
//
// Owns      a cache of the unwind rules of return addresses.
// Threads   any: no lock but the pool's, no errno.
// Fails     with fewer frames: a walk ends where it cannot find the next frame.
//
// Programs and libraries are mostly compiled without frame pointers, but with tables for exceptions
// (.eh_frame), which say for each instruction where its caller's frame is. The C library's unwinder
// reads them, too, but it loads another library, allocates and takes locks; so we read them
// ourselves, as far as it takes to find return addresses. Code without a table (made at run time) is
// assumed to keep frame pointers.
//
// A stack may be a thread's, a coroutine's, or a signal handler's. Each page of it is probed before it
// is read, so a wrong frame costs frames, but never a fault.
#pragma once

#include "base/compiler.h"

// Fill in the places (stacks/code.h) of the return addresses of the caller's callers, innermost first. Returns how many.
// `is_quiet`: no file is read, as the program may be in a sandbox.
HAK_INTERNAL unsigned hak_stack_walk(uintptr_t *frames, unsigned most, bool is_quiet);

// The same, from the program's call at `site` on, without the few functions of ours above it. If the walk does not reach `site`,
// that is the only frame. At least 1, at most HAK_STACK_MOST.
enum { HAK_STACK_MOST = 64 };
HAK_INTERNAL unsigned hak_stack_walk_from(const void *site,
                                          uintptr_t *frames,
                                          unsigned most,
                                          bool is_quiet);
