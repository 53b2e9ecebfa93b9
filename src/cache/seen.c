// seen.c -- see seen.h.
#include "cache/seen.h"

bool hak_seen_all;
size_t hak_seen_behind_bytes;
