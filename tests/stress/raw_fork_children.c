// args: 1 200 1
// args in asan: 1 70 1
// secure too
//
// A program with one thread makes children by the system call clone, or by _Fork, which call no hooks, as container tools and
// sandboxes do. There is no other thread that could hold a lock, so a child may allocate and free, and make children by fork.
#include "../support/stress.h"

#include "../support/model.h"

#include <sys/syscall.h>

#include <signal.h>

enum { BLOCKS = 2000, STEPS = 6000, LARGEST = 100000, TIMEOUT_S = 40 };

extern pid_t _Fork(void) __attribute__((weak)); // glibc 2.34

static struct ht_slot slots[BLOCKS];

static void work(struct ht_random *random, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        const size_t largest = ht_random_below(random, 50) == 0 ? LARGEST : 4000;
        ht_slot_step(&slots[ht_random_below(random, BLOCKS)], random, largest);
    }
}

static pid_t fork_raw(size_t way)
{
    if (way % 2 == 0 && _Fork != NULL) {
        return _Fork();
    }
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

_Noreturn static void live_as_child(struct ht_random *random, bool has_child)
{
    alarm(TIMEOUT_S);
    work(random, STEPS);
    const pid_t child = has_child ? fork() : 0;
    if (child != 0) {
        ht_wait_child(child, "a grandchild");
    }
    work(random, STEPS);
    for (size_t i = 0; i < BLOCKS; i++) {
        ht_slot_free(&slots[i]);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    const struct ht_stress stress = ht_stress_start(argc, argv);
    struct ht_random random = {stress.seed};
    for (size_t i = 0; i < stress.operations; i++) {
        work(&random, STEPS);
        ht_sleep_ms((long)(i % 7));
        const pid_t child = fork_raw(i);
        if (child == 0) {
            live_as_child(&random, i % 3 == 0);
        }
        alarm(TIMEOUT_S);
        ht_wait_child(child, "a child");
    }
    return 0;
}
