// refusal.h -- memory that the kernel refused.
//
// Threads   any; each finds its own refusals.
// Fails     never.
#pragma once

#include "base/compiler.h"

// Errors where the kernel was not asked: it would end the process; a limit does not let a block grow in place.
enum { HAK_REFUSED_BY_GROUP = -1, HAK_REFUSED_TO_GROW = -2 };

// No process has addresses from 2 to this power on, unless it asks for them explicitly.
#if defined(__aarch64__)
#    define HAK_ADDRESS_LOG2 48
#else
#    define HAK_ADDRESS_LOG2 47
#endif

struct hak_refusal {
    int error; // 0: none
    size_t bytes;
};

// Note that the kernel refused the calling thread `bytes`.
HAK_INTERNAL void hak_refusal_note(int error, size_t bytes);
// A mark, from which on the same thread can ask for refusals later.
HAK_INTERNAL uint64_t hak_refusal_mark(void);
// The latest refusal of the calling thread since the mark.
HAK_INTERNAL struct hak_refusal hak_refusal_since(uint64_t mark);
// The kernel has refused `bytes`: will it do so whatever is given back? Yes, if a process does not have as many addresses; or if
// it is for more than memory and swap space together, and the kernel refuses such requests (vm.overcommit_memory=0).
HAK_INTERNAL bool hak_refusal_is_final(size_t bytes);
