// due.c -- see due.h.
#include "cache/due.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/options.h"
#include "base/variants.h"
#include "os/pause.h"
#include "slab/arena.h"
#include "slab/purge.h"
#include "slab/ranges.h"
#include "slab/superslabs.h"

// The budget, unless option dirty_bytes is set: without a sweeper at least a 64th of the heap, with a sweeper at most
// DIRTY_MOST.
enum { PART_OF_HEAP = 64, UNSPLIT_PART = 32 };
#define DIRTY_MOST HAK_MIB(256)

// A heap that is no larger than this, its dirty pages included, purges nothing before the decay time. With its metadata it
// stays below what an idle process may keep, 8 MiB (docs/decisions/0033).
#define SMALL_HEAP HAK_MIB(6)

_Atomic(bool) hak_due_has_sweeper_thread;

static _Atomic(unsigned) due_urgency; // enum hak_urgency

// A purge takes at least an eighth of the budget, so that one call can take adjacent pages.
enum { PART_OF_BUDGET = 8 };

// A program with one thread may retake purged memory by page faults, PAID_AT_ONCE in a burst and PAID_A_SECOND from then on: some
// hundredths of its time. What it retakes beyond that, it earns as extra budget, as long as its heap swings by no more than
// EARNED_MOST. A leaky bucket (Turner, New Directions in Communications, 1986); figures in docs/decisions/0033.
#define PAID_AT_ONCE  HAK_MIB(16)
#define PAID_A_SECOND HAK_MIB(64)
#define EARNED_MOST   HAK_MIB(48)

// Since the start of the process, in bytes.
static _Atomic(size_t) again_inside;              // retaken from what was purged inside slabs
static _Atomic(size_t) again_paid = PAID_AT_ONCE; // retaken bytes that earn no budget
static uint64_t paid_at;                          // tick; the holder of the right to tick

// Pauses after the kernel has refused a purge.
static struct hak_pause refusal;

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

// How many ticks memory waits: `ticks`, its decay; but at most one if `urgency` or a higher one is set.
static uint64_t ticks_to_wait(enum hak_urgency urgency, uint64_t ticks)
{
    return hak_due_is_urgent(urgency) && ticks > 1 ? 1 : ticks;
}

// How far the heap has fallen from its recent peak.
static size_t fallen_bytes(void)
{
    const size_t used = hak_arena_used_bytes();
    const size_t peak = hak_arena_recent_peak();
    return peak > used ? peak - used : 0;
}

// How much of that may wait beside the budget, if a sweeper notices when the peak is over; at most a part of the memory, which
// other processes need, too. A heap that grows and shrinks again and again would else purge what exceeds the budget and fault it
// in again, and its peak would be no lower.
static size_t gone_lately(void)
{
    return hak_least(fallen_bytes(), hak_load_relaxed(&hak_arena.peak_most));
}

static size_t taken_again(void)
{
    return hak_load_relaxed(&hak_arena.retaken_bytes) + hak_load_relaxed(&again_inside);
}

void hak_due_note_again(size_t bytes)
{
    hak_add_relaxed(&again_inside, bytes);
}

// The part of the retaken bytes, `taken`, that earns no budget.
static size_t paid_bytes(size_t taken)
{
    const size_t paid = hak_load_relaxed(&again_paid);
    return taken > paid + EARNED_MOST ? taken - EARNED_MOST : paid;
}

static size_t unpaid_bytes(void)
{
    const size_t taken = taken_again();
    const size_t paid = paid_bytes(taken);
    return taken > paid ? taken - paid : 0;
}

bool hak_due_takes_little_again(void)
{
    return unpaid_bytes() == 0;
}

static void pay_in_tick(void)
{
    const uint64_t tick = hak_load_relaxed(&hak_arena.tick);
    const size_t taken = taken_again();
    const size_t more = (size_t)(tick - paid_at) * (PAID_A_SECOND / 1000 * HAK_TICK_MS);
    paid_at = tick;
    hak_store_relaxed(&again_paid, hak_least(paid_bytes(taken) + more, taken + PAID_AT_ONCE));
}

void hak_due_forked(void)
{
    hak_store_relaxed(&again_paid, taken_again() + PAID_AT_ONCE);
}

// Has the user set dirty_bytes?
static bool is_budget_set(void)
{
    const enum hak_option_source source = hak_option_source_of(&hak_options.dirty_bytes);
    return source != HAK_FROM_DEFAULT && source != HAK_FROM_MACHINE;
}

