// sweep.c -- see sweep.h.
#include "cache/sweep.h"

#include "base/arms.h"
#include "base/atomic.h"
#include "base/options.h"
#include "base/timing.h"
#include "cache/cache.h"
#include "cache/hardened.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/loot.h"
#include "cache/magazine.h"
#include "cache/patience.h"
#include "cache/steal.h"
#include "cache/thread.h"
#include "os/os.h"
#include "os/pressure.h"
#include "slab/arena.h"
#include "slab/ranges.h"

// Looks without an event after which a cache counts as asleep: 300 ms.
enum { IDLE_LOOKS = 3 };
// As many ticks without anything to do, and the sweeper ends.
enum { QUIET_TICKS = 10 };
// A peak is over after 500 ms to 1 s.
enum { PEAK_TICKS = 5 };
// Given back in one tick at most. A gigabyte takes 1.6 s, in steps of 64 KiB to 4 MiB.
#define TICK_PURGE_BYTES HAK_MIB(64)

typedef void (*sweep_hook)(void);

enum { HOOKS = 2 };
static _Atomic(sweep_hook) sweep_hooks[HOOKS]; // called in each tick, if not NULL
static _Atomic(bool) sweep_stays[HOOKS];       // for that one, also when nothing waits
static _Atomic(sweep_hook) sweep_in_need;      // called before all is given back, when it has to be
static _Atomic(unsigned) sweep_hurry;          // enum hak_hurry

_Atomic(uint32_t) hak_sweep_runs;
static struct hak_lock sweep_lock;
static struct hak_cache *sweep_cache; // sweep lock: for blocks on their way to other owners
static size_t sweep_kept_bytes; // sweep lock: in large blocks that caches kept, at the last look
static size_t sweep_returned_bytes;        // sweep lock: that slabs got back since the last look
static struct hak_patience sweep_patience; // the sweeper's
static _Atomic(uint32_t) sweep_alarm;      // slept on
static _Atomic(int) sweep_process;         // whose thread the sweeper may be

static uint64_t decay_ticks(void)
{
    return hak_load_relaxed(&hak_options.decay_ms) / HAK_TICK_MS;
}

static bool hurries(enum hak_hurry what)
{
    return hak_load_relaxed(&sweep_hurry) >= (unsigned)what;
}

// How long something waits for `ticks` that is given back for want of memory from `hurry` on.
static uint64_t ticks_to_wait(enum hak_hurry hurry, uint64_t ticks)
{
    return hurries(hurry) && ticks > 1 ? 1 : ticks;
}

// Of free pages, by the group of their superslab: in option free_policy=auto as long as experience says.
static uint64_t free_ticks(unsigned group)
{
    const uint64_t decay = hak_arms_value(HAK_OPTION_IS_decay_ms, group) / HAK_TICK_MS;
    const uint64_t ticks = ticks_to_wait(HAK_HURRY_FREE, decay);
    return hak_free_policy() == HAK_FREE_PATIENTLY && !hurries(HAK_HURRY_FREE)
               ? ticks << sweep_patience.steps
               : ticks;
}

static uint64_t idle_looks(void)
{
    return hurries(HAK_HURRY_IDLE) ? 1 : IDLE_LOOKS;
}

// Slabs whose pages are given back before the cache's owner, who may be waiting, gets its turn:
// some 100 µs of system calls. Or more when these would not be enough for one, at a page each.
enum { SLABS_AT_A_TIME = 8, SLABS_MOST = HAK_UNIT_BYTES / 4096, SLABS_LOOKED_AT = 64 };

static bool is_load(unsigned size_class, unsigned slabs, const struct hak_ranges *ranges)
{
    const unsigned more = hak_classes[size_class].units * HAK_SLAB_RANGES_OF_UNIT;
    return ranges->count + more > HAK_RANGES_MAX || slabs == SLABS_MOST ||
           (slabs >= SLABS_AT_A_TIME && hak_ranges_are_enough(ranges));
}

