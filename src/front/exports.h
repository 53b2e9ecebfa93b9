// exports.h -- what a loaded object exports, read as the dynamic linker reads it.
//
// Threads   any; the object has to stay loaded.
//
// The table of hashes is as GNU's linkers write it: four numbers, a filter, a bucket for each remainder, and for each symbol its
// hash, whose last bit ends a bucket.
#pragma once

#include <link.h>

#include "base/compiler.h"

struct hak_exports {
    ElfW(Addr) base;
    ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *buckets;
    const uint32_t *hashes; // of symbols[first]
    uint32_t bucket_count;
    uint32_t first;
};

// Of the object at `base` with this dynamic section. False when it has no such table.
HAK_INTERNAL bool hak_exports_read(struct hak_exports *exports,
                                   ElfW(Addr) base,
                                   const ElfW(Dyn) * dynamic);
// The first symbol of that name behind `before` (0: of all), of which there may be several versions; 0: there is none.
HAK_INTERNAL uint32_t hak_exports_next(const struct hak_exports *exports,
                                       const char *name,
                                       uint32_t before);
