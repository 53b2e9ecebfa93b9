// fork.c -- see fork.h.
//
// fork copies the memory as it is at one moment: no thread that the child will not have may hold a lock then. So the thread
// that forks takes all locks before, and both processes drop them after. The caches' locks may be thousands. They are only
// read, behind a closed gate (os/lock.h): if they were taken and dropped, the kernel would have to copy a page for each.
//
// A process with one thread takes no lock. A signal handler may call fork, and may have interrupted a call of ours that holds
// a lock: nobody would drop it before the handler returns. Nothing is lost in the child either: the handler returns there,
// too, and the interrupted call goes on.
#include "cache/fork.h"

#include <pthread.h>

#include "base/atomic.h"
#include "cache/cache.h"
#include "cache/heap.h"
#include "cache/nested.h"
#include "cache/sweeper.h"
#include "cache/world.h"
#include "os/os.h"
#include "slab/collapse.h"

// glibc's lock of its list of open files. fork takes it after the handlers have run, which suits glibc's own malloc, whose
// locks come last. With ours it would be a deadlock: a thread that flushes all files holds it and waits for a file, whose
// owner reads a long line and waits for our locks. So we take it before our locks; fork takes it once more, as it is
// recursive. The child resets it, as fork does.
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));

// How many forks this thread is inside of without having locked anything: more than one if a signal handler interrupts a
// fork, and forks.
static HAK_TLS unsigned unlocked_forks;

static bool files_are_locked; // all locks: is glibc's taken, too?

static bool lock_all(void)
{
    const bool has_files = _IO_list_lock != NULL && !hak_os_is_alone();
    if (has_files) {
        _IO_list_lock();
    }
    const bool is_locked = hak_world_lock_to_fork();
    if (is_locked) {
        files_are_locked = has_files;
    } else if (has_files) {
        _IO_list_unlock();
    }
    return is_locked;
}

// A visitor of hak_visit_blocks has all locks already; and of a function that intercepts munmap nobody knows which.
static void prepare(void)
{
    if (hak_os_is_alone() || !hak_nested_may_wait() || !lock_all()) {
        unlocked_forks++;
    }
    hak_collapse_note_fork();
}

static bool was_unlocked(void)
{
    const bool was = unlocked_forks > 0;
    unlocked_forks -= was;
    return was;
}

static void go_on_in_parent(void)
{
    if (was_unlocked()) {
        return;
    }
    const bool has_files = files_are_locked;
    hak_world_unlock();
    if (has_files) {
        _IO_list_unlock();
    }
}

// With no lock of ours: a tool may replace the C library's functions by its own, which may allocate.
static void live_on_in_child(struct hak_cache *cache)
{
    hak_store_relaxed(&cache->thread_id, hak_os_thread_id());
    if (cache->owner.has_thread) {
        hak_life_forget(&cache->life); // the C library has forgotten it, too
        hak_life_begin(&cache->life);
    }
}

static void go_on_in_child(void)
{
    hak_nested_forked();
    if (was_unlocked()) {
        live_on_in_child(hak_cache_self);
        return;
    }
    hak_world_unlock_in_child();
    if (files_are_locked) {
        _IO_list_resetlock();
    }
    live_on_in_child(hak_cache_self);
    hak_heap_end_forked();
    hak_sweeper_start_if_hooked();
}

static _Atomic(bool) is_asked;

static bool is_first(void)
{
    bool before = false;
    return hak_cas_relaxed(&is_asked, &before, true);
}

void hak_fork_start(void)
{
    if (is_first()) {
        pthread_atfork(prepare, go_on_in_parent, go_on_in_child);
    }
}

#if defined __GLIBC__
// pthread_atfork calls this. Here its address is read first, because data is relocated before calls are. Nor do we name an object,
// as pthread_atfork does: exit drops the handlers of each object, and another thread that was forking then would drop no lock.
// Whoever starts early is never unmapped (src/hakmem.c).
typedef void (*fork_handler)(void);
extern int __register_atfork(fork_handler prepares,
                             fork_handler parent,
                             fork_handler child,
                             void *object);

void hak_fork_start_early(void)
{
    __typeof__(__register_atfork) *volatile ask = __register_atfork;
    if (is_first()) {
        ask(prepare, go_on_in_parent, go_on_in_child, NULL);
    }
}
#endif
