// sweeper.c -- see sweeper.h.
#include "cache/sweeper.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/options.h"
#include "cache/bigcache.h"
#include "cache/due.h"
#include "cache/magazine.h"
#include "cache/reclaim.h"
#include "cache/sweep.h"
#include "cache/sweep_cache.h"
#include "os/os.h"
#include "owner/watch.h"
#include "slab/arena.h"

// After how many ticks with nothing to do the sweeper sleeps.
enum { QUIET_TICKS = 10 };
// The most that one tick purges. The sweeper: a gigabyte in 1.6 s, in steps of 64 KiB to 4 MiB; a caller, which waits
// meanwhile: what takes some 100 us, and the next caller goes on soon.
#define TICK_PURGE_BYTES   HAK_MIB(64)
#define CALLER_PURGE_BYTES HAK_MIB(2)
#define TICK_NS            (HAK_TICK_MS * UINT64_C(1000000))
#define SOON_NS            (TICK_NS / 10)
// Pages inside slabs that the kernel refused are tried again after a second, and then each time after twice as long.
enum { AGAIN_LEAST = 10, AGAIN_MOST = 10 << 10 };

static const struct hak_sweep_share all_at_once = {.caches = UINT_MAX, .lots = UINT_MAX};
static const struct hak_sweep_share some = {.caches = 64, .lots = 4};

typedef void (*sweep_hook)(void);

enum { HOOKS = 2 };
static struct {
    _Atomic(sweep_hook) work; // called in each tick, if not NULL
    _Atomic(bool) stays;      // the sweeper stays awake for it
} hooks[HOOKS];

_Atomic(uint32_t) hak_sweep_runs;
static _Atomic(uint32_t) sweep_alarm; // the thread waits on it within ticks; 1: it is to end
struct hak_lock hak_sweeper_lock;
static unsigned threads;  // the lock: the program's threads that have a cache
static bool is_adjusting; // the lock: a thread is about to start the sweeper, or to end it

static _Atomic(uint64_t) caller_due_ns; // when a caller is to tick next
static _Atomic(bool) is_ticking;        // a thread is taking a tick

static bool has_hook(void)
{
    return hak_load_relaxed(&hooks[0].work) != NULL || hak_load_relaxed(&hooks[1].work) != NULL;
}

static bool is_to_end(void)
{
    return hak_load_relaxed(&sweep_alarm) != 0 || hak_load_relaxed(&hak_options.purger) == 0;
}

// How much a thread's magazines and slabs hold after it has stopped working without having freed much. Nothing reports that
// a thread has stopped, so if there are many threads, the sweeper has to look.
#define SLEEPER_BYTES HAK_KIB(64)

static bool many_may_sleep(void)
{
    const size_t bytes = hak_load_relaxed(&hak_watch.count) * SLEEPER_BYTES;
    return bytes >= hak_load_relaxed(&hak_options.purge_start_bytes);
}

// Is there enough to purge, and does the kernel accept it? The sweeper does not stay awake for pages that are locked in memory.
static bool does_enough_wait(void)
{
    return !hak_load_relaxed(&hak_arena.is_locked) &&
           hak_due_waiting() >= hak_load_relaxed(&hak_options.purge_start_bytes);
}

// After how many ticks with nothing to do the sweeper sleeps; if pages are locked, not before it has tried to purge them.
static uint64_t quiet_ticks(void)
{
    return QUIET_TICKS + (hak_load_relaxed(&hak_arena.is_locked) ? 2 * hak_due_decay_ticks() : 0);
}

static bool stays(void)
{
    return hak_load_relaxed(&hooks[0].stays) || hak_load_relaxed(&hooks[1].stays);
}

static void call_hooks(void)
{
    for (unsigned i = 0; i < HOOKS; i++) {
        const sweep_hook work = hak_load_relaxed(&hooks[i].work);
        if (work != NULL) {
            work();
        }
    }
}

struct tick {
    struct hak_sweep_found found;
    size_t gone_bytes;
};

// Only one thread at a time takes a tick. False: another does.
static bool tick_enter(void)
{
    bool nobody = false;
    return hak_cas_acquire(&is_ticking, &nobody, true); // pairs with: tick_leave
}

static void tick_leave(void)
{
    hak_store_release(&is_ticking, false); // pairs with: tick_enter
}

// When to try again the pages inside slabs that the kernel refused, or that were not worth a call. The thread that takes a tick.
static struct {
    uint64_t at_tick;
    uint64_t pause_ticks;
} again = {.pause_ticks = AGAIN_LEAST};

