// number.h -- numbers in text: in files of the kernel's, in options, in rules.
//
// Threads   any; no state.
#pragma once

#include "base/compiler.h"

// The number at *text, of digits of the base (10 or 16), which then is behind it. False, and nothing changed, when there is
// none or it is too large.
HAK_INTERNAL bool hak_number_take(const char **text, unsigned base, uint64_t *number);

// The decimal number behind `name`, and behind blanks and a colon between them. `otherwise` when there is none: the name is
// not there, or what follows is "max" or "unlimited".
HAK_INTERNAL uint64_t hak_number_behind(const char *text, const char *name, uint64_t otherwise);
