// ranges.c -- see ranges.h and docs/decisions/0019.
#include "slab/ranges.h"

uint64_t hak_ranges_purge(const struct hak_ranges *all)
{
    const bool lazily = hak_free_policy() == HAK_FREE_LAZILY;
    if (!lazily && hak_load_relaxed(&hak_options.batch_madvise) != 0) {
        return hak_os_purge_ranges(all->ranges, all->count);
    }
    uint64_t done = 0;
    for (unsigned i = 0; i < all->count; i++) {
        const struct hak_range *range = &all->ranges[i];
        const bool is_done = lazily ? hak_os_purge_lazily(range->start, range->bytes)
                                    : hak_os_purge(range->start, range->bytes);
        done |= (uint64_t)is_done << i;
    }
    return done;
}
