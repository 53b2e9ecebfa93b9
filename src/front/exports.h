// exports.h -- what a loaded object exports, read as the dynamic linker reads it.
//
// Threads   any; the object has to stay loaded.
//
// The hash table is as GNU's linkers write it: four numbers, a filter, a bucket for each remainder, and a hash for each symbol.
// The lowest bit of a hash marks the last symbol of a bucket.
#pragma once

#include <link.h>

#include "base/compiler.h"

struct hak_exports {
    ElfW(Addr) base;
    ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *buckets;
    const uint32_t *hashes; // of the symbols from `first` on
    uint32_t bucket_count;
    uint32_t first;
};

// Find the exports of the object at `base` with this dynamic section. False when it has no such hash table.
HAK_INTERNAL bool hak_exports_read(struct hak_exports *exports,
                                   ElfW(Addr) base,
                                   const ElfW(Dyn) * dynamic);
// The next symbol of that name behind `before` (0: the first one); 0: there is none. A name may have several versions.
HAK_INTERNAL uint32_t hak_exports_next(const struct hak_exports *exports,
                                       const char *name,
                                       uint32_t before);
