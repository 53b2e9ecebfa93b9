// environment.h -- options from the environment.
//
// Layer     front
#ifndef HAK_FRONT_ENVIRONMENT_H
#define HAK_FRONT_ENVIRONMENT_H

#include "base/compiler.h"

// Read the options that HAKMEM_<NAME>, the list HAKMEM_OPTIONS and the file HAKMEM_CONFIG set, and make
// the mode's defaults the defaults. Ignored in set-user-ID programs. Once, before the program's main.
HAK_INTERNAL void hak_environment_read(char **environment);

#endif
