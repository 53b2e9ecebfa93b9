// module.h -- which file an address is of.
//
// Layer     os
// Threads   any, also in a signal handler: it reads /proc/self/maps, and nothing of the dynamic linker's.
#ifndef HAK_OS_MODULE_H
#define HAK_OS_MODULE_H

#include <stdint.h>

#include "base/compiler.h"

struct hak_module {
    char path[256];   // "?" when it is of none
    uintptr_t offset; // in that file; else the address
};

HAK_INTERNAL void hak_module_of(uintptr_t address, struct hak_module *module);

#endif
