// functions.h -- the functions of a Python program that were seen on stacks, by number.
//
// Layer     python (may include: base, os, meta, front, stacks)
// Owns      hak_functions: file, name and first line of each. Entries stay.
// Threads   any: no lock but the pool's.
// Fails     beyond the bound below, and without memory, a function has number 0, and is counted.
//
// A code object may be freed, and another one may lie at its address. So what its names are is read while it runs, when it is
// seen for the first time; it is known again by its address and by the pointers that lie in it.
#ifndef HAK_PYTHON_FUNCTIONS_H
#define HAK_PYTHON_FUNCTIONS_H

#include <stdint.h>

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

// What of a code object tells it from others, also from a later one at its address.
struct hak_function_code {
    uintptr_t address;
    uintptr_t file; // a str
    uintptr_t name; // a str
    uintptr_t lines;
    uint32_t first_line;
    uint64_t hash; // of all of these
};

// False when there is no code object.
HAK_INTERNAL bool hak_function_read(struct hak_pages *pages,
                                    uintptr_t address,
                                    struct hak_function_code *code);
HAK_INTERNAL uint32_t hak_function_number(struct hak_pages *pages,
                                          const struct hak_function_code *code);
// The line of the instruction at `unit` code units from its beginning. 0: it has none.
HAK_INTERNAL uint32_t hak_function_line(struct hak_pages *pages,
                                        const struct hak_function_code *code,
                                        uint64_t unit);

#endif