// Give back pages inside some of the class's slabs, and put these behind the others. False when
// there are no more to do.
static bool sweep_slabs_locked(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->lock)
{
    struct hak_list *slabs = hak_cache_slabs(cache, size_class);
    struct hak_slab *found[SLABS_MOST];
    unsigned count = 0;
    unsigned looked_at = 0;
    struct hak_ranges ranges = {.count = 0};
    for (struct hak_list *link = slabs->next;
         link != slabs && looked_at < SLABS_LOOKED_AT && !is_load(size_class, count, &ranges);
         link = link->next) {
        struct hak_slab *slab = HAK_LIST_ITEM(link, struct hak_slab, link);
        const unsigned before = ranges.count;
        looked_at += hak_slab_wants_purge(slab);
        hak_slab_purge(slab, &ranges);
        found[count] = slab;
        count += ranges.count > before;
    }
    const bool is_enough = hak_ranges_are_enough(&ranges);
    hak_ranges_purge(&ranges);
    for (unsigned i = 0; i < count; i++) {
        hak_list_remove(&found[i]->link);
        hak_list_append(slabs, &found[i]->link);
        if (!is_enough) {
            hak_slab_keeps_pages(found[i]); // for another time
        }
    }
    return looked_at == SLABS_LOOKED_AT || is_load(size_class, count, &ranges);
}

// The class is not in use here: let its slabs go, and pages inside them.
static void sweep_class_locked(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->lock)
{
    hak_cache_end_idle_slabs(cache, size_class);
    while (hak_free_policy() != HAK_FREE_KEEP && sweep_slabs_locked(cache, size_class)) {
        hak_lock_pass(&cache->lock);
    }
}

static bool is_wanted(void)
{
    return hak_load_relaxed(&hak_options.purger) != 0 &&
           hak_load_relaxed(&hak_options.deterministic) == 0;
}

// How many bytes may wait. Beside the budget what was in use lately, to a part of the memory, which others need, too: a
// heap that grows and shrinks again and again would else give back, and take with page faults, what is over the
// budget, and be no smaller at its peak.
static size_t budget_bytes(void)
{
    const size_t budget = hak_load_relaxed(&hak_options.dirty_bytes);
    const size_t used = hak_arena_used_bytes();
    const size_t peak = hak_arena_recent_peak();
    const size_t most = hak_load_relaxed(&hak_arena.peak_most);
    if (!is_wanted() || peak <= used) {
        return budget; // without a sweeper nobody would see that the peak is over
    }
    return budget + (peak - used < most ? peak - used : most);
}

// How long caches keep large blocks: not at all while these and what waits in the arena exceed the
// budget in bytes.
static uint64_t kept_ticks(void)
{
    const size_t waiting = sweep_kept_bytes + hak_load_relaxed(&hak_arena.dirty_bytes);
    return waiting > budget_bytes() ? 0 : ticks_to_wait(HAK_HURRY_KEPT, decay_ticks());
}

static size_t sweep_cache_locked(struct hak_cache *cache, bool all)
    HAK_REQUIRES(&cache->lock, &sweep_cache->lock)
{
    const uint64_t events = hak_load_relaxed(&cache->events) + hak_hardened_events(cache);
    cache->idle_ticks = events == cache->seen_events ? cache->idle_ticks + 1 : 0;
    cache->seen_events = events;
    sweep_returned_bytes += cache->returned_bytes;
    cache->returned_bytes = 0;
    const bool sleeps = all || cache->idle_ticks >= idle_looks();
    if (hak_load_relaxed(&cache->is_whole)) {
        if (!sleeps) {
            return 1; // to be looked at again
        }
        hak_loot_break_up(cache);
    }
    if (sleeps) {
        hak_outbox_loot(sweep_cache, cache);
        hak_inbox_drain(sweep_cache, cache);
        hak_magazine_sleep(cache);
    }
    if (all || cache->idle_ticks == idle_looks()) {
        hak_hardened_empty(sweep_cache, cache);
    }
    hak_steal_magazines(sweep_cache, cache, all);
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        const struct hak_magazine *magazine = &cache->magazines[size_class];
        if (magazine->slabs.next != NULL && (sleeps || magazine->idle_ticks >= idle_looks())) {
            sweep_class_locked(cache, size_class);
        }
    }
    return hak_large_expire(cache, all ? 0 : kept_ticks());
}

