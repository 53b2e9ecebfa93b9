// huge_pages.c -- see huge_pages.h.
#include "slab/huge_pages.h"

#include "base/bits.h"
#include "base/options.h"
#include "meta/map.h"
#include "os/os.h"
#include "slab/hooks.h"
#include "slab/queues.h"

enum { HUGE_AUTO, HUGE_NEVER, HUGE_ALWAYS }; // option thp

// After an expensive huge page we ask for none for this many times as long as it took, so they cost at most 1 % of the time.
enum { REST_TIMES = 100 };
// Or until this much was purged: the kernel has that memory at hand, and need not ask a host for it.
#define REST_BYTES HAK_MIB(64)

static _Atomic(uint64_t) rest_until;       // by hak_os_about_now_ns; 0: none was expensive
static _Atomic(uint64_t) rest_until_bytes; // of hak_os_counts.purged_bytes

// Did huge pages lately take the kernel longer than small ones?
static bool are_dear(void)
{
    const uint64_t until = hak_load_relaxed(&rest_until);
    return until != 0 && hak_os_about_now_ns() < until &&
           hak_load_relaxed(&hak_os_counts.purged_bytes) < hak_load_relaxed(&rest_until_bytes);
}

// A look visits the oldest and the newest superslabs and mappings. At each end it skips wholly free ones, up to a limit.
enum { LOOKS_AT_EACH_END = 8, PASSES_AT_EACH_END = 64, PAGES_OF_EACH = 2, WORDS_OF_A_PAGE = 16 };
// Fewer pages are not enough for a decision. A heap of huge_start_bytes has this many.
enum { PAGES_LEAST = 8 };

// What is known of some pages: how many are written, how many are empty, and which are still to be looked at.
struct look {
    unsigned written;
    unsigned empty;
    unsigned count;
    struct {
        const char *start;
        bool is_young;
    } pages[2 * LOOKS_AT_EACH_END * PAGES_OF_EACH];
};

// A number below `count`: multiples of the golden ratio are evenly spread (Knuth, The Art of Computer Programming 3, 6.4).
static size_t next_of(size_t count)
{
    static _Atomic(uint32_t) sequence;
    const uint32_t now = hak_load_relaxed(&sequence) + UINT32_C(0x9E3779B9);
    hak_store_relaxed(&sequence, now);
    return (size_t)((uint64_t)now * count >> 32);
}

static void count_page(struct look *look, bool is_written)
{
    look->written += is_written;
    look->empty += !is_written;
}

// The class of the slab that the page lies in, if a block begins in each page: then every page that was handed out is written.
// NULL: a page may stay empty, or lies in no slab. (In hardened slabs all blocks count as handed out.)
static const struct hak_class *small_class(const struct hak_super *super, const char *page)
{
    const uint32_t entry = hak_map_entry(page);
    if (super->is_mapping || !hak_map_is_small(entry) || hak_hook_hardens()) {
        return NULL;
    }
    const struct hak_class *info = &hak_classes[HAK_MAP_CLASS(entry)];
    return info->units == 1 && info->bytes <= HAK_CHUNK_BYTES ? info : NULL;
}

// The slab may end meanwhile: then the result describes the old slab or the next one.
static void choose_page_locked(const struct hak_super *super, size_t offset, struct look *look)
    HAK_REQUIRES(&hak_arena.lock)
{
    const char *page = super->base + offset;
    const struct hak_class *info = small_class(super, page);
    if (info != NULL) {
        const struct hak_run *slab = &super->slabs[offset / HAK_UNIT_BYTES];
        const size_t handed_out = hak_load_relaxed(&slab->fresh) * (size_t)info->bytes;
        count_page(look, offset % HAK_UNIT_BYTES < handed_out);
    } else {
        look->pages[look->count].start = page;
        look->pages[look->count].is_young =
            hak_load_relaxed(&hak_arena.clock) - super->mapped_at <= 1;
        look->count++;
    }
}

// The units of a superslab that are in use. All of them if it has no shard, or if the shard's lock is taken: its rank comes
// before the arena's, so we can only try it. The superslab may have moved to another shard meanwhile.
static uint64_t used_units(const struct hak_super *super) HAK_REQUIRES(&hak_arena.lock) HAK_UNPROVEN
{
    uint64_t used = ~UINT64_C(0);
    struct hak_shard *shard = hak_arena_shard_of(super);
    if (shard != NULL && hak_lock_try(&shard->lock)) {
        used = hak_arena_shard_of(super) == shard ? ~super->free_units : used;
        hak_lock_drop(&shard->lock);
    }
    return used;
}

