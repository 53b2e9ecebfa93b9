// environment.h -- options from the environment.
#ifndef HAK_FRONT_ENVIRONMENT_H
#define HAK_FRONT_ENVIRONMENT_H

#include "base/compiler.h"

// Read HAKMEM_<NAME> for each option. A value that is none is reported in one line on stderr and
// the default kept. Ignored in set-user-ID programs. Once, before the program's main.
HAK_INTERNAL void hak_environment_read(char **environment);

// Where statistics go when the program ends, as HAKMEM_STATS says; empty: into no file.
HAK_INTERNAL const char *hak_stats_file(void);

#endif
