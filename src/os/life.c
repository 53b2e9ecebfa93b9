// life.c -- see life.h.
#include "os/life.h"

#include <errno.h>
#include <string.h>

#include "base/atomic.h"

// There if the program was built with ThreadSanitizer, even if we were not.
extern const char thread_sanitizer __asm__("__tsan_init") __attribute__((weak));

// glibc registers a thread's list of robust mutexes when the thread starts; other C libraries need a system call later.
// ThreadSanitizer's mutexes are not ready when it first allocates, and it takes a mutex that is held for long for a part of the
// program's lock order.
static bool can_be_known(void)
{
#if defined(__GLIBC__)
    return !HAK_IS_SANITIZED && &thread_sanitizer == NULL;
#else
    return false;
#endif
}

// The mutex is made once, because another thread may look at it at any time.
static bool make(struct hak_life *life)
{
    pthread_mutexattr_t robust;
    if (pthread_mutexattr_init(&robust) != 0) {
        return false;
    }
    const bool is_made = pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST) == 0 &&
                         pthread_mutex_init(&life->mutex, &robust) == 0;
    pthread_mutexattr_destroy(&robust);
    return is_made;
}

// Does not wait for the mutex: if another thread is just looking at it, the end of this thread stays unknown, which may happen.
void hak_life_begin(struct hak_life *life)
{
    if (!life->is_made && can_be_known()) {
        life->is_made = make(life);
    }
    if (life->is_made && pthread_mutex_trylock(&life->mutex) == 0) {
        hak_store_release(&life->is_held, true); // pairs with: hak_life_is_over
    }
}

void hak_life_end(struct hak_life *life)
{
    if (hak_load_relaxed(&life->is_held)) {
        hak_store_relaxed(&life->is_held, false);
        pthread_mutex_unlock(&life->mutex);
    }
}

// A thread that lives holds the mutex while is_held is set. So whoever gets the mutex then has found its end; the kernel says so
// only once.
bool hak_life_is_over(struct hak_life *life)
{
    if (!hak_load_acquire(&life->is_held)) { // pairs with: hak_life_begin
        return false;
    }
    const int error = pthread_mutex_trylock(&life->mutex);
    if (error == EOWNERDEAD) {
        pthread_mutex_consistent(&life->mutex);
    } else if (error != 0) {
        return false;
    }
    const bool is_over = hak_load_relaxed(&life->is_held);
    if (!is_over) {
        hak_life_leave(life);
    }
    return is_over;
}

void hak_life_leave(struct hak_life *life)
{
    pthread_mutex_unlock(&life->mutex);
}

void hak_life_forget(struct hak_life *life)
{
    memset(life, 0, sizeof *life);
}
