// options.h -- the option values.
//
// Layer     base
// Threads   written while the library starts, read-only afterwards.
#ifndef HAK_BASE_OPTIONS_H
#define HAK_BASE_OPTIONS_H

#include <stdint.h>

#include "base/compiler.h"

struct hak_options {
#define HAK_OPTION(name, initial, min, max, help) uint64_t name;
#include "base/options.def"
#undef HAK_OPTION
};

HAK_INTERNAL extern struct hak_options hak_options;

#endif
