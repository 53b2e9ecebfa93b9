// ranges.c -- see ranges.h and docs/decisions/0019.
#include "slab/ranges.h"

#include "meta/size_class.h"

// There is no call that gives back many ranges lazily.
static bool go_together(void)
{
    return hak_free_policy() != HAK_FREE_LAZILY &&
           hak_load_relaxed(&hak_options.batch_madvise) != 0;
}

bool hak_ranges_are_enough(const struct hak_ranges *all)
{
    return all->bytes >= (go_together() ? HAK_UNIT_BYTES : 1);
}

uint64_t hak_ranges_purge(const struct hak_ranges *all)
{
    if (!hak_ranges_are_enough(all)) {
        return 0;
    }
    if (go_together()) {
        return hak_os_purge_ranges(all->ranges, all->count);
    }
    const bool lazily = hak_free_policy() == HAK_FREE_LAZILY;
    uint64_t done = 0;
    for (unsigned i = 0; i < all->count; i++) {
        const struct hak_range *range = &all->ranges[i];
        const bool is_done = lazily ? hak_os_purge_lazily(range->start, range->bytes)
                                    : hak_os_purge(range->start, range->bytes);
        done |= (uint64_t)is_done << i;
    }
    return done;
}
