// interpreter.h -- the CPython in this process: where it is, and where the fields of its structs lie.
//
// Owns      hak_interpreter: the data of the first interpreter that was seen on a stack.
// Threads   any, also in a signal handler: no lock, no allocation, nothing of the dynamic linker's.
// Fails     an interpreter whose version is not in the tables is ignored.
//
// From 3.13 on an interpreter publishes where its fields lie (_Py_DebugOffsets, the first thing in _PyRuntime), but the order
// of these offsets changes with each version. The offsets of 3.11 and 3.12 are in a table here.
#pragma once

#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "python/pages.h"

// Offsets: of fields in their structs.
enum hak_interpreter_field {
    HAK_PYTHON_FINALIZING, // in _PyRuntime: the thread that ends it; 0: none
    HAK_PYTHON_CFRAME,   // in a thread's state: where `frame` lies instead; 0: in the state itself
    HAK_PYTHON_FRAME,    // in a thread's state: the innermost frame
    HAK_PYTHON_THREAD,   // in a thread's state: pthread_self of the thread
    HAK_PYTHON_PREVIOUS, // in a frame: the caller's
    HAK_PYTHON_CODE,     // in a frame: its code object, or None
    HAK_PYTHON_INSTRUCTION, // in a frame: where it is
    HAK_PYTHON_OWNER,       // in a frame: whose it is, one byte
    HAK_PYTHON_IS_ENTRY, // in a frame: C has called it, one byte; 0: a frame without code says so
    HAK_PYTHON_COPY, // in a frame: which copy of the instructions it runs, four bytes; 0: there is one only
    HAK_PYTHON_FILE,        // in a code object: a str
    HAK_PYTHON_NAME,        // in a code object: a str
    HAK_PYTHON_LINES,       // in a code object: a bytes
    HAK_PYTHON_FIRST_LINE,  // in a code object: four bytes
    HAK_PYTHON_START,       // in a code object: its instructions
    HAK_PYTHON_COPIES,      // in a code object: an array of the copies; 0: there is one only
    HAK_PYTHON_TYPE,        // in an object
    HAK_PYTHON_BYTES_COUNT, // in a bytes
    HAK_PYTHON_BYTES,       // in a bytes
    HAK_PYTHON_STATE,       // in a str
    HAK_PYTHON_LENGTH,      // in a str
    HAK_PYTHON_TEXT,        // in a str of ASCII
    HAK_PYTHON_FIELDS,
};

// From this owner on a frame has no code: it only marks that C has called the interpreter.
enum { HAK_PYTHON_OWNER_NONE = 3 };

// Constant once `number` is set.
struct hak_interpreter {
    _Atomic(uint32_t) number; // of its object in hak_code; 0: none
    bool has_copies;          // threads run copies of the instructions: there is no global lock
    bool
        has_global_current; // `current` is that of the thread which holds the lock, not this thread's
    unsigned wide_bytes;    // the text of a str lies so much further on if it is not ASCII
    unsigned kind_shift;    // of bits in a str's state
    uintptr_t runtime;
    uintptr_t code_type;    // the type of code objects
    void *(*current)(void); // the state of the thread that runs Python, or NULL
    void *(*own)(void);     // the first state that this thread got, or NULL
    uint16_t at[HAK_PYTHON_FIELDS];
    uint16_t frame_bytes; // for the fields of a frame, and below of a code object
    uint16_t code_bytes;
};

HAK_INTERNAL extern struct hak_interpreter hak_interpreter;

// Is the interpreter on a stack with these places? Looks into each object that was not seen before.
HAK_INTERNAL bool hak_interpreter_is_on(const uintptr_t *places, unsigned count);

// This thread's innermost frame, 0: it has none, or it is not safe to look.
HAK_INTERNAL uintptr_t hak_interpreter_frame(struct hak_pages *pages);

// A field of 4 bytes, or of 8, in memory that can be read.
HAK_INLINE uint32_t hak_interpreter_half(uintptr_t of, enum hak_interpreter_field field)
{
    uint32_t half;
    memcpy(&half, (const void *)(of + hak_interpreter.at[field]), sizeof half);
    return half;
}

HAK_INLINE uintptr_t hak_interpreter_whole(uintptr_t of, enum hak_interpreter_field field)
{
    uintptr_t whole;
    memcpy(&whole, (const void *)(of + hak_interpreter.at[field]), sizeof whole);
    return whole;
}

// The same at any address; 0 if it cannot be read.
HAK_INLINE uintptr_t hak_interpreter_word(struct hak_pages *pages,
                                          uintptr_t of,
                                          enum hak_interpreter_field field)
{
    return (uintptr_t)hak_pages_number(pages, of + hak_interpreter.at[field], sizeof(uintptr_t));
}
