// code.h -- which file the code at an address comes from, also after it was unloaded.
//
// Owns      hak_code: an entry for each build of a loaded object that was seen at an address. Entries stay.
// Threads   any: no lock but the pool's, and without it with hak_code_hint.has_locks.
// Fails     with a number that says that nothing is known, also without memory.
//
// To name an address later, a tool has to know what was mapped there when it was noted: the library may have been
// unloaded since, and another one loaded in its place. So a "place" is noted: the address, with the number of the
// object's entry in its upper bits. An object is recognised by what its file has in memory: its build id, or
// without one its first bytes. docs/decisions/0038 says why.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"

enum {
    HAK_CODE_SHIFT = 48, // no address of a program has bits from here on
    HAK_CODE_OBJECTS = 1 << 10,
    HAK_CODE_PATH_MAX = 1 << 13, // a longer path is not kept
    HAK_CODE_HEAD_BYTES = 4096,  // so much of a file tells it from others
    HAK_CODE_ID_MAX = 64,
};

// Numbers that no entry has.
enum {
    // The dynamic linker does not say, or there was no memory for an entry: take what is mapped when it is read.
    HAK_CODE_UNTOLD = 0,
    HAK_CODE_OF_FUNCTION =
        0xFFFD, // what is below is no address: a function of an interpreter's program (python/python.h)
    HAK_CODE_OF_NONE = 0xFFFE, // of no loaded object: made at run time, as a rule
    HAK_CODE_MANY = 0xFFFF,    // the table is full
};

#define HAK_PLACE_ADDRESS(place) ((uintptr_t)(place) & ((UINT64_C(1) << HAK_CODE_SHIFT) - 1))

enum hak_code_kind { HAK_CODE_UNKNOWN, HAK_CODE_BUILD_ID, HAK_CODE_HASH };

// Constant once it is in its bucket.
struct hak_code_object {
    uintptr_t start;
    uintptr_t end;
    uint32_t kind;      // enum hak_code_kind
    uint64_t head_hash; // of the first HAK_CODE_HEAD_BYTES
    uint32_t id_bytes;
    uint32_t id_offset; // from `start`
    uint8_t id[HAK_CODE_ID_MAX];
    uint32_t next; // in its bucket; 0: none
    uint32_t path_bytes;
    char path[]; // as in /proc/self/maps; not ended by 0
};

struct hak_code {
    _Atomic(uint32_t) count;                                     // of entries that were begun
    _Atomic(struct hak_code_object *) entries[HAK_CODE_OBJECTS]; // the first is unused
};
HAK_INTERNAL extern struct hak_code hak_code;

// The entry with a number that this thread has from hak_code_place.
HAK_INLINE const struct hak_code_object *hak_code_entry(uint32_t number)
{
    return hak_load_relaxed(&hak_code.entries[number]);
}

// The objects that were found last, as most frames of a stack are in a few objects. Zeros at first.
enum { HAK_CODE_HINTS = 4 };
struct hak_code_hint {
    struct {
        uintptr_t start;
        uintptr_t end;
        uintptr_t number;
    } last[HAK_CODE_HINTS];
    unsigned next;  // to be overwritten
    bool is_quiet;  // no file is read for an entry: the caller may be in a sandbox
    bool has_locks; // no entry is made, as that takes the pool's lock: the caller may hold it
};

// The place of a return address.
HAK_INTERNAL uintptr_t hak_code_place(uintptr_t return_address, struct hak_code_hint *hint);
