// ranges.h -- pages on their way back to the system, some ranges at a time.
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
    size_t bytes; // of them all
};

// Put one more in; there is room.
HAK_INLINE void hak_ranges_add(struct hak_ranges *all, void *start, size_t bytes)
{
    all->ranges[all->count++] = (struct hak_range){start, bytes};
    all->bytes += bytes;
}

// Are they worth a system call? One for all of them (option batch_madvise) is not made for less than a unit.
HAK_INTERNAL bool hak_ranges_are_enough(const struct hak_ranges *all);

// What became of them: the options may have changed since.
struct hak_purged {
    uint64_t done;  // a bit for each range that was given back
    bool is_tried;  // they were enough
    bool is_zeroed; // what was given back reads as zero; lazily, not at once
};
// If they are enough, give them back as the options free_policy and batch_madvise say.
HAK_INTERNAL struct hak_purged hak_ranges_purge(const struct hak_ranges *all);
