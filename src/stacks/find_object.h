// find_object.h -- the C library's way to ask, without a lock, which file an address is of
//
// Layer     stacks (may include: base, os); only files of this layer include it.
//
// It came with glibc 2.35. What is built with older headers runs under newer C libraries, too, so its form is written down here;
// where there is no such function, its address is NULL.
#pragma once

#include <link.h>

// As dlfcn.h has it, on processors where the C library notes no base of data.
struct hak_found_object {
    unsigned long long flags;
    void *start;
    void *end;
    struct link_map *map;
    void *frame_table;
    unsigned long long reserved[7];
};

// 0 when there is one.
extern int hak_find_object(void *address, struct hak_found_object *found) __asm__("_dl_find_object")
    __attribute__((weak));
