// functions.h -- the functions of a Python program that were seen on stacks, by number.
//
// Owns      hak_functions: file, name and first line of each. Entries stay.
// Threads   any: no lock but the pool's.
// Fails     beyond the bound below, and without memory, a function has number 0, and is counted.
//
// A code object may be freed, and another one made at its address. So its names are read while it runs, when it is first
// seen. It is recognised by its address and by the pointers in it. These are read each time: nothing else tells whether a
// frame still runs the same code as at the last sample (docs/decisions/0050).
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

// A cache of the places seen lately: each place beside another word that tells its hash. If two threads write an entry at the same
// time, the words may not match, and the entry reads as empty. Four lie in a cache line; a place goes where its hash says, and
// moves to the next entry when another place takes that one.
enum { HAK_FUNCTION_KNOWN_LOG2 = 13, HAK_FUNCTION_WAYS = 4 };
struct hak_function_set {
    _Atomic(uint64_t) place[HAK_FUNCTION_WAYS];
    _Atomic(uint64_t) check[HAK_FUNCTION_WAYS]; // place ^ hash
} HAK_ALIGNED(2 * HAK_FUNCTION_WAYS * sizeof(uint64_t));

enum { HAK_FUNCTION_BUCKETS_LOG2 = 12 };

struct hak_function_table {
    _Atomic(struct hak_function *) entries[HAK_FUNCTIONS_MAX];
    _Atomic(uint32_t) buckets[1 << HAK_FUNCTION_BUCKETS_LOG2]; // the newest entry, by number
    struct hak_function_set sets[(1 << HAK_FUNCTION_KNOWN_LOG2) / HAK_FUNCTION_WAYS];
};

struct hak_functions {
    _Atomic(uint32_t) count;   // of entries that were begun; the first is number 1
    _Atomic(uint64_t) dropped; // how often there was no place for one
    _Atomic(void *) table;     // struct hak_function_table; NULL: no function was seen yet
};
HAK_INTERNAL extern struct hak_functions hak_functions;

// A place (stacks/code.h) that is no address: HAK_CODE_OF_FUNCTION in the upper bits, then a function's number and the line that
// it is in; 0: not known.
enum { HAK_FUNCTION_LINE_BITS = 24, HAK_FUNCTION_NUMBER_BITS = 20 };

// More units than any code has: the frame has not begun.
#define HAK_FUNCTION_NOT_BEGUN (UINT64_C(1) << 32)

// The place of the instruction at `unit` code units from the start of the code object at `address`. 0: there is no code object.
HAK_INTERNAL uintptr_t hak_function_place(struct hak_pages *pages,
                                          uintptr_t address,
                                          uint64_t unit);
