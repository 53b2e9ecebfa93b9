// nearest.h -- which of several names the user may have meant.
//
// Threads   any; no state.
#pragma once

#include "base/compiler.h"

struct hak_nearest {
    const char *wanted; // in upper or lower case, without a 0 at the end
    size_t length;
    const char *name; // the nearest so far; NULL: none is near
    size_t distance;  // letters to change for that name; at first the least that is too far
};

HAK_INTERNAL struct hak_nearest hak_nearest_start(const char *wanted, size_t length);
HAK_INTERNAL void hak_nearest_try(struct hak_nearest *nearest, const char *name);
