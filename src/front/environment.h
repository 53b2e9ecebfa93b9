// environment.h -- options, and what others say, from the environment.
#pragma once

#include "base/compiler.h"

// Read the options that HAKMEM_<NAME>, the list HAKMEM_OPTIONS and the file HAKMEM_CONFIG set, and make
// the mode's defaults the defaults. Ignored in set-user-ID programs. Once, before the program's main.
HAK_INTERNAL void hak_environment_read(char **environment);

// What another program has set for its service, or NULL. Until the program's main, which may write over it; ignored likewise.
HAK_INTERNAL const char *hak_environment_value(const char *name);
