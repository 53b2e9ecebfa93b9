// thread.c -- which thread is this, and a thread of our own.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "base/atomic.h"
#include "os/os.h"
#include "os/syscall.h"

// The C library keeps the number, and tells it as the owner of a mutex that notes one: no system call, as a sandbox may
// allow no more than malloc needs.
int hak_os_thread_id(void)
{
#if defined(__GLIBC__)
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    if (pthread_mutex_lock(&mutex) == 0) {
        const int owner = mutex.__data.__owner;
        pthread_mutex_unlock(&mutex);
        return owner;
    }
#endif
    return (int)hak_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

uintptr_t hak_os_thread_mark(void)
{
    uintptr_t mark; // the thread register
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(mark));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(mark));
#endif
    return mark;
}

// glibc 2.32 and later.
extern const char __libc_single_threaded __attribute__((weak));

bool hak_os_is_alone(void)
{
    return &__libc_single_threaded != NULL && __libc_single_threaded != 0;
}

static pthread_t helper; // written by who starts it

static void *run_work(void *work)
{
    ((void (*)(void))(uintptr_t)work)();
    return NULL;
}

// Deepest use measured is under 8 KiB; the rest is room for debug builds, sanitizers, and the thread-locals of the program,
// which lie in the stack, too. Where these need more, it gets as much as the program's own threads.
enum { STACK_BYTES = 256 * 1024 };

bool hak_os_start_thread(void (*work)(void))
{
    pthread_attr_t small;
    sigset_t all;
    sigset_t before;
    void *argument = (void *)(uintptr_t)work;
    if (pthread_attr_init(&small) != 0) {
        return false;
    }
    // A handler of the program's belongs to its own threads.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool is_started = (pthread_attr_setstacksize(&small, STACK_BYTES) == 0 &&
                             pthread_create(&helper, &small, run_work, argument) == 0) ||
                            pthread_create(&helper, NULL, run_work, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&small);
    return is_started;
}

void hak_os_join_thread(void)
{
    pthread_join(helper, NULL);
}