// One pass over all caches. Returns the bytes that still wait in them, more or less. Step walk of
// registry.pml.
static size_t sweep_pass_locked(bool all) HAK_REQUIRES(&sweep_lock)
{
    size_t kept = 0;
    sweep_returned_bytes = 0;
    if (sweep_cache == NULL) {
        sweep_cache = hak_cache_make(HAK_ROLE_HEAP, NULL);
    }
    if (sweep_cache == NULL) {
        return 0; // no memory for it; nothing is lost by not sweeping
    }
    hak_lock_take(&sweep_cache->lock);
    struct hak_cache *cache =
        hak_load_acquire(&hak_registry.all); // pairs with: registry_add_locked
    for (; cache != NULL; cache = cache->next) {
        if (cache == sweep_cache) {
            continue;
        }
        if (all) {
            hak_lock_take(&cache->lock);
        } else if (!hak_lock_try(&cache->lock)) {
            continue; // its owner is at work
        }
        kept += sweep_cache_locked(cache, all);
        hak_lock_drop(&cache->lock);
    }
    hak_lock_take(&hak_orphans.lock);
    sweep_cache_locked(&hak_orphans, all);
    hak_loot_count();
    hak_lock_drop(&hak_orphans.lock);
    hak_lock_take(&hak_cache_late.lock);
    sweep_cache_locked(&hak_cache_late, all);
    hak_lock_drop(&hak_cache_late.lock);
    hak_inbox_post_all(sweep_cache);
    hak_lock_drop(&sweep_cache->lock);
    sweep_kept_bytes = kept;
    return kept;
}

// Dirty bytes beyond what may wait: the budget in bytes, and what the soft limit leaves.
static size_t surplus_bytes(void)
{
    const size_t dirty = hak_load_relaxed(&hak_arena.dirty_bytes);
    const size_t most = hak_free_policy() == HAK_FREE_KEEP ? SIZE_MAX : budget_bytes();
    const size_t limit = hak_load_relaxed(&hak_options.limit_soft);
    const size_t heap = hak_arena_heap_bytes();
    const size_t over_limit = limit != 0 && heap > limit ? heap - limit : 0;
    const size_t over_most = dirty > most ? dirty - most : 0;
    const size_t over = over_limit > over_most ? over_limit : over_most;
    return over < dirty ? over : dirty;
}

// Dirty bytes that wait to be given back.
static size_t waiting_bytes(void)
{
    return hak_free_policy() == HAK_FREE_KEEP
               ? surplus_bytes()
               : hak_load_relaxed(&hak_arena.dirty_bytes) + hak_load_relaxed(&hak_arena.tail_bytes);
}

// Give back what has waited for long enough, and what exceeds the budget. Returns the bytes.
static size_t purge_due(void)
{
    struct hak_purge_age due[HAK_ARMS];
    for (unsigned group = 0; group < HAK_ARMS; group++) {
        const uint64_t ticks = free_ticks(group);
        due[group] = (struct hak_purge_age){ticks, 2 * ticks};
    }
    const size_t surplus = surplus_bytes();
    size_t gone =
        hak_free_policy() != HAK_FREE_KEEP ? hak_arena_purge_groups(due, TICK_PURGE_BYTES) : 0;
    if (surplus > gone) {
        const size_t more = surplus - gone;
        gone += hak_arena_purge((struct hak_purge_age){0, 0},
                                more < TICK_PURGE_BYTES ? more : TICK_PURGE_BYTES);
    }
    if (gone > 0 && hak_free_policy() == HAK_FREE_AND_UNMAP) {
        hak_arena_trim();
    }
    return gone;
}

