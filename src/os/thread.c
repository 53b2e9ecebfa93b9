// thread.c -- which thread is calling, and a thread of our own.
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>

#include "os/os.h"
#include "os/syscall.h"

// Written before the program's main.
static bool may_call_library;
static bool may_start_thread;

static bool contains(const struct dl_phdr_info *object, uintptr_t address)
{
    bool is_found = false;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        is_found |=
            part->p_type == PT_LOAD && address - object->dlpi_addr - part->p_vaddr < part->p_memsz;
    }
    return is_found;
}

// Not dladdr: it reads the C library's whole table of symbols, which takes a twentieth of a short program's time.
static int find_both(struct dl_phdr_info *object, size_t bytes, void *are_together)
{
    (void)bytes;
    const bool has_create = contains(object, (uintptr_t)pthread_create);
    *(bool *)are_together = has_create && contains(object, (uintptr_t)pthread_attr_setstacksize);
    return has_create;
}

static bool is_create_of_c_library(void)
{
    bool are_together = true;
    dl_iterate_phdr(find_both, &are_together);
    return are_together;
}

// A sanitizer or profiler with a pthread_create of its own may not expect a call of it in a thread's first malloc: that malloc may
// be its own, before it knows the thread. In a build with a sanitizer, a thread may be started all the same, for the tests.
void hak_os_find_threads(void)
{
    may_call_library = true;
    may_start_thread = HAK_IS_SANITIZED || is_create_of_c_library();
}

// The C library keeps the number, and writes it into an error-checking mutex as its owner. So no system call is needed, which a
// sandbox may forbid. Not before our constructor has run: the mutex's functions may be a sanitizer's, which at that time still
// looks for the C library's.
int hak_os_thread_id(void)
{
#if defined(__GLIBC__)
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    if (may_call_library && pthread_mutex_lock(&mutex) == 0) {
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

static pthread_t helper; // written by the thread that starts it

static void *run_work(void *work)
{
    ((void (*)(void))(uintptr_t)work)();
    return NULL;
}

// The deepest use measured is under 8 KiB; the rest is for debug builds, sanitizers, and the program's thread-locals, which lie in
// the stack, too. If these need more, the stack gets the default size.
enum { STACK_BYTES = 256 * 1024 };

bool hak_os_start_thread(void (*work)(void))
{
    pthread_attr_t small;
    sigset_t all;
    sigset_t before;
    void *argument = (void *)(uintptr_t)work;
    const int saved = errno;
    if (!may_start_thread || pthread_attr_init(&small) != 0) {
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
    errno = saved; // a malloc that succeeds does not change it
    return is_started;
}

bool hak_os_may_be_in_handler(void)
{
    uint64_t blocked = 0;
    return may_start_thread &&
           hak_syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&blocked, sizeof blocked, 0, 0) ==
               0 &&
           blocked != 0;
}

// The thread must not be cancelled while it waits: its caller has more to do.
void hak_os_join_thread(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_join(helper, NULL);
    pthread_setcancelstate(before, NULL);
}

void hak_os_thread_ends(void)
{
    HAK_ADDRESSES_GO();
}
