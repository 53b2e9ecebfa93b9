// warm.h -- memory of a virtual machine that its host has taken back.
#ifndef MEASURE_WARM_H
#define MEASURE_WARM_H

#include <stddef.h>

// Touch `mib` MiB of free memory in a process of their own, which ends at once. A host that is told
// which pages are free gives them to others; touching them again costs 3 to 15 times as much as
// touching a page that is there. After this, that is not part of what is measured. Does what it can.
void warm_memory(size_t mib);

#endif
