// table.c -- see table.h.
#include "meta/table.h"

#include "meta/pool.h"

// Of two threads that make it at the same time, one gives its own back.
void *hak_table_make(_Atomic(void *) *table, size_t bytes)
{
    void *made = hak_pool_take(bytes);
    void *found = NULL;
    if (made == NULL) {
        return hak_table_find(table);
    }
    while (found == NULL) {
        if (hak_cas_release(table, &found, made)) { // pairs with: hak_table_find
            return made;
        }
    }
    hak_pool_give(made, bytes);
    return hak_table_find(table);
}
