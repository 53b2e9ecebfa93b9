// visit.c -- every live block of a heap or of the process.
//
// A block is live if it was handed out, is not in its slab, and does not wait, free, anywhere else. The
// waiting blocks are put into a table first, so that the walk over the slabs is one look-up per block.

#include "report/visit.h"
#include "base/bits.h"
#include "cache/cache.h"
#include "cache/nested.h"
#include "cache/seen.h"
#include "cache/world.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "report/waiting.h"
#include "secure/guard.h"
#include "secure/harden.h"
#include "slab/arena.h"

// The hak_os_thread_mark of the thread that walks; 0: none does. Written with all locks held.
static _Atomic(uintptr_t) walker;

bool hak_visit_is_own(void)
{
    return hak_load_relaxed(&walker) == hak_os_thread_mark();
}

// A hash table with open addressing; at most half full, except for blocks that are freed meanwhile.
struct table {
    uintptr_t *places; // 0: empty
    size_t mask;
    size_t room; // for so many more
};

struct visit {
    struct table waiting;
    const struct hak_cache *heap; // NULL: the whole process
    bool (*visit)(void *start, size_t bytes, void *argument);
    void *argument;
};

static size_t table_start(const struct table *table, uintptr_t address)
{
    return (address >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20 &
           table->mask; // Knuth, as in failure.c
}

static void table_add(void *context, const void *block)
{
    struct table *table = context;
    const uintptr_t address = (uintptr_t)block;
    if (table->room == 0) {
        return;
    }
    size_t place = table_start(table, address);
    while (table->places[place] != 0) {
        place = (place + 1) & table->mask;
    }
    table->places[place] = address;
    table->room--;
}

static bool table_has(const struct table *table, uintptr_t address)
{
    size_t place = table_start(table, address);
    while (table->places[place] != 0 && table->places[place] != address) {
        place = (place + 1) & table->mask;
    }
    return table->places[place] != 0;
}

static void count(void *context, const void *block)
{
    (void)block;
    ++*(size_t *)context;
}

static size_t table_bytes(const struct table *table)
{
    return hak_align_up((table->mask + 1) * sizeof *table->places, hak_os_page_bytes());
}

// Fill the table with all waiting blocks. False without memory for it.
static bool table_fill(struct table *table)
{
    size_t waiting = 0;
    hak_waiting_everywhere(count, &waiting);
    table->mask = hak_power_of_two_above(2 * waiting + 512) - 1;
    table->places = hak_os_map(table_bytes(table));
    if (table->places == NULL) {
        return false;
    }
    table->room = table->mask / 4 * 3;
    hak_waiting_everywhere(table_add, table);
    return true;
}

// Visit the live blocks of one word of the slab's bitmap. False when the visitor wants no more.
static bool visit_word(const struct visit *visit, const struct hak_run *slab, unsigned word)
{
    const size_t bytes = hak_classes[slab->size_class].bytes;
    const unsigned first = word * 64;
    uint64_t out = hak_slab_out(slab, word);
    for (; out != 0; out &= out - 1) {
        char *block = slab->base + (first + hak_lowest_bit(out)) * bytes;
        if (table_has(&visit->waiting, (uintptr_t)block)) {
            continue;
        }
        void *start = hak_harden_has_tags() ? hak_tag_seen(block) : block;
        if (!visit->visit(start, hak_seen_usable(start, bytes), visit->argument)) {
            return false;
        }
    }
    return true;
}

static bool visit_run(const struct visit *visit, const struct hak_run *run)
{
    if (run->state == HAK_RUN_NONE ||
        (visit->heap != NULL && hak_load_relaxed(&run->owner) != &visit->heap->owner)) {
        return true;
    }
    if (run->state == HAK_RUN_LARGE) {
        return !hak_map_is_large(hak_map_entry(run->base)) ||
               visit->visit(run->base, run->bytes, visit->argument);
    }
    for (unsigned word = 0; word * 64 < hak_load_relaxed(&run->fresh); word++) {
        if (!visit_word(visit, run, word)) {
            return false;
        }
    }
    return true;
}

static bool visit_all_locked(const struct visit *visit) HAK_REQUIRES(&hak_arena.lock)
{
    if (hak_arena.all.next == NULL) {
        return true; // nothing was allocated yet
    }
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        const struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        const unsigned units = super->is_mapping ? 1 : HAK_SUPER_UNITS;
        for (unsigned unit = 0; unit < units; unit++) {
            if ((super->is_mapping || super->first[unit] == unit) &&
                !visit_run(visit, &super->slabs[unit])) {
                return false;
            }
        }
    }
    // A heap's blocks are never guarded.
    return visit->heap != NULL || hak_guard_visit(visit->visit, visit->argument);
}

bool hak_visit_blocks(struct hak_heap *heap,
                      bool (*visitor)(void *start, size_t bytes, void *argument),
                      void *argument)
{
    struct visit visit = {
        .heap = (const struct hak_cache *)(const void *)heap,
        .visit = visitor,
        .argument = argument,
    };
    if (!hak_nested_may_wait()) {
        return false;
    }
    hak_world_lock();
    bool done = table_fill(&visit.waiting);
    if (done) {
        hak_lock_is_held(&hak_arena.lock);
        hak_store_relaxed(&walker, hak_os_thread_mark());
        void *before = hak_nested_begin(); // the visitor may allocate and free
        done = visit_all_locked(&visit);
        hak_nested_end(before);
        hak_store_relaxed(&walker, 0);
        hak_os_discard(visit.waiting.places, table_bytes(&visit.waiting));
    }
    hak_world_unlock();
    hak_nested_free_waiting();
    return done;
}
