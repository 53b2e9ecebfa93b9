// due.c -- see due.h.
#include "cache/due.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/options.h"
#include "base/variants.h"
#include "cache/swings.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/purge.h"
#include "slab/ranges.h"
#include "slab/superslabs.h"

// Unless option dirty_bytes is set, as much as a 64th of the heap may wait; with a thread that gives it back later,
// so much.
enum { PART_OF_HEAP = 64 };
#define DIRTY_MOST HAK_MIB(256)

// A heap that is no larger than this with all that waits gives nothing back before its time. With what describes it, that
// is within what an idle process may keep, 8 MiB (docs/decisions/0033).
#define SMALL_HEAP HAK_MIB(6)

_Atomic(bool) hak_due_has_sweeper_thread;

static _Atomic(unsigned) due_urgency; // enum hak_urgency

// What goes back together: no less than an eighth of the budget, so that pages that lie side by side go with one call.
enum { PART_OF_BUDGET = 8 };

// A program that swings earns no more than this, as much as glibc's malloc lets one free block grow that it keeps,
// DEFAULT_MMAP_THRESHOLD_MAX (mallopt(3)), and keeps no more of it than is in use: what has freed nearly all and then sleeps
// is small again.
#define EARNED_MOST HAK_MIB(32)

// What a program has earned that has one thread and swings.
static struct {
    _Atomic(bool) is_busy; // its holder alone may touch the next three; who finds it busy leaves it
    struct hak_swings swings;
    uint64_t faded_at;      // tick
    size_t twice_at;        // what had been given back twice at the last look
    _Atomic(size_t) earned; // bytes more than the budget; any thread may read it
    _Atomic(size_t) again;  // since the start of the process, of what was given back inside slabs
} swing;

// The kernel has not taken what it was given. Not to be tried again before that time (0: it has), and for how long that was.
static _Atomic(uint64_t) refused_until_ns;
static _Atomic(uint64_t) refused_ns;
#define REFUSED_LEAST UINT64_C(100000000)
#define REFUSED_MOST  (REFUSED_LEAST << 13)

void hak_due_urge(enum hak_urgency urgency)
{
    hak_store_relaxed(&due_urgency, (unsigned)urgency);
}

bool hak_due_is_urgent(enum hak_urgency what)
{
    return hak_load_relaxed(&due_urgency) >= (unsigned)what;
}

uint64_t hak_due_decay_ticks(void)
{
    return hak_load_relaxed(&hak_options.decay_ms) / HAK_TICK_MS;
}

// How long something waits for `ticks` that is given back for want of memory from `urgency` on.
static uint64_t ticks_to_wait(enum hak_urgency urgency, uint64_t ticks)
{
    return hak_due_is_urgent(urgency) && ticks > 1 ? 1 : ticks;
}

// Of free pages, by the group of their superslab.
static uint64_t free_ticks(unsigned group)
{
    return ticks_to_wait(HAK_URGENCY_FREE,
                         hak_variants_value(HAK_OPTION_IS_decay_ms, group) / HAK_TICK_MS);
}

// What was in use lately and is no longer, to a part of the memory, which others need, too: a heap that grows and shrinks
// again and again would else give back, and take with page faults, what is over the budget, and be no smaller at its peak.
static size_t gone_lately(void)
{
    const size_t used = hak_arena_used_bytes();
    const size_t peak = hak_arena_recent_peak();
    return peak > used ? hak_least(peak - used, hak_load_relaxed(&hak_arena.peak_most)) : 0;
}

static bool swing_enter(void)
{
    bool nobody = false;
    return hak_cas_acquire(&swing.is_busy, &nobody, true); // pairs with: swing_leave
}

static void swing_leave(void)
{
    hak_store_release(&swing.is_busy, false); // pairs with: swing_enter
}

static size_t taken_again(void)
{
    return hak_load_relaxed(&hak_arena.retaken_bytes) + hak_load_relaxed(&swing.again);
}

void hak_due_note_again(size_t bytes)
{
    hak_add_relaxed(&swing.again, bytes);
}

void hak_due_note_gone(size_t gone)
{
    if (gone > 0 && !hak_due_has_sweeper() && swing_enter()) {
        const size_t twice = hak_load_relaxed(&hak_arena.twice_bytes);
        const size_t before = hak_least(gone, twice - swing.twice_at);
        const size_t earned = hak_swings_gone(&swing.swings, gone - before, taken_again());
        swing.twice_at = twice;
        hak_store_relaxed(&swing.earned,
                          hak_least(hak_load_relaxed(&swing.earned) + earned, EARNED_MOST));
        swing_leave();
    }
}

// Who has made no call for longer than free memory may wait has held it for nothing: it has to be earned anew.
static void swing_tick(void)
{
    if (swing_enter()) {
        const uint64_t tick = hak_load_relaxed(&hak_arena.tick);
        const uint64_t passed = tick - swing.faded_at;
        swing.faded_at = tick;
        hak_swings_fade(&swing.swings, passed);
        if (passed > hak_due_decay_ticks()) {
            hak_store_relaxed(&swing.earned, 0);
        }
        swing_leave();
    }
}

void hak_due_forked(void)
{
    swing.swings = (struct hak_swings){.retaken_at = taken_again()};
    hak_store_relaxed(&swing.earned, 0);
    swing_leave();
}

// By whoever runs the program.
static bool is_budget_set(void)
{
    const enum hak_option_source source = hak_option_source_of(&hak_options.dirty_bytes);
    return source != HAK_FROM_DEFAULT && source != HAK_FROM_MACHINE;
}

size_t hak_due_earned(void)
{
    const size_t earned = hak_load_relaxed(&swing.earned);
    return is_budget_set() ? 0 : hak_least(earned, hak_arena_used_bytes());
}

