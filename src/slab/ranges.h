// ranges.h -- page ranges to be purged together.
//
// Threads   any; the ranges are the caller's.
#pragma once

#include "base/options.h"
#include "os/os.h"

enum hak_free_policy { HAK_FREE_NOW, HAK_FREE_LAZILY, HAK_FREE_AND_UNMAP, HAK_FREE_KEEP };

HAK_INLINE enum hak_free_policy hak_ranges_policy(void)
{
    return (enum hak_free_policy)hak_load_relaxed(&hak_options.free_policy);
}

struct hak_ranges {
    struct hak_range ranges[HAK_RANGES_MAX];
    unsigned count;
    size_t bytes; // sum over the ranges
};

// Add a range; there must be room.
HAK_INLINE void hak_ranges_add(struct hak_ranges *all, void *start, size_t bytes)
{
    all->ranges[all->count++] = (struct hak_range){start, bytes};
    all->bytes += bytes;
}
// Drop all ranges but the first `count`.
HAK_INLINE void hak_ranges_drop(struct hak_ranges *all, unsigned count)
{
    while (all->count > count) {
        all->bytes -= all->ranges[--all->count].bytes;
    }
}

// Are they worth a system call? A call for all of them (option batch_madvise) is not made for less than a unit.
HAK_INTERNAL bool hak_ranges_are_enough(const struct hak_ranges *all);

// The result of a purge: the options may have changed since.
struct hak_purged {
    uint64_t done;  // a bit for each range that was purged
    bool is_tried;  // the ranges were worth a system call
    bool is_zeroed; // purged pages read as zero; false after a lazy purge
};
// Purge the ranges as the options free_policy and batch_madvise say, if they are worth a system call.
HAK_INTERNAL struct hak_purged hak_ranges_purge(const struct hak_ranges *all);
