// variants.c -- see variants.h.
#include "base/variants.h"

struct hak_variants hak_variants;
