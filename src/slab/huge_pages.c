// huge_pages.c -- see huge_pages.h.
#include "slab/huge_pages.h"

#include "base/bits.h"
#include "base/options.h"
#include "meta/map.h"
#include "os/os.h"
#include "slab/density.h"
#include "slab/price.h"
#include "slab/queues.h"

static bool are_possible(void)
{
    return hak_load_relaxed(&hak_arena.grants_huge) &&
           hak_load_relaxed(&hak_options.thp) != HAK_THP_NEVER;
}

// Bytes of huge pages, or places of one, that are wholly free. A hint.
static size_t free_pages_bytes(void)
{
    size_t count = 0;
    for (unsigned i = 0; i <= hak_arena.shard_mask; i++) {
        count += hak_load_relaxed(&hak_arena.shards[i].free_pages);
    }
    return count * HAK_HUGE_BYTES;
}

// Is the heap large, and are most of its units in use? A block of a huge page or more needs only a large heap: it mostly has the
// superslabs that are mapped for it to itself, and leaves unused what is behind its end, new slabs maybe the whole growth. Wholly
// free huge pages do not count: a heap that shrank and grows again is no sparser.
static bool is_large(size_t bytes)
{
    const bool for_one_block = bytes >= HAK_HUGE_BYTES;
    const size_t alone = hak_load_relaxed(&hak_arena.mapping_bytes);
    const size_t used = hak_arena_used_bytes() + alone + (for_one_block ? bytes : 0);
    const size_t start = hak_load_relaxed(&hak_options.huge_start_bytes) / (for_one_block ? 2 : 1);
    if (used < start || hak_price_is_high()) {
        return false;
    }
    const size_t mapped = hak_load_relaxed(&hak_arena.super_bytes) + alone;
    return for_one_block || used + free_pages_bytes() / 4 * 3 >= mapped / 4 * 3;
}

bool hak_huge_pages_wanted(size_t bytes, bool is_new)
{
    const uint64_t option = hak_load_relaxed(&hak_options.thp);
    if (!are_possible() || option != HAK_THP_AUTO || !is_large(bytes)) {
        return are_possible() && option == HAK_THP_ALWAYS;
    }
    if (hak_load_relaxed(&hak_options.deterministic) != 0) {
        return true;
    }
    return hak_density_is_high(bytes, is_new);
}

static void want_huge(const struct hak_super *super, uint64_t units, bool wants_huge)
{
    hak_os_want_huge(super->base + hak_lowest_bit(units) * HAK_UNIT_BYTES,
                     hak_count_bits(units) * HAK_UNIT_BYTES,
                     wants_huge);
}

// The pages are wholly free and untouched. The caller holds the shard's lock.
static void ask(struct hak_super *super, uint64_t units)
{
    if ((super->purged_units & units) != 0) {
        hak_os_drop_page_tables(super->base + hak_lowest_bit(units) * HAK_UNIT_BYTES,
                                hak_count_bits(units) * HAK_UNIT_BYTES);
    }
    want_huge(super, units, true);
    super->huge_units |= units;
    super->huge_new_units |= units;
}

void hak_huge_pages_decide_locked(struct hak_shard *shard,
                                  struct hak_super *super,
                                  uint64_t units,
                                  bool wants_huge) HAK_REQUIRES(&shard->lock)
{
    const uint64_t untouched = hak_super_pages_of(units) &
                               hak_super_whole_pages(super->free_units) &
                               ~hak_super_pages_of(super->dirty_units);
    const uint64_t huge = untouched & super->huge_units;
    super->huge_new_units |= huge;
    if (huge != 0 && hak_price_is_high()) {
        hak_huge_pages_end_locked(shard, super, huge);
    }
    super->settled_units &= ~untouched;
    if (wants_huge && untouched != huge) {
        ask(super, untouched & ~huge);
    }
}

void hak_huge_pages_end_locked(struct hak_shard *shard, struct hak_super *super, uint64_t units)
    HAK_REQUIRES(&shard->lock)
{
    const uint64_t ended = super->huge_units & hak_super_pages_of(units);
    if (ended != 0) {
        want_huge(super, ended, false);
        super->huge_units &= ~ended;
        super->huge_new_units &= ~ended;
        hak_queues_note_units_locked(shard, super); // none is a part of a huge page now
    }
}

void hak_huge_pages_note_holes_locked(struct hak_shard *shard,
                                      struct hak_super *super,
                                      uint64_t units) HAK_REQUIRES(&shard->lock)
{
    super->settled_units |= hak_super_pages_of(units); // whatever the option is: it may change
    if (hak_load_relaxed(&hak_options.thp) == HAK_THP_AUTO) {
        hak_huge_pages_end_locked(shard, super, units);
    }
}

bool hak_huge_pages_may_have_holes(const struct hak_run *slab)
{
    struct hak_super *super = hak_map_super(slab->base);
    const unsigned unit = (unsigned)(slab - super->slabs);
    struct hak_shard *shard = hak_arena_shard_of(super);
    const uint64_t units = hak_bit_range(unit, slab->units);
    hak_lock_take(&shard->lock);
    const bool may = (hak_super_place(super)->collapsing_units & units) == 0;
    if (may) {
        hak_huge_pages_note_holes_locked(shard, super, units);
    }
    hak_lock_drop(&shard->lock);
    return may;
}

bool hak_huge_pages_are_dear(char *page)
{
    const uint64_t limit_ns = hak_price_limit_ns();
    if (limit_ns == 0) {
        return false;
    }
    const uint64_t begin = hak_os_about_now_ns();
    *(volatile char *)page = 0; // a read would map the kernel's zero page
    return hak_price_note(begin, limit_ns);
}
