// line_table.h -- the line of an instruction, from CPython's table.
//
// Threads   any; it only reads.
//
// The table is that of CPython 3.11 and later (co_linetable): an entry for each run of code units, in order. Its first byte
// has the highest bit set, then four bits that say how the rest is written, and the number of units less one.
#pragma once

#include "base/compiler.h"

// The line of the code unit with this number, in a function that begins at line `first`. 0: it has none.
HAK_INTERNAL uint32_t hak_line_table_line(const uint8_t *table,
                                          size_t bytes,
                                          uint32_t first,
                                          uint64_t unit);