// Is there enough to give back, and does the kernel take it? What is locked in memory is tried once in
// the life of a sweeper.
static bool is_worth_waiting(void)
{
    return !hak_load_relaxed(&hak_arena.is_locked) &&
           waiting_bytes() >= hak_load_relaxed(&hak_options.purge_start_bytes);
}

// Ticks without anything to do after which the sweeper ends: with locked pages after it has tried.
static uint64_t quiet_ticks(void)
{
    return QUIET_TICKS + (hak_load_relaxed(&hak_arena.is_locked) ? 2 * decay_ticks() : 0);
}

static bool stays(void)
{
    bool any = false;
    for (unsigned i = 0; i < HOOKS; i++) {
        any |= hak_load_relaxed(&sweep_stays[i]);
    }
    return any;
}

static void call_hooks(void)
{
    for (unsigned i = 0; i < HOOKS; i++) {
        const sweep_hook work = hak_load_relaxed(&sweep_hooks[i]);
        if (work != NULL) {
            work();
        }
    }
}

// Give back until nothing has waited for a while, or nobody wants it any more.
static void sweep_until_quiet(void)
{
    uint64_t quiet = 0;
    hak_os_wait(&sweep_alarm, 0, HAK_TICK_MS);
    // A process's first barrier of this kind takes the kernel some 10 ms, in which the process cannot end: not
    // while we hold locks, and not at once, as many programs end when they have just freed much.
    hak_os_barrier_all();
    while (quiet < quiet_ticks() && is_wanted()) {
        hak_lock_take(&sweep_lock);
        hak_count(&hak_arena.tick, 1);
        hak_arena_read_clock();
        const uint64_t begin = hak_timing_begin();
        const size_t kept = sweep_pass_locked(false);
        const size_t returned = sweep_returned_bytes;
        if (hak_load_relaxed(&hak_arena.tick) % PEAK_TICKS == 0) {
            hak_arena_forget_peak();
        }
        hak_timing_end(HAK_TIMING_sweep, begin);
        hak_lock_drop(&sweep_lock);
        const size_t gone = purge_due();
        hak_patience_tick(&sweep_patience, gone, hak_load_relaxed(&hak_arena.retaken_bytes));
        const bool is_busy = returned >= hak_load_relaxed(&hak_options.purge_start_bytes);
        call_hooks();
        const bool goes_on = gone > 0 || kept > 0 || is_busy || stays();
        quiet = goes_on || is_worth_waiting() ? 0 : quiet + 1;
        hak_os_wait(&sweep_alarm, 0, HAK_TICK_MS);
    }
}

// Does a large block wait in any cache, or is one to be broken up?
static bool is_any_kept(void)
{
    struct hak_cache *cache =
        hak_load_acquire(&hak_registry.all); // pairs with: registry_add_locked
    while (cache != NULL && !hak_load_relaxed(&cache->is_whole) &&
           hak_large_expire(cache, UINT64_MAX) == 0) {
        cache = cache->next;
    }
    return cache != NULL;
}

// Who frees first puts what may wait where we see it, then looks whether we run. We first say
// that we do not, then look once more, with a barrier between that orders both sides: what is put
// after our look finds that nobody runs. Steps says_end, may_end and goes_on of sweeper.pml.
static bool sweeper_may_end(void)
{
    hak_store_release(&hak_sweep_runs, 0); // pairs with: hak_sweep_wanted
    if (!hak_os_barrier_all()) {
        hak_os_wait(&sweep_alarm, 0, HAK_TICK_MS); // as good: no store stays unseen for so long
    }
    uint32_t none = 0;
    return !is_wanted() || (!is_worth_waiting() && !is_any_kept()) ||
           !hak_cas_acquire(&hak_sweep_runs, &none, 1); // pairs with: sweeper_may_end
}

