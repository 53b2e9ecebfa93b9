// sweep.c -- see sweep.h.
#include "cache/sweep.h"

#include "base/arms.h"
#include "base/atomic.h"
#include "base/options.h"
#include "base/timing.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/patience.h"
#include "cache/sweep_cache.h"
#include "cache/thread.h"
#include "cache/watch.h"
#include "os/os.h"
#include "os/pressure.h"
#include "os/refusal.h"
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
static struct hak_cache *sweep_cache; // hak_watch.lock: for blocks on their way to other owners
static size_t
    sweep_kept_bytes; // hak_watch.lock: in large blocks that caches kept, at the last pass
static struct hak_patience sweep_patience; // the sweeper's
static _Atomic(uint32_t) sweep_alarm;      // slept on
static _Atomic(int) sweep_process;         // whose thread the sweeper may be
// The system has refused to start it: not to be tried again before that time, by hak_os_now_ns (0: it has not), and for
// how long that was.
static _Atomic(uint64_t) sweep_refused_until;
static _Atomic(uint64_t) sweep_refused_ns;

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
    if (!is_wanted() || peak <= used || hak_load_relaxed(&sweep_refused_until) != 0) {
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

// True when it lies down. One whose owner is at work is left alone, unless `all` is to be given back.
static bool visit_locked(struct hak_cache *cache,
                         const struct hak_sweep_how *how,
                         struct hak_sweep_found *found)
    HAK_REQUIRES(&hak_watch.lock, &sweep_cache->lock)
{
    if (how->all) {
        hak_lock_take(&cache->lock);
    } else if (!hak_lock_try(&cache->lock)) {
        return false;
    }
    const bool lies_down =
        hak_sweep_cache(sweep_cache, cache, how, found) && hak_watch_lie_down(cache);
    hak_lock_drop(&cache->lock);
    return lies_down;
}

// Caches that lie down together: one barrier for them.
enum { LYING_TOGETHER = 64 };

// One pass over the caches that are watched.
static struct hak_sweep_found sweep_pass_locked(bool all, bool tries_again)
    HAK_REQUIRES(&hak_watch.lock)
{
    const struct hak_sweep_how how = {
        .all = all,
        .tries_again = tries_again,
        .idle_looks = hurries(HAK_HURRY_IDLE) ? 1 : IDLE_LOOKS,
        .kept_ticks = all ? 0 : kept_ticks(),
    };
    struct hak_sweep_found found = {0, 0};
    struct hak_cache *lying[LYING_TOGETHER];
    unsigned count = 0;
    if (sweep_cache == NULL) {
        sweep_cache = hak_cache_make(HAK_ROLE_HEAP, NULL);
    }
    if (sweep_cache == NULL) {
        return found; // no memory for it; nothing is lost by not sweeping
    }
    struct hak_cache *cache = hak_watch_all();
    hak_watch.watched = NULL;
    hak_lock_take(&sweep_cache->lock);
    while (cache != NULL) {
        struct hak_cache *next = cache->watch_next; // one that lies down may be noted at once
        if (cache != sweep_cache && visit_locked(cache, &how, &found)) {
            lying[count++] = cache;
        } else {
            hak_watch_keep(cache);
        }
        if (count == LYING_TOGETHER) {
            hak_watch_judge(lying, count);
            count = 0;
        }
        cache = next;
    }
    hak_watch_judge(lying, count);
    hak_inbox_post_all(sweep_cache);
    hak_lock_drop(&sweep_cache->lock);
    sweep_kept_bytes = found.kept_bytes;
    return found;
}

// Has no cache anything that a pass over all would take from it? Those that are not watched have not.
static bool are_all_bare(void)
{
    hak_lock_take(&hak_watch.lock);
    bool are_bare = sweep_cache !=
                    NULL; // who sweeps for the first time gets what it takes, while there is memory
    struct hak_cache *cache = are_bare ? hak_watch_all() : NULL;
    for (; cache != NULL && are_bare; cache = cache->watch_next) {
        if (cache == sweep_cache) {
            continue;
        }
        are_bare = hak_lock_try(&cache->lock); // else somebody is at work on it
        if (are_bare) {
            are_bare = hak_sweep_is_bare(cache);
            hak_lock_drop(&cache->lock);
        }
    }
    hak_lock_drop(&hak_watch.lock);
    return are_bare;
}

// Take from the caches all that they have to give.
static void strip_all(void)
{
    hak_os_barrier_prepare(); // see sweep_until_quiet
    hak_lock_take(&hak_watch.lock);
    sweep_pass_locked(true, true);
    // Blocks that were on their way to a cache swept before: once more.
    sweep_pass_locked(true, false);
    hak_lock_drop(&hak_watch.lock);
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

// What a thread's magazines and slabs hold that has stopped to work without having freed much. Nobody says that it has
// stopped: so where many work, somebody has to look.
#define SLEEPER_BYTES HAK_KIB(64)

static bool many_may_sleep(void)
{
    const size_t bytes = hak_load_relaxed(&hak_watch.count) * SLEEPER_BYTES;
    return bytes >= hak_load_relaxed(&hak_options.purge_start_bytes);
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
    hak_os_barrier_prepare();
    bool is_first = true;
    while (quiet < quiet_ticks() && is_wanted()) {
        hak_lock_take(&hak_watch.lock);
        hak_count(&hak_arena.tick, 1);
        hak_arena_read_clock();
        const uint64_t begin = hak_timing_begin();
        const struct hak_sweep_found found = sweep_pass_locked(false, is_first);
        is_first = false;
        if (hak_load_relaxed(&hak_arena.tick) % PEAK_TICKS == 0) {
            hak_arena_forget_peak();
        }
        hak_timing_end(HAK_TIMING_sweep, begin);
        hak_lock_drop(&hak_watch.lock);
        const size_t gone = purge_due();
        hak_patience_tick(&sweep_patience, gone, hak_load_relaxed(&hak_arena.retaken_bytes));
        const bool is_busy =
            found.returned_bytes >= hak_load_relaxed(&hak_options.purge_start_bytes);
        call_hooks();
        const bool goes_on =
            gone > 0 || found.kept_bytes > 0 || is_busy || many_may_sleep() || stays();
        quiet = goes_on || is_worth_waiting() ? 0 : quiet + 1;
        hak_os_wait(&sweep_alarm, 0, HAK_TICK_MS);
    }
}

// Does a large block wait in any cache, or is one to be broken up?
static bool is_any_kept(void)
{
    hak_lock_take(&hak_watch.lock);
    struct hak_cache *cache = hak_watch_all();
    while (cache != NULL && !hak_load_relaxed(&cache->is_whole) &&
           hak_large_expire(cache, UINT64_MAX) == 0) {
        cache = cache->watch_next;
    }
    hak_lock_drop(&hak_watch.lock);
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

// No thread may be started, as in some sandboxes, or not now. The second try comes after a tenth of a second, and each after
// twice as long as the one before, up to a quarter of an hour.
#define REFUSED_LEAST UINT64_C(100000000)
#define REFUSED_MOST  (REFUSED_LEAST << 13)

static bool is_refused(void)
{
    const uint64_t until = hak_load_relaxed(&sweep_refused_until);
    return HAK_UNLIKELY(until != 0) && hak_os_now_ns() < until;
}

static void note_start(bool is_started)
{
    const uint64_t before = hak_load_relaxed(&sweep_refused_ns);
    const uint64_t longer = before == 0 ? REFUSED_LEAST : 2 * before;
    const uint64_t wait = longer < REFUSED_MOST ? longer : REFUSED_MOST;
    hak_store_relaxed(&sweep_refused_ns, is_started ? 0 : wait);
    hak_store_relaxed(&sweep_refused_until, is_started ? 0 : hak_os_now_ns() + wait);
}

// Step start of sweeper.pml.
void hak_sweep_wanted(size_t kept_bytes)
{
    if (HAK_UNLIKELY(surplus_bytes() > 0)) {
        // No more than one superslab: it is the caller who waits.
        hak_arena_purge((struct hak_purge_age){0, 2 * decay_ticks()}, HAK_SUPER_BYTES);
    }
    const size_t waiting = kept_bytes + waiting_bytes();
    const bool is_enough =
        waiting >= hak_load_relaxed(&hak_options.purge_start_bytes) || many_may_sleep() || stays();
    if (!is_enough || !is_wanted() || hak_load_relaxed(&hak_sweep_runs) != 0 || is_refused() ||
        hak_os_process_id() != hak_load_relaxed(&sweep_process)) {
        return;
    }
    uint32_t none = 0;
    if (hak_cas_acquire(&hak_sweep_runs, &none, 1)) { // pairs with: sweeper_may_end
        const bool is_started = hak_os_start_thread(sweeper_work);
        note_start(is_started);
        if (!is_started) {
            hak_store_release(&hak_sweep_runs, 0); // pairs with: hak_sweep_wanted
        }
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

static size_t sweep_everything(bool with_pages)
{
    const sweep_hook in_need = hak_load_relaxed(&sweep_in_need);
    if (in_need != NULL && hak_load_relaxed(&hak_pressure.is_refused)) {
        in_need();
    }
    if (!are_all_bare()) {
        strip_all();
    }
    const size_t purged = with_pages ? hak_arena_purge((struct hak_purge_age){0, 0}, SIZE_MAX) : 0;
    hak_arena_wait_for_purges();
    const size_t trimmed = hak_arena_trim();
    if (hak_pressure.is_watched) {
        hak_lock_take(&hak_arena.lock);
        hak_pressure_relieved();
        hak_lock_drop(&hak_arena.lock);
    }
    return purged + trimmed;
}

size_t hak_sweep_everything(void)
{
    return sweep_everything(true);
}

void hak_sweep_for_request(uint64_t mark)
{
    sweep_everything(hak_refusal_since(mark).error <= 0);
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
    hak_lock_take(&hak_watch.lock);
}

bool hak_sweep_lock_within(unsigned ms) HAK_UNPROVEN
{
    return hak_lock_take_within(&hak_watch.lock, ms);
}

void hak_sweep_unlock(bool is_child) HAK_UNPROVEN
{
    if (is_child) {
        hak_sweep_start();
        hak_store_relaxed(&hak_sweep_runs, 0); // the thread stayed with the parent
        hak_lock_drop_in_child(&hak_watch.lock);
    } else {
        hak_lock_drop(&hak_watch.lock);
    }
}
