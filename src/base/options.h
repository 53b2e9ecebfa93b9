// options.h -- the option values.
//
// Layer     base
// Threads   any; single words, read and written relaxed.
//
// A value is the default of options.def, until somebody sets it, or until what the machine has to
// give is read and makes another default (slab/defaults.c).
#ifndef HAK_BASE_OPTIONS_H
#define HAK_BASE_OPTIONS_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct hak_options {
#define HAK_OPTION(name, initial, min, max, help) _Atomic(uint64_t) name;
#include "base/options.def"
#undef HAK_OPTION
};

HAK_INTERNAL extern struct hak_options hak_options;

// Set one of hak_options for the program or its user.
HAK_INTERNAL void hak_option_choose(_Atomic(uint64_t) *option, uint64_t value);
// Give it another default: in force unless it was chosen.
HAK_INTERNAL void hak_option_fit(_Atomic(uint64_t) *option, uint64_t value);

#endif
