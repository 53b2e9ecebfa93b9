// python.h -- the frames of a Python program, innermost first, for a thread that is inside of malloc.
//
// Threads   any: no lock of the interpreter's, and none of ours but the pool's when a function is seen for the first time.
// Fails     with fewer frames, or none.
//
// The interpreter has called malloc, maybe while it pushes a frame or makes a code object. So only its two functions that return
// the thread's state are called, nothing is changed, and no pointer is followed before the kernel has said that memory can be read
// there. docs/decisions/0050 says why.
#pragma once

#include "base/compiler.h"

enum {
    HAK_PYTHON_FRAMES = 128, // of a stack, the innermost
    // Bits in the place of a frame (functions.h):
    HAK_PYTHON_CALLED_BIT = 47, // set if C has called it, not another frame
    HAK_PYTHON_CUT_BIT = 46,    // set in the last of HAK_PYTHON_FRAMES, if there are more
};

// Add the places of Python frames behind `count` places of the native stack. Returns how many were added.
HAK_INTERNAL unsigned hak_python_add(uintptr_t *places, unsigned count, uint64_t now_ns);
