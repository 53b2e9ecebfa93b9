// A library with thread-local storage of its own, for promises/libraries_with_thread_storage_come_and_go.c.
#include <stddef.h>

int *ht_thread_storage(void);

static _Thread_local int storage[5000];

int *ht_thread_storage(void)
{
    return storage;
}
