// number.h -- numbers in text: in the kernel's files, in options, in rules.
//
// Threads   any; no state.
#pragma once

#include "base/compiler.h"

// Read the number at *text, in digits of the base (10 or 16), and move *text behind it. False, and nothing changes, if
// there is none or it is too large.
HAK_INTERNAL bool hak_number_take(const char **text, unsigned base, uint64_t *number);

// The decimal number that follows `name`, after blanks and a colon. `otherwise` if there is none: `name` is missing, or
// "max" or "unlimited" follows.
HAK_INTERNAL uint64_t hak_number_behind(const char *text, const char *name, uint64_t otherwise);
