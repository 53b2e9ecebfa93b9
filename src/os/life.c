// life.c -- see life.h.
#include "os/life.h"

#include <errno.h>
#include <string.h>

#include "base/atomic.h"

// In the program, whatever we are built with.
extern const char thread_sanitizer __asm__("__tsan_init") __attribute__((weak));

// glibc announces all mutexes of a thread to the kernel when it starts; others by a call of their own, later.
// ThreadSanitizer's mutexes are not ready when it first allocates, and it takes one that is held for long for a part of the
// program's order of locks.
static bool can_be_known(void)
{
#if defined(__GLIBC__)
    return !HAK_IS_SANITIZED && &thread_sanitizer == NULL;
#else
    return false;
#endif
}

// It is made once, as somebody may look at it at any time.
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

// Not lock: who looks at this moment is soon gone, and of one thread more it may be unknown how it ends.
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

bool hak_life_is_over(struct hak_life *life)
{
    if (!hak_load_acquire(&life->is_held)) { // pairs with: hak_life_begin
        return false;
    }
    const int error = pthread_mutex_trylock(&life->mutex);
    const bool is_over = error == EOWNERDEAD;
    if (is_over) {
        hak_store_relaxed(&life->is_held, false);
        pthread_mutex_consistent(&life->mutex);
    }
    if (is_over || error == 0) {
        pthread_mutex_unlock(&life->mutex);
    }
    return is_over;
}

void hak_life_forget(struct hak_life *life)
{
    memset(life, 0, sizeof *life);
}
