// density.h -- do programs use the memory that they have? Which of it is written. docs/decisions/0008-huge-pages.md.
//
// Threads   any; the caller holds no lock of the arena or a shard, except for hak_density_class.
#pragma once

#include "meta/size_class.h"
#include "slab/super.h"

// Is most of the heap written, as far as the latest look tells? Unless that is recent, looks at some pages, and takes the arena's
// lock for a part of that. `is_new`: as for hak_huge_pages_wanted.
HAK_INTERNAL bool hak_density_is_high(size_t bytes, bool is_new);

// Is a page of the unit written? Which one changes evenly from call to call.
HAK_INTERNAL bool hak_density_is_unit_written(const char *unit);

// The class of the slab that the page lies in, if a block begins in each page: then every page that was handed out is written.
// NULL: a page may stay empty, or lies in no slab. (In hardened slabs all blocks count as handed out.)
HAK_INTERNAL const struct hak_class *hak_density_class(const struct hak_super *super,
                                                       const char *page);
