// modules.h -- the program and its libraries: their addresses, and those of their functions.
//
// Threads   any, but not from inside an allocation: it calls the dynamic linker, and reads files.
// Fails     a file that cannot be read has no functions.
#pragma once

#include "base/compiler.h"

struct hak_module {
    const char *name; // of its file, without folders
    const char *path;
    uintptr_t base; // what is added to the addresses in its file
};

// Call `visit` for each module.
HAK_INTERNAL void hak_modules_visit(void (*visit)(const struct hak_module *, void *), void *data);

// Call `visit` with the range of each function of that name in the module's table of symbols, and of the
// parts that compilers make of one ("name.part.0", "name.cold").
HAK_INTERNAL void hak_module_visit_functions(const struct hak_module *module,
                                             const char *name,
                                             void (*visit)(uintptr_t, uintptr_t, void *),
                                             void *data);