static size_t budget_at_rest(void)
{
    const size_t option = hak_load_relaxed(&hak_options.dirty_bytes);
    const bool is_set = is_budget_set();
    if (hak_due_has_sweeper()) { // who sees that a peak is over
        return (is_set ? option : hak_least(DIRTY_MOST, hak_load_relaxed(&hak_arena.part_bytes))) +
               gone_lately();
    }
    if (is_set) {
        return option;
    }
    const size_t heap = hak_arena_used_bytes() + hak_load_relaxed(&hak_arena.mapping_bytes);
    const size_t part = heap / PART_OF_HEAP;
    const size_t small = hak_least(SMALL_HEAP, hak_load_relaxed(&hak_arena.part_bytes));
    const size_t room = heap < small ? small - heap : 0;
    const size_t most = part > room ? part : room;
    return most > option ? most : option;
}

static size_t earned_now(void)
{
    return hak_due_has_sweeper() ? 0 : hak_due_earned();
}

// How many bytes of free units may wait.
static size_t budget(void)
{
    return budget_at_rest() + earned_now();
}

size_t hak_due_budget_inside(void)
{
    const size_t earned = earned_now();
    const size_t waiting = hak_load_relaxed(&hak_arena.dirty_bytes);
    return budget_at_rest() + (earned > waiting ? earned - waiting : 0);
}

uint64_t hak_due_kept_ticks(size_t kept_bytes)
{
    const size_t waiting = kept_bytes + hak_load_relaxed(&hak_arena.dirty_bytes);
    return waiting > budget() ? 0 : ticks_to_wait(HAK_URGENCY_KEPT, hak_due_decay_ticks());
}

// Dirty bytes beyond what may wait: the budget in bytes, of which caches use `kept_bytes`, and what the soft limit leaves.
static size_t surplus_bytes(size_t kept_bytes)
{
    const size_t dirty = hak_load_relaxed(&hak_arena.dirty_bytes);
    const size_t most = hak_ranges_policy() == HAK_FREE_KEEP ? SIZE_MAX : budget();
    const size_t limit = hak_load_relaxed(&hak_options.limit_soft);
    const size_t heap = hak_arena_heap_bytes();
    const size_t over_limit = limit != 0 && heap > limit ? heap - limit : 0;
    const size_t over_most = dirty + kept_bytes > most ? dirty + kept_bytes - most : 0;
    const size_t over = over_limit > over_most ? over_limit : over_most;
    return hak_least(over, dirty);
}

size_t hak_due_waiting(void)
{
    return hak_ranges_policy() == HAK_FREE_KEEP ? surplus_bytes(0)
                                                : hak_load_relaxed(&hak_arena.dirty_bytes);
}

static bool is_refused(void)
{
    const uint64_t until = hak_load_relaxed(&refused_until_ns);
    return HAK_UNLIKELY(until != 0) && hak_os_about_now_ns() < until;
}

static uint32_t tries_so_far(void)
{
    return hak_load_relaxed(&hak_arena.returns);
}

// After a purge of `gone` bytes, before which there had been so many tries: it may have had nothing to do.
static void note_purge(size_t gone, uint32_t tries_before)
{
    const uint64_t before = hak_load_relaxed(&refused_ns);
    if (HAK_LIKELY(gone > 0 && before == 0) || tries_so_far() == tries_before) {
        return;
    }
    // The tries may have been another thread's, which gave back all that there was.
    if (gone == 0 && !hak_load_relaxed(&hak_arena.is_locked)) {
        return;
    }
    const uint64_t longer = before == 0 ? REFUSED_LEAST : 2 * before;
    const uint64_t wait = longer < REFUSED_MOST ? longer : REFUSED_MOST;
    hak_store_relaxed(&refused_ns, gone > 0 ? 0 : wait);
    hak_store_relaxed(&refused_until_ns, gone > 0 ? 0 : hak_os_about_now_ns() + wait);
}

static void trim_if_policy(size_t gone)
{
    if (gone > 0 && hak_ranges_policy() == HAK_FREE_AND_UNMAP) {
        hak_superslabs_trim();
    }
}

void hak_due_lower(size_t kept_bytes)
{
    const size_t surplus = surplus_bytes(kept_bytes);
    if (HAK_LIKELY(surplus == 0) || is_refused()) {
        return;
    }
    const size_t part = budget() / PART_OF_BUDGET;
    const size_t more = surplus > part ? surplus : part;
    const uint32_t tries = tries_so_far();
    // What is whole huge pages, or none, goes first.
    size_t gone = hak_purge((struct hak_purge_age){0, 2 * hak_due_decay_ticks()}, more);
    if (gone < surplus) {
        gone += hak_purge((struct hak_purge_age){0, 0}, more - gone);
    }
    note_purge(gone, tries);
    hak_due_note_gone(gone);
    trim_if_policy(gone);
}

size_t hak_due_purge(size_t most)
{
    struct hak_purge_age due[HAK_VARIANTS];
    if (is_refused()) {
        return 0;
    }
    swing_tick();
    const uint32_t tries = tries_so_far();
    for (unsigned group = 0; group < HAK_VARIANTS; group++) {
        const uint64_t ticks = free_ticks(group);
        due[group] = (struct hak_purge_age){ticks, 2 * ticks};
    }
    const size_t surplus = surplus_bytes(0);
    size_t gone = hak_ranges_policy() != HAK_FREE_KEEP ? hak_purge_groups(due, most) : 0;
    if (surplus > gone) {
        gone += hak_purge((struct hak_purge_age){0, 0}, hak_least(surplus - gone, most));
    }
    note_purge(gone, tries);
    hak_due_note_gone(gone);
    trim_if_policy(gone);
    return gone;
}
