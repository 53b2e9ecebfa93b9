// environment.h -- options, and other programs' variables, from the environment.
#pragma once

#include "base/compiler.h"

// Read the options that HAKMEM_<NAME>, the list HAKMEM_OPTIONS and the file HAKMEM_CONFIG set, and make
// the mode's defaults the defaults. Ignored in set-user-ID programs. Once, before the program's main.
HAK_INTERNAL void hak_environment_read(char **environment);

// The value of a variable of another program, such as a service manager, or NULL; also NULL in set-user-ID programs. Valid until
// the program's main, which may overwrite its environment.
HAK_INTERNAL const char *hak_environment_value(const char *name);
