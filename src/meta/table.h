// table.h -- large tables of features, which are there from their first use on.
//
// Owns      nothing: a table is its feature's, and stays.
// Threads   any; the pool's lock for a moment, when a table is made.
// Fails     NULL without memory.
//
// Programs with a conservative garbage collector (guile, Inkscape, w3m) look through all writable data of each library in each
// collection, and collect the more seldom the more data there is. So no table lies there that most programs never use
// (golden/static_data). A table is behind a pointer, which is NULL until the table is made, of zeros.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"

// NULL: it was not made yet.
HAK_INLINE void *hak_table_find(_Atomic(void *) *table)
{
    return hak_load_acquire(table); // pairs with: hak_table_make
}

HAK_INTERNAL HAK_COLD void *hak_table_make(_Atomic(void *) *table, size_t bytes);

// The same, but make it of so many bytes if it is not there.
HAK_INLINE void *hak_table_take(_Atomic(void *) *table, size_t bytes)
{
    void *found = hak_table_find(table);
    return HAK_LIKELY(found != NULL) ? found : hak_table_make(table, bytes);
}
