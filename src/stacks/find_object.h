// find_object.h -- the C library's function that tells, without a lock, which file an address belongs to
//
// Included  by files of its layer only.
//
// glibc has it since 2.35. A build with older headers may run with a newer C library, so it is declared here. If the C library
// has no such function, its address is NULL.
#pragma once

#include <link.h>

// As in dlfcn.h, on processors where the C library notes no base address for data.
struct hak_found_object {
    unsigned long long flags;
    void *start;
    void *end;
    struct link_map *map;
    void *frame_table;
    unsigned long long reserved[7];
};

// Returns 0 if there is such a file.
extern int hak_find_object(void *address, struct hak_found_object *found) __asm__("_dl_find_object")
    __attribute__((weak));
