// control.h -- the root of hakmem's metadata, for whoever looks in from outside.
//
// A tool finds the symbol `hak_control` in the process (or in its core dump), reads this struct,
// and follows its addresses. Nothing in the process has to run for that. A reader checks `magic`
// and `version` first; fields are only ever added at the end, and `bytes` says how many there are.
#ifndef HAKMEM_CONTROL_H
#define HAKMEM_CONTROL_H

#include <stdint.h>

#include "hakmem/hakmem.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HAK_CONTROL_MAGIC   "hakmem\0"
#define HAK_CONTROL_VERSION 1

struct hak_control {
    char magic[8];
    uint32_t version;
    uint32_t bytes;      // of this struct
    const char *release; // as hak_version()

    // The address map. Entry (address >> unit_log2) & *unit_mask of the table at *units, 32 bits
    // each, is 0 where nothing is in use. The word (address >> super_log2) & *super_mask of the
    // table at *supers is the address of the superslab's descriptor, or 0; whether the address
    // really lies in it, the descriptor's base and length tell.
    const void *units;
    const uint64_t *unit_mask;
    const void *supers;
    const uint64_t *super_mask;
    uint32_t unit_log2;
    uint32_t super_log2;
    uint32_t super_base_offset;  // in a superslab's descriptor: the address where it begins
    uint32_t super_bytes_offset; // and its length
};

HAKMEM_API extern const struct hak_control hak_control;

#ifdef __cplusplus
}
#endif

#endif
