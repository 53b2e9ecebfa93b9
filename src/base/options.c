// options.c -- the defaults.
#include "base/options.h"

struct hak_options hak_options = {
#define HAK_OPTION(name, initial, min, max, help) .name = (initial),
#include "base/options.def"
#undef HAK_OPTION
};
