// frame_table.h -- how to get from a frame to its caller's, from the compiler's unwind tables.
//
// Threads   any; it only reads what the dynamic linker has mapped.
// Fails     HAK_FRAME_UNKNOWN: no table. HAK_FRAME_END also if the rule is one that only a debugger could
//           follow: a signal's frame, hand-written code.
//
// The format is DWARF's call frame information in the form of the Linux Standard Base (.eh_frame and
// .eh_frame_hdr). Only three registers count for a walk: stack pointer, frame pointer, return address.
#pragma once

#include "base/compiler.h"

enum hak_frame_kind {
    HAK_FRAME_UNKNOWN, // the tables say nothing about this code
    HAK_FRAME_END,     // the outermost frame
    HAK_FRAME_STACK,   // the caller's frame ends at stack pointer + offset
    HAK_FRAME_POINTER, // … at frame pointer + offset
    HAK_FRAME_SAVED,   // … at what lies at frame pointer + offset
};

enum { HAK_FRAME_AT_POINTER = 1 };

struct hak_frame_rule {
    enum hak_frame_kind kind;
    int32_t offset;
    // From the end of the caller's frame:
    int32_t return_offset;  // where the return address lies
    int32_t pointer_offset; // where the caller's frame pointer lies; 0: it is still in its register
                            // HAK_FRAME_AT_POINTER: where the frame pointer points to
};

// The rule at the instruction before `return_address`.
HAK_INTERNAL struct hak_frame_rule hak_frame_table_rule_of(uintptr_t return_address);