static void sweeper_work(void)
{
    do {
        sweep_until_quiet();
    } while (!sweeper_may_end());
}

// Step start of sweeper.pml.
void hak_sweep_wanted(size_t kept_bytes)
{
    if (HAK_UNLIKELY(surplus_bytes() > 0)) {
        // No more than one superslab: it is the caller who waits.
        hak_arena_purge((struct hak_purge_age){0, 2 * decay_ticks()}, HAK_SUPER_BYTES);
    }
    const size_t waiting = kept_bytes + waiting_bytes();
    const bool is_enough = waiting >= hak_load_relaxed(&hak_options.purge_start_bytes) || stays();
    if (!is_enough || !is_wanted() || hak_load_relaxed(&hak_sweep_runs) != 0 ||
        hak_os_process_id() != hak_load_relaxed(&sweep_process)) {
        return;
    }
    uint32_t none = 0;
    if (hak_cas_acquire(&hak_sweep_runs, &none, 1) && // pairs with: sweeper_may_end
        !hak_os_start_thread(sweeper_work)) {
        hak_store_release(&hak_sweep_runs, 0); // pairs with: hak_sweep_wanted
    }
}

void hak_sweep_call(void (*work)(void), bool has_to_stay)
{
    const unsigned i = hak_load_relaxed(&sweep_hooks[0]) != NULL;
    hak_store_relaxed(&sweep_hooks[i], work);
    hak_store_relaxed(&sweep_stays[i], has_to_stay);
    if (has_to_stay) {
        hak_sweep_wanted(0);
    }
}

void hak_sweep_call_no_more(void (*work)(void))
{
    for (unsigned i = 0; i < HOOKS; i++) {
        if (hak_load_relaxed(&sweep_hooks[i]) == work) {
            hak_store_relaxed(&sweep_hooks[i], NULL);
            hak_store_relaxed(&sweep_stays[i], false);
        }
    }
}

void hak_sweep_call_in_need(void (*work)(void))
{
    hak_store_relaxed(&sweep_in_need, work);
}

void hak_sweep_hurry(enum hak_hurry hurry)
{
    hak_store_relaxed(&sweep_hurry, (unsigned)hurry);
}

size_t hak_sweep_everything(void)
{
    const sweep_hook in_need = hak_load_relaxed(&sweep_in_need);
    if (in_need != NULL && hak_load_relaxed(&hak_pressure.is_refused)) {
        in_need();
    }
    hak_os_barrier_all(); // see sweeper_work
    hak_lock_take(&sweep_lock);
    sweep_pass_locked(true);
    // Blocks that were on their way to a cache swept before: once more.
    sweep_pass_locked(true);
    hak_lock_drop(&sweep_lock);
    const size_t purged = hak_arena_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    const size_t trimmed = hak_arena_trim();
    if (hak_pressure.is_watched) {
        hak_lock_take(&hak_arena.lock);
        hak_pressure_relieved();
        hak_lock_drop(&hak_arena.lock);
    }
    return purged + trimmed;
}

// A vfork child runs in its parent's memory. A thread that it starts is its own, and ends when it
// does, wherever it is: maybe holding a lock. So only the process that the heap belongs to has a
// sweeper.
void hak_sweep_start(void)
{
    hak_store_relaxed(&sweep_process, hak_os_process_id());
}

// The next three are unproven: the lock is nothing that their callers know.
void hak_sweep_lock(void) HAK_UNPROVEN
{
    hak_lock_take(&sweep_lock);
}

bool hak_sweep_lock_within(unsigned ms) HAK_UNPROVEN
{
    return hak_lock_take_within(&sweep_lock, ms);
}

void hak_sweep_unlock(bool is_child) HAK_UNPROVEN
{
    if (is_child) {
        hak_sweep_start();
        hak_store_relaxed(&hak_sweep_runs, 0); // the thread stayed with the parent
        hak_lock_drop_in_child(&sweep_lock);
    } else {
        hak_lock_drop(&sweep_lock);
    }
}