// Free units tell nothing, so they are skipped.
static void choose_from_locked(const struct hak_list *link, bool forward, struct look *look)
    HAK_REQUIRES(&hak_arena.lock)
{
    unsigned looks = 0;
    unsigned passes = 0;
    while (link != &hak_arena.all && looks < LOOKS_AT_EACH_END && passes < PASSES_AT_EACH_END) {
        const struct hak_super *super = HAK_LIST_ITEM(link, const struct hak_super, all_link);
        const uint64_t used = used_units(super);
        for (unsigned n = 0; n < PAGES_OF_EACH && used != 0; n++) {
            const size_t offset = next_of(super->mapped_bytes / HAK_CHUNK_BYTES) * HAK_CHUNK_BYTES;
            if (super->is_mapping || (used >> offset / HAK_UNIT_BYTES & 1) != 0) {
                choose_page_locked(super, offset, look);
            }
        }
        looks += used != 0;
        passes += used == 0;
        link = forward ? link->next : link->prev;
    }
}

// A look takes up to 50 us. So its result holds for a tick of the clock, while the mapped size changes by no more than a
// sixteenth. (Two threads may look at the same time.)
static bool is_look_due(void)
{
    static _Atomic(size_t) looked_mapped = SIZE_MAX;
    static _Atomic(uint32_t) looked_at;
    const size_t before = hak_load_relaxed(&looked_mapped);
    const size_t mapped =
        hak_load_relaxed(&hak_arena.super_bytes) + hak_load_relaxed(&hak_arena.mapping_bytes);
    const uint32_t clock = hak_load_relaxed(&hak_arena.clock);
    const size_t apart = mapped > before ? mapped - before : before - mapped;
    if (apart <= before / 16 && clock == hak_load_relaxed(&looked_at)) {
        return false;
    }
    hak_store_relaxed(&looked_mapped, mapped);
    hak_store_relaxed(&looked_at, clock);
    return true;
}

// Does the page hold anything but zeros? The kernel reads it, since the program may have protected the page, and another thread
// may have unmapped it. In records, nine words in ten may be zeros.
static bool is_page_written(const char *page)
{
    bool is_written = hak_os_has_content(page);
    for (unsigned i = 1; i < WORDS_OF_A_PAGE && !is_written; i++) {
        is_written = hak_os_has_content(page + 4 * next_of(HAK_CHUNK_BYTES / 4));
    }
    return is_written;
}

// The density of the heap at the last look that saw enough pages. A heap that was freed and fills up again is taken for as
// dense as before.
enum density { DENSITY_UNKNOWN, DENSITY_SPARSE, DENSITY_DENSE };
static _Atomic(unsigned) seen_density;

static bool is_known(const struct look *look)
{
    return look->written + look->empty >= PAGES_LEAST;
}

// Is the result clear, whatever the rest of the `all` pages are?
static bool is_decided(const struct look *look, unsigned all)
{
    return is_known(look) && (2 * look->written >= all || 2 * look->empty > all);
}

// Do programs use the memory that they have? A written page is mostly not zeros, an untouched one always is. To read how much is
// resident needs a file, which a sandbox may forbid. An empty page tells nothing if it was mapped within the last tenth of a
// second: its user has had no time. Other threads may take the lock while we look.
static void look_at_pages(void)
{
    struct look look = {.count = 0};
    hak_lock_take(&hak_arena.lock);
    choose_from_locked(hak_arena.all.next, true, &look);
    choose_from_locked(hak_arena.all.prev, false, &look);
    hak_lock_drop(&hak_arena.lock);
    const unsigned all = look.written + look.empty + look.count;
    for (unsigned i = 0; i < look.count && !is_decided(&look, all); i++) {
        const bool is_written = is_page_written(look.pages[i].start);
        if (is_written || !look.pages[i].is_young) {
            count_page(&look, is_written);
        }
    }
    if (is_known(&look)) {
        hak_store_relaxed(&seen_density,
                          look.written >= look.empty ? DENSITY_DENSE : DENSITY_SPARSE);
    }
}

// Before the first look, a heap of at most this size, and at most part_bytes, may use huge pages that nobody needs.
#define PRESUMED_MOST hak_least(HAK_MIB(64), hak_load_relaxed(&hak_arena.part_bytes))

// Before the first look, a new block of at least a superslab counts as dense: it is used from its start on, so at most one huge
// page is wasted. (NumPy asks for huge pages for each array of 4 MiB.)
static bool is_dense(size_t bytes, bool is_new)
{
    const unsigned seen = hak_load_relaxed(&seen_density);
    return seen == DENSITY_DENSE ||
           (seen == DENSITY_UNKNOWN && is_new && bytes >= HAK_SUPER_BYTES &&
            hak_arena_heap_bytes() + bytes <= PRESUMED_MOST);
}

