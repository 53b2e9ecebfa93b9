// arms.c -- see arms.h.
#include "base/arms.h"

struct hak_arms hak_arms;
