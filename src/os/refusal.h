// refusal.h -- memory that the kernel refused.
//
// Threads   any; each finds its own refusals.
// Fails     never.
#pragma once

#include "base/compiler.h"

// In place of the kernel's error, as it was not asked: it would end the process; a limit does not let a block grow where it lies.
enum { HAK_REFUSED_BY_GROUP = -1, HAK_REFUSED_TO_GROW = -2 };

// More than any process has, unless it asks for them in so many words.
#if defined(__aarch64__)
#    define HAK_ADDRESS_LOG2 48
#else
#    define HAK_ADDRESS_LOG2 47
#endif

struct hak_refusal {
    int error; // 0: none
    size_t bytes;
};

// The kernel refused the calling thread `bytes`.
HAK_INTERNAL void hak_refusal_note(int error, size_t bytes);
// A moment, for the same thread to ask later what was refused since.
HAK_INTERNAL uint64_t hak_refusal_mark(void);
// The latest refusal of the calling thread since then.
HAK_INTERNAL struct hak_refusal hak_refusal_since(uint64_t mark);
// Before the program's main: it may forbid itself to read how the kernel decides.
HAK_INTERNAL void hak_refusal_start(void);
// Will a request for so many be refused whatever is given back? It is more than a process has addresses, or, when the process
// began, the kernel refused what is more than memory and swap space (vm.overcommit_memory=0), and it is more than there was.
HAK_INTERNAL bool hak_refusal_is_final(size_t bytes);