static bool are_possible(void)
{
    return hak_load_relaxed(&hak_arena.huge_pages) != HAK_HUGE_NEVER &&
           hak_load_relaxed(&hak_options.thp) != HUGE_NEVER;
}

// A run of at least a huge page mostly has the superslabs that are mapped for it to itself.
#define HUGE_BYTES (HAK_HUGE_UNITS * HAK_UNIT_BYTES)

// Bytes of huge pages, or places of one, that are wholly free. A hint.
static size_t free_pages_bytes(void)
{
    size_t count = 0;
    for (unsigned i = 0; i <= hak_arena.shard_mask; i++) {
        count += hak_load_relaxed(&hak_arena.shards[i].free_pages);
    }
    return count * HUGE_BYTES;
}

// Is the heap large, and are most of its units in use? One block needs only a large heap: it leaves unused what is behind its end,
// new slabs maybe the whole growth. Wholly free huge pages do not count: a heap that shrank and grows again is no sparser.
static bool is_large(size_t bytes)
{
    const bool for_one_block = bytes >= HUGE_BYTES;
    const size_t alone = hak_load_relaxed(&hak_arena.mapping_bytes);
    const size_t used = hak_arena_used_bytes() + alone + (for_one_block ? bytes : 0);
    const size_t start = hak_load_relaxed(&hak_options.huge_start_bytes) / (for_one_block ? 2 : 1);
    if (used < start || are_dear()) {
        return false;
    }
    const size_t mapped = hak_load_relaxed(&hak_arena.super_bytes) + alone;
    return for_one_block || used + free_pages_bytes() / 4 * 3 >= mapped / 4 * 3;
}