static void note_again(uint64_t tick, bool is_refused)
{
    again.at_tick = tick + again.pause_ticks;
    again.pause_ticks = is_refused ? hak_least(2 * again.pause_ticks, AGAIN_MOST) : AGAIN_LEAST;
}

static struct tick take_tick(uint64_t ticks, struct hak_sweep_share share, size_t purge_bytes)
{
    const uint64_t now = hak_os_about_now_ns() / TICK_NS;
    const bool tries_again = !hak_os_is_soon(now, again.at_tick, AGAIN_MOST);
    struct tick tick;
    tick.found = hak_sweep_tick(ticks, tries_again, share);
    while (tick.found.has_more && share.caches == UINT_MAX) {
        const struct hak_sweep_found more = hak_sweep_tick(0, tries_again, share);
        tick.found.kept_bytes += more.kept_bytes;
        tick.found.returned_bytes += more.returned_bytes;
        tick.found.has_more = more.has_more;
        tick.found.is_refused |= more.is_refused;
    }
    if (tries_again) {
        note_again(now, tick.found.is_refused);
    }
    tick.gone_bytes = hak_due_purge(purge_bytes);
    return tick;
}

// A whole tick, as the sweeper takes it. Nothing while another thread takes one, or without a heap: the sweeper may run for a
// feature alone.
static struct tick take_whole_tick(void)
{
    struct tick tick = {.gone_bytes = 0};
    if (hak_arena_is_started() && tick_enter()) {
        tick = take_tick(1, all_at_once, TICK_PURGE_BYTES);
        tick_leave();
    }
    return tick;
}

// Take ticks until nothing has waited for a while, or the thread is to end.
static void sweep_until_quiet(void)
{
    uint64_t quiet = 0;
    hak_arena_tell(true);
    hak_os_wait(&sweep_alarm, 0, HAK_TICK_MS);
    while (quiet < quiet_ticks() && !is_to_end()) {
        hak_arena_tell(true);
        const struct tick tick = take_whole_tick();
        call_hooks();
        const bool goes_on =
            tick.gone_bytes > 0 || tick.found.kept_bytes > 0 || many_may_sleep() || stays() ||
            tick.found.returned_bytes >= hak_load_relaxed(&hak_options.purge_start_bytes);
        quiet = goes_on || does_enough_wait() ? 0 : quiet + 1;
        hak_os_wait(&sweep_alarm, 0, HAK_TICK_MS);
    }
}

// A thread that frees first puts the memory where the sweeper sees it, then looks whether the sweeper is
// awake. The sweeper first says that it sleeps, then looks once more; a barrier between the two orders both sides:
// a thread that puts memory there after the look finds the sweeper asleep. The look needs the sums of the shards, which may be
// behind: they are exact from now on. Steps says_sleeps, may_sleep and goes_on of sweeper.pml.
static bool sweeper_may_sleep(void)
{
    hak_store_release(&hak_sweep_runs, 0); // pairs with: wake
    hak_arena_tell(false);
    if (!hak_os_barrier_all()) {
        hak_os_wait(&sweep_alarm, 0, HAK_TICK_MS); // as good: no store stays invisible for so long
    }
    uint32_t none = 0;
    return is_to_end() || (!does_enough_wait() && !hak_sweep_is_any_kept()) ||
           !hak_cas_acquire(&hak_sweep_runs, &none, 1); // pairs with: sweeper_may_sleep
}

void hak_sweeper_work(void)
{
    do {
        sweep_until_quiet();
    } while (!sweeper_may_sleep());
}

static void thread_run(void)
{
    hak_cache_become(&hak_cache_shared);
    while (hak_load_relaxed(&sweep_alarm) == 0) {
        if (hak_load_relaxed(&hak_sweep_runs) != 0) {
            hak_sweeper_work();
        } else {
            hak_os_wait(&hak_sweep_runs, 0, 0);
        }
    }
}

// Wake the sweeper if enough waits. Step wake of sweeper.pml.
static void wake(size_t kept_bytes)
{
    const size_t waiting = kept_bytes + hak_due_waiting();
    const bool is_enough =
        waiting >= hak_load_relaxed(&hak_options.purge_start_bytes) || many_may_sleep() || stays();
    uint32_t none = 0;
    if (is_enough && hak_load_relaxed(&hak_sweep_runs) == 0 &&
        hak_cas_acquire(&hak_sweep_runs, &none, 1)) { // pairs with: sweeper_may_sleep
        hak_os_wake(&hak_sweep_runs);
    }
}

