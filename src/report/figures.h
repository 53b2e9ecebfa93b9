// figures.h -- the statistics of the heap, summed up.
//
// Threads   any; takes all locks while it walks the slabs.
//
// The only list of figures: malloc_info, hak_stats_json and the report at the end of a program show all
// of them, under these names.
#pragma once

#include "base/compiler.h"
#include "hakmem/hakmem.h"
#include "meta/size_class.h"

// clang-format off: it never ends on such lists
#define HAK_TOTALS(X) \
    X(mapped_bytes) X(live_bytes) X(live_blocks) \
    X(cached_bytes) X(kept_bytes) X(slab_free_bytes) \
    X(unit_free_bytes) X(dirty_bytes) X(metadata_bytes) \
    X(cache_count) X(superslab_count) X(mapping_count)

// For each class: what there is now, what has moved since the start, and what was allocated while caches sampled.
#define HAK_CLASS_FIGURES(X) \
    X(slabs) X(live_blocks) X(cached_blocks) X(slab_free_blocks) \
    X(refills) X(refilled_blocks) X(spills) X(spilled_blocks) X(slabs_made) X(slabs_ended) \
    X(counted_allocations) X(counted_misses)

// Since the start.
#define HAK_COUNTERS(X) \
    X(sent_parcels) X(sent_blocks) X(opened_parcels) X(adopted_slabs) X(slow_events) \
    X(maps) X(unmaps) X(remaps) X(purges) X(purged_bytes) X(huge_advices) X(refused) \
    X(retaken_bytes) X(peak_mapped_bytes) X(failures)
// clang-format on

struct hak_class_figures {
#define HAK_FIGURE(name) uint64_t name;
    HAK_CLASS_FIGURES(HAK_FIGURE)
#undef HAK_FIGURE
};

struct hak_figures {
    struct hak_stats totals;
    bool is_walked;            // false: a lock was not free in time; only what needs none is here
    size_t mapping_bytes;      // of mapped_bytes: blocks' own mappings
    size_t mapping_live_bytes; // of live_bytes: the blocks in these
#define HAK_FIGURE(name) uint64_t name;
    HAK_COUNTERS(HAK_FIGURE)
#undef HAK_FIGURE
    struct hak_class_figures classes[HAK_SMALL_CLASSES];
};

// Walk the heap. Waits for the locks; with `wait_ms` > 0, at most so long for each.
HAK_INTERNAL void hak_figures_read(struct hak_figures *figures, unsigned wait_ms);

// All figures as one line of JSON, or as a table for people. The first returns what hak_stats_json does, the
// second the bytes written.
HAK_INTERNAL size_t hak_figures_json(const struct hak_figures *figures, char *text, size_t bytes);
HAK_INTERNAL size_t hak_figures_text(const struct hak_figures *figures, char *text, size_t bytes);

// Room for either form.
#define HAK_FIGURES_BYTES 32768
// Print the table on stderr.
HAK_INTERNAL void hak_figures_print(void);
