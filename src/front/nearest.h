// nearest.h -- which of some names somebody may have meant.
//
// Threads   any; no state.
#pragma once

#include "base/compiler.h"

struct hak_nearest {
    const char *wanted; // in either case, not ended by a 0
    size_t length;
    const char *name; // the nearest so far; NULL: none is near
    size_t distance;  // its letters to change, plus one more for what is too far
};

HAK_INTERNAL struct hak_nearest hak_nearest_start(const char *wanted, size_t length);
HAK_INTERNAL void hak_nearest_try(struct hak_nearest *nearest, const char *name);
