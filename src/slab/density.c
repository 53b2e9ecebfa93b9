// density.c -- see density.h.
#include "slab/density.h"

#include "base/bits.h"
#include "base/options.h"
#include "meta/map.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/hooks.h"

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

const struct hak_class *hak_density_class(const struct hak_super *super, const char *page)
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
    const struct hak_class *info = hak_density_class(super, page);
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

// The units of a superslab that are in use. All of them if that is not known.
static uint64_t used_units(const struct hak_super *super) HAK_REQUIRES(&hak_arena.lock) HAK_UNPROVEN
{
    struct hak_shard *shard = hak_arena_try_shard_of(super);
    if (shard == NULL) {
        return ~UINT64_C(0);
    }
    const uint64_t used = ~super->free_units;
    hak_lock_drop(&shard->lock);
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

bool hak_density_is_unit_written(const char *unit)
{
    return is_page_written(unit + next_of(HAK_UNIT_CHUNKS) * HAK_CHUNK_BYTES);
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
bool hak_density_is_high(size_t bytes, bool is_new)
{
    if (is_look_due()) {
        look_at_pages();
    }
    const unsigned seen = hak_load_relaxed(&seen_density);
    return seen == DENSITY_DENSE ||
           (seen == DENSITY_UNKNOWN && is_new && bytes >= HAK_SUPER_BYTES &&
            hak_arena_heap_bytes() + bytes <= PRESUMED_MOST);
}
