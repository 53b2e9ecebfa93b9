// ranges.c -- see ranges.h and docs/decisions/0039.
#include "slab/ranges.h"

#include "meta/size_class.h"

// The options at one moment: each may change at any time.
struct way {
    bool is_lazy;
    bool is_together; // all ranges with one call; no such call purges lazily
};

static struct way way_now(void)
{
    const bool is_lazy = hak_ranges_policy() == HAK_FREE_LAZILY;
    return (struct way){is_lazy, !is_lazy && hak_load_relaxed(&hak_options.batch_madvise) != 0};
}

static bool are_enough(const struct hak_ranges *all, struct way way)
{
    return all->bytes >= (way.is_together ? HAK_UNIT_BYTES : 1);
}

bool hak_ranges_are_enough(const struct hak_ranges *all)
{
    return are_enough(all, way_now());
}

struct hak_purged hak_ranges_purge(const struct hak_ranges *all)
{
    const struct way way = way_now();
    struct hak_purged purged = {.is_tried = are_enough(all, way), .is_zeroed = !way.is_lazy};
    if (!purged.is_tried) {
        return purged;
    }
    if (way.is_together) {
        purged.done = hak_os_purge_ranges(all->ranges, all->count);
        return purged;
    }
    for (unsigned i = 0; i < all->count; i++) {
        const struct hak_range *range = &all->ranges[i];
        const bool is_done = way.is_lazy ? hak_os_purge_lazily(range->start, range->bytes)
                                         : hak_os_purge(range->start, range->bytes);
        purged.done |= (uint64_t)is_done << i;
    }
    return purged;
}
