// proc.h -- single numbers from files of the kernel.
//
// Threads   any.
// Fails     never; what cannot be read is `otherwise`.
#pragma once

#include "base/compiler.h"

// The first number behind `name` in the first two KiB of a file; with "", the first number in the file.
HAK_INTERNAL uint64_t hak_proc_number(const char *path, const char *name, uint64_t otherwise);
