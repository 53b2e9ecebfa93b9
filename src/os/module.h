// module.h -- which file is mapped at an address.
//
// Threads   any, also in a signal handler: it reads /proc/self/maps, and nothing of the dynamic linker's.
#pragma once

#include "base/compiler.h"

struct hak_module {
    char path[256];   // "?" when there is none
    uintptr_t offset; // in that file; without one, the address
};

HAK_INTERNAL void hak_module_of(uintptr_t address, struct hak_module *module);

// Write the path of the file that is mapped at the address, as the kernel has it, into `path`: at most `bytes` of it, without
// a 0 at its end. Returns the length of the whole path; 0: there is none.
HAK_INTERNAL size_t hak_module_path(uintptr_t address, char *path, size_t bytes);
