// module.h -- which file an address is of.
//
// Threads   any, also in a signal handler: it reads /proc/self/maps, and nothing of the dynamic linker's.
#pragma once

#include "base/compiler.h"

struct hak_module {
    char path[256];   // "?" when it is of none
    uintptr_t offset; // in that file; else the address
};

HAK_INTERNAL void hak_module_of(uintptr_t address, struct hak_module *module);

// The path of the file that is mapped at the address, as the kernel writes it: its length, of which as much is in
// `path` as `bytes` has room for, without a 0 at its end. 0: there is none.
HAK_INTERNAL size_t hak_module_path(uintptr_t address, char *path, size_t bytes);