// If the sweeper cannot be started, as in some sandboxes, it is tried again with every second new thread, then with every
// fourth, and so on. The same if the last sweeper did not live for long, because the program has one thread after the other
// beside its first: each would cost two starts instead of one. With several threads at once, it is started nevertheless.
#define LONG_LIFE_NS (10 * TICK_NS)
enum { SEVERAL = 4 };
static struct {
    unsigned skips;      // the lock
    unsigned left;       // the lock
    bool is_refused;     // the lock: the last start failed
    uint64_t started_ns; // the lock: when that was tried
    uint64_t put_off_ns; // the lock: until when a start is put off; 0: it is not
} starts;

static bool is_skipped_locked(void) HAK_REQUIRES(&hak_sweeper_lock)
{
    const bool is_skipped = starts.left > 0 && (starts.is_refused || threads < SEVERAL);
    starts.left -= is_skipped;
    return is_skipped;
}

static void note_start_locked(bool is_started) HAK_REQUIRES(&hak_sweeper_lock)
{
    starts.put_off_ns = 0;
    starts.is_refused = !is_started;
    starts.started_ns = hak_os_about_now_ns();
    starts.skips = is_started ? starts.skips : 2 * starts.skips + 1;
    starts.left = is_started ? 0 : starts.skips;
    hak_store_relaxed(&hak_due_has_sweeper_thread, is_started);
}

static void note_end_locked(void) HAK_REQUIRES(&hak_sweeper_lock)
{
    const bool was_short = hak_os_about_now_ns() - starts.started_ns < LONG_LIFE_NS;
    starts.skips = was_short ? 2 * starts.skips + 1 : 0;
    starts.left = starts.skips;
}

static bool is_wanted_locked(void) HAK_REQUIRES(&hak_sweeper_lock)
{
    return (threads > 1 || has_hook()) && hak_load_relaxed(&hak_options.purger) != 0 &&
           hak_load_relaxed(&hak_options.deterministic) == 0;
}

static bool thread_start(void)
{
    hak_store_relaxed(&sweep_alarm, 0);
    hak_store_relaxed(&hak_sweep_runs, stays());
    return hak_os_start_thread(thread_run);
}

// Ends the sweeper and joins it, so that the process has one task once the program has one thread.
static void thread_end(void)
{
    hak_store_relaxed(&sweep_alarm, 1);
    hak_os_wake(&sweep_alarm);
    hak_store_relaxed(&hak_sweep_runs, 1);
    hak_os_wake(&hak_sweep_runs);
    hak_os_join_thread();
    hak_store_relaxed(&hak_sweep_runs, 0);
    // The sweeper would have broken up these caches of ended threads.
    while (hak_reclaim_break_up_some() > 0) {
    }
    take_whole_tick();
}

_Atomic(int) hak_sweeper_owed;

// A signal handler may have interrupted pthread_create, whose locks a start takes. A thread that blocks a signal may be in a
// handler: then the start is put off for longer than handlers take, and is owed meanwhile. Another thread may make it earlier.
static bool may_start_here_locked(void) HAK_REQUIRES(&hak_sweeper_lock)
{
    if (!hak_os_may_be_in_handler()) {
        return true;
    }
    const uint64_t now = hak_os_about_now_ns();
    if (starts.put_off_ns == 0) {
        starts.put_off_ns = now + TICK_NS;
    }
    const bool is_put_off = hak_os_is_soon(now, starts.put_off_ns, TICK_NS);
    if (is_put_off) {
        hak_store_relaxed(&hak_sweeper_owed, hak_os_process_id());
    }
    return !is_put_off;
}

// Start or end the sweeper, if that is wanted. True: call it again. The C library starts and joins threads with locks of its own,
// whose holders may call malloc. So our lock is not held meanwhile, and a thread that comes then leaves the rest to this one.
static bool adjust(void)
{
    hak_lock_take(&hak_sweeper_lock);
    const bool has = hak_load_relaxed(&hak_due_has_sweeper_thread);
    const bool is_starting = !is_adjusting && !has && is_wanted_locked() && !is_skipped_locked() &&
                             may_start_here_locked();
    const bool is_ending = !is_adjusting && has && threads < 2 && !has_hook();
    is_adjusting |= is_starting || is_ending;
    hak_store_relaxed(&hak_due_has_sweeper_thread, has && !is_ending);
    hak_lock_drop(&hak_sweeper_lock);
    if (!is_starting && !is_ending) {
        return false;
    }
    const bool is_started = is_starting && thread_start();
    if (is_ending) {
        thread_end();
    }
    hak_lock_take(&hak_sweeper_lock);
    is_adjusting = false;
    if (is_starting) {
        note_start_locked(is_started);
    } else {
        note_end_locked();
    }
    hak_lock_drop(&hak_sweeper_lock);
    return is_ending || is_started;
}

