// glibc only: musl has no RTLD_DEEPBIND
//
// A thread loads a library with RTLD_DEEPBIND, the first one in the process. Meanwhile another does the same in the constructor of
// a library, where it holds the dynamic linker's lock. Neither waits for ever.
#include "../support/beside.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 120, HURRIED = 2, MOST_US = 2000, TIMEOUT_S = 10 };

static char plugin[HT_BESIDE_PATH];
static atomic_bool has_begun;
static atomic_bool is_over;

// Keeps the dynamic linker's lock busy, so that others wait for it longer.
static void *ask(void *unused)
{
    while (!atomic_load(&is_over)) {
        dlsym(RTLD_DEFAULT, "no_such_name");
    }
    return unused;
}

static void *load(void *unused)
{
    atomic_store(&has_begun, true);
    dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND);
    return unused;
}

// In a process where nothing was deeply bound before.
static void run(unsigned round)
{
    pthread_t threads[HURRIED + 1];
    alarm(TIMEOUT_S);
    for (unsigned i = 0; i < HURRIED; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, ask, NULL) == 0, "no thread");
    }
    HT_CHECK(pthread_create(&threads[HURRIED], NULL, load, NULL) == 0, "no thread");
    while (!atomic_load(&has_begun)) {
        usleep(10);
    }
    usleep(round * 37 % MOST_US);
    HT_CHECK(dlopen(plugin, RTLD_NOW) != NULL, "dlopen: %s", dlerror());
    atomic_store(&is_over, true);
    for (unsigned i = 0; i <= HURRIED; i++) {
        pthread_join(threads[i], NULL);
    }
    _exit(0);
}

int main(void)
{
    ht_start();
    ht_beside("libdeep_plugin.so", plugin);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const pid_t child = fork();
        HT_CHECK(child >= 0, "no child: errno %d", errno);
        if (child == 0) {
            run(round);
        }
        int status = 1;
        HT_CHECK(waitpid(child, &status, 0) == child && status == 0,
                 "round %u ended with %x",
                 round,
                 status);
    }
    return 0;
}
