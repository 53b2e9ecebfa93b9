// collapse.c -- see collapse.h.
#include "slab/collapse.h"

#include "base/bits.h"
#include "base/options.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/density.h"
#include "slab/hooks.h"
#include "slab/price.h"
#include "slab/under_way.h"
#include "slab/units.h"

// A huge page's range that has small pages.
struct small_pages {
    struct hak_super *super;
    char *start;
    uint64_t units;
    size_t written;   // bytes in slabs whose blocks were handed out
    uint64_t unknown; // units in which only their content shows what is written
};

// How many superslabs are looked at, from the oldest on.
enum { LOOKS = 16 };
#define WRITTEN_LEAST (HAK_HUGE_BYTES / 8 * 7)

// Superslabs mapped before this time of hak_arena.clock may share their pages with another process.
static _Atomic(uint32_t) shared_before;

void hak_collapse_note_fork(void)
{
    hak_store_relaxed(&shared_before, hak_load_relaxed(&hak_arena.clock) + 1);
}

static struct small_pages small_pages_of(struct hak_super *super, uint64_t units)
{
    const unsigned first = hak_lowest_bit(units);
    struct small_pages pages = {super, super->base + first * HAK_UNIT_BYTES, units, 0, 0};
    for (unsigned unit = first; unit < first + HAK_HUGE_UNITS; unit++) {
        const char *start = super->base + unit * HAK_UNIT_BYTES;
        const struct hak_class *info = hak_density_class(super, start);
        if (info != NULL) {
            const size_t handed_out =
                hak_load_relaxed(&super->slabs[unit].fresh) * (size_t)info->bytes;
            pages.written += hak_least(handed_out, HAK_UNIT_BYTES);
        } else {
            pages.unknown |= UINT64_C(1) << unit;
        }
    }
    return pages;
}

// Such a range in the superslab that may be collapsed, as far as is known; and note that it was looked for. With units = 0: none.
static struct small_pages choose_in(struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock) HAK_UNPROVEN
{
    struct small_pages pages = {.units = 0};
    if (super->is_mapping || super->mapped_at < hak_load_relaxed(&shared_before)) {
        return pages;
    }
    struct hak_shard *shard = hak_arena_try_shard_of(super);
    if (shard == NULL) {
        return pages;
    }
    const uint64_t no =
        super->free_units | super->purging_units | super->huge_units | super->settled_units;
    for (uint64_t left = hak_super_whole_pages(~no); left != 0 && pages.units == 0;) {
        const uint64_t units = hak_super_pages_of(left & (~left + 1)); // of the first one
        pages = small_pages_of(super, units);
        const size_t most = pages.written + hak_count_bits(pages.unknown) * HAK_UNIT_BYTES;
        pages.units = most >= WRITTEN_LEAST ? units : 0;
        super->settled_units |= pages.units;
        hak_super_place(super)->collapsing_units |= pages.units;
        left &= ~units;
    }
    hak_lock_drop(&shard->lock);
    return pages;
}

// Is enough of it written, by one page of each unit that is not known?
static bool are_written(const struct small_pages *pages)
{
    size_t written = pages->written;
    for (uint64_t left = pages->unknown; left != 0; left &= left - 1) {
        const char *unit =
            pages->start + (hak_lowest_bit(left) - hak_lowest_bit(pages->units)) * HAK_UNIT_BYTES;
        written += hak_density_is_unit_written(unit) ? HAK_UNIT_BYTES : 0;
    }
    return written >= WRITTEN_LEAST;
}

// The lock of the superslab's shard, taken. It may move to another shard meanwhile.
static struct hak_shard *lock_shard_of(const struct hak_super *super) HAK_UNPROVEN
{
    for (;;) {
        struct hak_shard *shard = hak_arena_shard_of(super);
        hak_lock_take(&shard->lock);
        if (hak_arena_shard_of(super) == shard) {
            return shard;
        }
        hak_lock_drop(&shard->lock);
    }
}

// All of it is resident now, also what was freed and purged meanwhile.
static void note_collapsed_locked(struct hak_shard *shard,
                                  struct hak_super *super,
                                  uint64_t units,
                                  char *start) HAK_REQUIRES(&shard->lock)
{
    hak_units_use_locked(shard, super, 0, units);
    hak_super_place(super)->refilled_units |= super->purging_units & units;
    const uint64_t no = super->free_units | super->purging_units | super->huge_units;
    if ((no & units) == 0) {
        super->huge_units |= units;
    } else {
        hak_os_want_huge(start, HAK_HUGE_BYTES, false);
    }
}

// The superslab was not released meanwhile (super_unmap_locked).
static void end_collapse(const struct small_pages *pages,
                         bool is_collapsed,
                         uint64_t number) HAK_UNPROVEN
{
    struct hak_shard *shard = lock_shard_of(pages->super);
    hak_super_place(pages->super)->collapsing_units &= ~pages->units;
    if (is_collapsed) {
        note_collapsed_locked(shard, pages->super, pages->units, pages->start);
    }
    hak_lock_take(&hak_arena.lock);
    hak_under_way_end_locked(number);
    hak_lock_drop(&hak_arena.lock);
    hak_lock_drop(&shard->lock);
    hak_under_way_tell();
}

// The kernel first waits until each processor has emptied its list of new pages: most of a second, if a program of real-time
// priority keeps one for itself. So a collapse that took so many times the limit is the last one.
enum { WAITS_FOR = 50 };
static _Atomic(bool) has_waited;

static bool collapse(const struct small_pages *pages)
{
    const uint64_t limit_ns = hak_price_limit_ns();
    const uint64_t begin = limit_ns != 0 ? hak_os_about_now_ns() : 0;
    const bool is_collapsed = hak_os_collapse(pages->start, HAK_HUGE_BYTES);
    if (limit_ns != 0) {
        hak_price_note(begin, limit_ns);
        if (hak_os_about_now_ns() - begin > WAITS_FOR * limit_ns) {
            hak_store_relaxed(&has_waited, true);
        }
    }
    return is_collapsed;
}

void hak_collapse_one(void)
{
    if (hak_load_relaxed(&hak_options.thp) != HAK_THP_AUTO || hak_hook_hardens() ||
        hak_price_is_high() || hak_load_relaxed(&has_waited)) {
        return;
    }
    struct small_pages pages = {.units = 0};
    hak_lock_take(&hak_arena.lock);
    struct hak_list *link = hak_arena.all.next;
    for (unsigned looks = 0; link != &hak_arena.all && looks < LOOKS && pages.units == 0;
         looks++, link = link->next) {
        pages = choose_in(HAK_LIST_ITEM(link, struct hak_super, all_link));
    }
    // As with memory that is being given back, a request that would fail waits for the superslab.
    const uint64_t number = pages.units != 0 ? hak_under_way_begin_locked() : 0;
    hak_lock_drop(&hak_arena.lock);
    if (pages.units != 0) {
        end_collapse(&pages, are_written(&pages) && collapse(&pages), number);
    }
}
