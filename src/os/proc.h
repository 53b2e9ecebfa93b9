// proc.h -- single numbers out of the kernel's files.
//
// Threads   any.
// Fails     never; what cannot be read is `otherwise`.
#pragma once

#include "base/compiler.h"

// The first number behind `name` in a file, of which the first two KiB are looked at; "": the first in the file.
HAK_INTERNAL uint64_t hak_proc_number(const char *path, const char *name, uint64_t otherwise);