size_t hak_due_earned(void)
{
    const bool can_earn =
        !hak_due_has_sweeper() && !is_budget_set() && fallen_bytes() <= EARNED_MOST;
    return can_earn ? unpaid_bytes() : 0;
}

static size_t budget_at_rest(void)
{
    const size_t option = hak_load_relaxed(&hak_options.dirty_bytes);
    const bool is_set = is_budget_set();
    if (hak_due_has_sweeper()) { // which notices when a peak is over
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

// How many bytes of free units may wait to be purged.
static size_t budget(void)
{
    return budget_at_rest() + hak_due_earned();
}

size_t hak_due_budget_inside(void)
{
    const size_t earned = hak_due_earned();
    const size_t waiting = hak_load_relaxed(&hak_arena.dirty_bytes);
    return budget_at_rest() + (earned > waiting ? earned - waiting : 0);
}

uint64_t hak_due_kept_ticks(size_t kept_bytes)
{
    const size_t waiting = kept_bytes + hak_load_relaxed(&hak_arena.dirty_bytes);
    return waiting > budget() ? 0 : ticks_to_wait(HAK_URGENCY_KEPT, hak_due_decay_ticks());
}

// Dirty bytes that exceed the budget, of which kept blocks use `kept_bytes`, or that take the heap above the soft limit.
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

// Note the result of a purge of `gone` bytes. If hak_arena.returns still is `tries_before`, there was nothing to purge.
static void note_purge(size_t gone, uint32_t tries_before)
{
    if (hak_load_relaxed(&hak_arena.returns) == tries_before) {
        return;
    }
    // The tries may have been another thread's, which purged everything.
    if (gone > 0 || hak_load_relaxed(&hak_arena.is_locked)) {
        hak_pause_note(&refusal, gone == 0);
    }
}

static void trim_if_policy(size_t gone)
{
    if (gone > 0 && hak_ranges_policy() == HAK_FREE_AND_UNMAP) {
        hak_superslabs_trim();
    }
}

// How many bytes may exceed the budget, until the next tick at most, while the rest of their huge pages is in use: memory that is
// freed in address order is then purged by whole huge pages. To split one takes the kernel longer, and slows the part that stays.
static size_t unsplit_most(void)
{
    const bool is_exact = is_budget_set() || hak_load_relaxed(&hak_options.limit_soft) != 0;
    return is_exact ? 0 : hak_arena_used_bytes() / UNSPLIT_PART;
}

void hak_due_lower(size_t kept_bytes)
{
    const size_t surplus = surplus_bytes(kept_bytes);
    if (HAK_LIKELY(surplus == 0) || hak_pause_is_on(&refusal)) {
        return;
    }
    const size_t part = budget() / PART_OF_BUDGET;
    const size_t more = surplus > part ? surplus : part;
    const uint32_t tries = hak_load_relaxed(&hak_arena.returns);
    // First purge what splits no huge page.
    size_t gone = hak_purge((struct hak_purge_age){0, 2 * hak_due_decay_ticks()}, more);
    const size_t waits = unsplit_most();
    if (surplus > gone + waits) {
        gone += hak_purge((struct hak_purge_age){0, 0}, surplus - gone - waits + part);
    }
    note_purge(gone, tries);
    trim_if_policy(gone);
}

size_t hak_due_purge(size_t most)
{
    struct hak_purge_age due[HAK_VARIANTS];
    pay_in_tick();
    if (hak_pause_is_on(&refusal)) {
        return 0;
    }
    const uint32_t tries = hak_load_relaxed(&hak_arena.returns);
    for (unsigned group = 0; group < HAK_VARIANTS; group++) {
        const uint64_t decay_ms = hak_variants_value(HAK_OPTION_IS_decay_ms, group);
        const uint64_t ticks = ticks_to_wait(HAK_URGENCY_FREE, decay_ms / HAK_TICK_MS);
        due[group] = (struct hak_purge_age){ticks, 2 * ticks};
    }
    const size_t surplus = surplus_bytes(0);
    size_t gone = hak_ranges_policy() != HAK_FREE_KEEP ? hak_purge_groups(due, most) : 0;
    if (surplus > gone) {
        gone += hak_purge((struct hak_purge_age){0, 0}, hak_least(surplus - gone, most));
    }
    note_purge(gone, tries);
    trim_if_policy(gone);
    return gone;
}