bool hak_huge_pages_wanted(size_t bytes, bool is_new)
{
    const uint64_t option = hak_load_relaxed(&hak_options.thp);
    if (!are_possible() || option != HUGE_AUTO || !is_large(bytes)) {
        return are_possible() && option == HUGE_ALWAYS;
    }
    if (hak_load_relaxed(&hak_options.deterministic) != 0) {
        return true;
    }
    if (is_look_due()) {
        look_at_pages();
    }
    return is_dense(bytes, is_new);
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
    if (huge != 0 && are_dear()) {
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
    if (hak_load_relaxed(&hak_options.thp) == HUGE_AUTO) {
        hak_huge_pages_end_locked(shard, super, units);
    }
}

void hak_huge_pages_note_holes(const struct hak_run *slab)
{
    struct hak_super *super = hak_map_super(slab->base);
    const unsigned unit = (unsigned)(slab - super->slabs);
    struct hak_shard *shard = hak_arena_shard_of(super);
    hak_lock_take(&shard->lock);
    hak_huge_pages_note_holes_locked(shard, super, hak_bit_range(unit, slab->units));
    hak_lock_drop(&shard->lock);
}

// The wall clock, since a thread's own clock takes a system call; and the coarse one, which advances by ticks. A single
// measurement is 0, or a tick or more, and right on average. The sum grows by what each took beyond the limit, and shrinks by
// what it took less, down to 0: the cumulative sum of E. S. Page, Continuous Inspection Schemes, 1954. One counts at most four
// times the limit, as its thread may have waited for a processor; so it takes three. Nor does one stop huge pages for longer than
// a hundred times that.
enum { DEAR_SUM = 8, COUNTS_FOR = 4 };

// Add what a huge page took since `begin`. Is that too much?
static bool note_price(uint64_t begin, uint64_t limit_ns)
{
    static _Atomic(uint64_t) sum_ns; // at most DEAR_SUM times the limit
    const uint64_t end = hak_os_about_now_ns();
    const uint64_t counted = hak_least(end - begin, COUNTS_FOR * limit_ns);
    const uint64_t sum = hak_load_relaxed(&sum_ns) + counted;
    const uint64_t over = sum > limit_ns ? sum - limit_ns : 0;
    const bool is_dear = over > DEAR_SUM * limit_ns;
    hak_store_relaxed(&sum_ns, is_dear ? DEAR_SUM * limit_ns : over);
    if (is_dear) {
        const uint64_t purged = hak_load_relaxed(&hak_os_counts.purged_bytes);
        hak_store_relaxed(&rest_until_bytes, purged + REST_BYTES);
        hak_store_relaxed(&rest_until, end + REST_TIMES * counted);
    }
    return is_dear;
}

// 0: they have none. The user decides; or there must be no clock.
static uint64_t price_limit_ns(void)
{
    const bool has_price = hak_load_relaxed(&hak_options.thp) == HUGE_AUTO &&
                           hak_load_relaxed(&hak_options.deterministic) == 0;
    return has_price ? hak_load_relaxed(&hak_options.huge_dear_us) * 1000 : 0;
}

bool hak_huge_pages_are_dear(char *page)
{
    const uint64_t limit_ns = price_limit_ns();
    if (limit_ns == 0) {
        return false;
    }
    const uint64_t begin = hak_os_about_now_ns();
    *(volatile char *)page = 0; // a read would map the kernel's zero page
    return note_price(begin, limit_ns);
}

// A huge page's range that has small pages.
struct small_pages {
    struct hak_super *super;
    char *start;
    uint64_t units;
    size_t written;   // bytes in slabs whose blocks were handed out
    uint64_t unknown; // units in which only their content shows what is written
};

// How many superslabs are looked at, from the oldest on.
enum { COLLAPSE_LOOKS = 16 };
// The kernel first waits until each processor has emptied its list of new pages: most of a second, if a program of real-time
// priority keeps one for itself. So a collapse that took so many times the limit is the last one.
enum { WAITS_FOR = 50 };
static _Atomic(bool) has_waited;
#define WRITTEN_LEAST (HUGE_BYTES / 8 * 7)

static struct small_pages small_pages_of(struct hak_super *super, uint64_t units)
{
    const unsigned first = hak_lowest_bit(units);
    struct small_pages pages = {super, super->base + first * HAK_UNIT_BYTES, units, 0, 0};
    for (unsigned unit = first; unit < first + HAK_HUGE_UNITS; unit++) {
        const char *start = super->base + unit * HAK_UNIT_BYTES;
        const struct hak_class *info = small_class(super, start);
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

// Superslabs mapped before this time of hak_arena.clock may share their pages with another process.
static _Atomic(uint32_t) shared_before;

void hak_huge_pages_note_fork(void)
{
    hak_store_relaxed(&shared_before, hak_load_relaxed(&hak_arena.clock) + 1);
}

// Such a range in the superslab that may be collapsed, as far as is known; and note that it was looked for. With units = 0: none.
static struct small_pages choose_in(struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock) HAK_UNPROVEN
{
    struct small_pages pages = {.units = 0};
    struct hak_shard *shard = hak_arena_shard_of(super);
    if (super->is_mapping || super->mapped_at < hak_load_relaxed(&shared_before) || shard == NULL ||
        !hak_lock_try(&shard->lock)) {
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
        const char *page = unit + next_of(HAK_UNIT_CHUNKS) * HAK_CHUNK_BYTES;
        written += is_page_written(page) ? HAK_UNIT_BYTES : 0;
    }
    return written >= WRITTEN_LEAST;
}

// The superslab may have been given back meanwhile, and its descriptor may serve another.
static void note_collapsed(const struct small_pages *pages)
{
    struct hak_super *super = pages->super;
    struct hak_shard *shard = hak_arena_shard_of(super);
    if (shard == NULL) {
        return;
    }
    hak_lock_take(&shard->lock);
    const char *start = super->base + hak_lowest_bit(pages->units) * HAK_UNIT_BYTES;
    if (hak_arena_shard_of(super) == shard && start == pages->start &&
        ((super->free_units | super->huge_units) & pages->units) == 0) {
        want_huge(super, pages->units, true);
        super->huge_units |= pages->units;
    }
    hak_lock_drop(&shard->lock);
}

void hak_huge_pages_collapse_one(void)
{
    if (hak_load_relaxed(&hak_options.thp) != HUGE_AUTO || hak_hook_hardens() || are_dear() ||
        hak_load_relaxed(&has_waited)) {
        return;
    }
    struct small_pages pages = {.units = 0};
    hak_lock_take(&hak_arena.lock);
    struct hak_list *link = hak_arena.all.next;
    for (unsigned looks = 0; link != &hak_arena.all && looks < COLLAPSE_LOOKS && pages.units == 0;
         looks++, link = link->next) {
        pages = choose_in(HAK_LIST_ITEM(link, struct hak_super, all_link));
    }
    hak_lock_drop(&hak_arena.lock);
    if (pages.units == 0 || !are_written(&pages)) {
        return;
    }
    const uint64_t limit_ns = price_limit_ns();
    const uint64_t begin = limit_ns != 0 ? hak_os_about_now_ns() : 0;
    if (hak_os_collapse(pages.start, HUGE_BYTES)) {
        note_collapsed(&pages);
    }
    if (limit_ns == 0) {
        return;
    }
    if (hak_os_about_now_ns() - begin > WAITS_FOR * limit_ns) {
        hak_store_relaxed(&has_waited, true);
    }
    note_price(begin, limit_ns);
}
