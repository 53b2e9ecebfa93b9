// functions.h -- the functions of a Python program that were seen on stacks, by number.
//
// Layer     python (may include: base, os, meta, front, stacks)
// Owns      hak_functions: file, name and first line of each. Entries stay.
// Threads   any: no lock but the pool's.
// Fails     beyond the bound below, and without memory, a function has number 0, and is counted.
//
// A code object may be freed, and another one may lie at its address. So what its names are is read while it runs, when it is
// seen for the first time; it is known again by its address and by the pointers that lie in it.
// These are read each time: no other sign tells that a frame runs what it ran at the sample before (docs/decisions/0050).
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "python/pages.h"

enum {
    HAK_FUNCTIONS_MAX = 1 << 14,
    HAK_FUNCTION_FILE_BYTES = 512, // of longer ones the end is kept
    HAK_FUNCTION_NAME_BYTES = 256,
};

// Constant once it is in its bucket.
struct hak_function {
    uint64_t hash;
    uint32_t next; // in its bucket; 0: none
    uint32_t first_line;
    uint32_t file_bytes;
    uint32_t name_bytes;
    char text[HAK_FUNCTION_FILE_BYTES + HAK_FUNCTION_NAME_BYTES]; // the file, the name, and no more
};

struct hak_functions {
    _Atomic(uint32_t) count;   // of entries that were begun; the first is number 1
    _Atomic(uint64_t) dropped; // times that one found no place
    _Atomic(struct hak_function *) entries[HAK_FUNCTIONS_MAX];
};
HAK_INTERNAL extern struct hak_functions hak_functions;

// A place (stacks/code.h) of no address: HAK_CODE_OF_FUNCTION above, the number of a function and the line in which it is; 0: not
// known.
enum { HAK_FUNCTION_LINE_BITS = 24, HAK_FUNCTION_NUMBER_BITS = 20 };

// More units than any code has: the frame has not begun.
#define HAK_FUNCTION_NOT_BEGUN (UINT64_C(1) << 32)

// Of the instruction at `unit` code units from the beginning of the code object at `address`. 0: there is no code object.
HAK_INTERNAL uintptr_t hak_function_place(struct hak_pages *pages,
                                          uintptr_t address,
                                          uint64_t unit);