static void count_thread(unsigned more)
{
    hak_lock_take(&hak_sweeper_lock);
    threads += more;
    starts.put_off_ns = threads < 2 ? 0 : starts.put_off_ns;
    hak_lock_drop(&hak_sweeper_lock);
}

void hak_sweeper_thread_came(bool may_start)
{
    count_thread(1);
    if (!may_start && !hak_load_relaxed(&hak_due_has_sweeper_thread)) {
        hak_store_relaxed(&hak_sweeper_owed, hak_os_process_id());
    }
    while (may_start && adjust()) {
    }
}

// Not in a vfork child, whose thread it would be. Starting a thread allocates, so hak_sweeper_owed is cleared first.
void hak_sweeper_start_owed(void)
{
    int process = hak_os_process_id();
    if (hak_cas_relaxed(&hak_sweeper_owed, &process, 0)) {
        while (adjust()) {
        }
        hak_sweeper_wanted(0);
    }
}

void hak_sweeper_thread_left(void)
{
    count_thread(0U - 1U);
    while (adjust()) {
    }
    hak_sweeper_wanted(0);
}

static void tick_by_caller(void)
{
    const uint64_t now = hak_os_about_now_ns();
    uint64_t due = hak_load_relaxed(&caller_due_ns);
    if (HAK_LIKELY(hak_os_is_soon(now, due, TICK_NS)) ||
        hak_load_relaxed(&hak_options.deterministic) != 0 ||
        !hak_cas_relaxed(&caller_due_ns, &due, now + TICK_NS) || due == 0) {
        return;
    }
    if (!tick_enter()) {
        return;
    }
    const uint64_t passed = now > due ? now / TICK_NS - due / TICK_NS + 1 : 1;
    const struct tick tick = take_tick(passed, some, CALLER_PURGE_BYTES);
    tick_leave();
    if (tick.found.has_more || tick.gone_bytes >= CALLER_PURGE_BYTES) {
        hak_store_relaxed(&caller_due_ns, now + SOON_NS);
    }
}

void hak_sweeper_wanted(size_t kept_bytes)
{
    if (hak_due_has_sweeper()) {
        hak_due_lower(0);
        wake(kept_bytes);
    } else {
        hak_due_lower(hak_bigcache_expire(hak_cache_self, UINT64_MAX));
        tick_by_caller();
    }
}

void hak_sweeper_wake(struct hak_cache *cache)
{
    hak_lock_take(&cache->owner.lock);
    hak_magazine_renew(cache); // thieves had to leave one block of each class
    hak_store_relaxed(&cache->is_asleep, false);
    hak_store_relaxed(&cache->hit_tag, cache->owner.tag - cache->apart);
    hak_lock_drop(&cache->owner.lock);
    hak_watch_note(&cache->owner);
    hak_sweeper_wanted(0);
}

void hak_sweeper_call(void (*work)(void), bool has_to_stay)
{
    const unsigned i = hak_load_relaxed(&hooks[0].work) != NULL;
    hak_store_relaxed(&hooks[i].work, work);
    hak_store_relaxed(&hooks[i].stays, has_to_stay);
    hak_sweeper_start_if_hooked();
}

void hak_sweeper_start_if_hooked(void)
{
    while (has_hook() && adjust()) {
    }
}

void hak_sweeper_call_no_more(void (*work)(void))
{
    for (unsigned i = 0; i < HOOKS; i++) {
        if (hak_load_relaxed(&hooks[i].work) == work) {
            hak_store_relaxed(&hooks[i].work, NULL);
            hak_store_relaxed(&hooks[i].stays, false);
        }
    }
}

void hak_sweeper_forked_locked(void) HAK_REQUIRES(&hak_sweeper_lock)
{
    threads = hak_cache_self != &hak_cache_nobody;
    is_adjusting = false;
    starts.put_off_ns = 0;
    hak_store_relaxed(&hak_sweeper_owed, 0);
    hak_store_relaxed(&hak_due_has_sweeper_thread, false);
    hak_store_relaxed(&hak_sweep_runs, 0);
    hak_store_relaxed(&is_ticking, false);
    hak_due_forked();
}
