// args in musl: 10
// native only
// A process made by clone with CLONE_VM shares the heap while its parent waits for it: blocks that it
// allocates there are the parent's afterwards, and what it frees is free.
#include "../support/crowd.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

enum { BLOCKS = 300, STACK_BYTES = 256 * 1024 };

static struct ht_slot slots[BLOCKS];
static struct ht_random random_numbers = {1};

static int live_as_clone(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < 3 * BLOCKS; i++) {
        ht_slot_step(&slots[i % BLOCKS], &random_numbers, 5 * HT_MIB);
    }
    return 0;
}

int main(int count, char **arguments)
{
    ht_start();
    const size_t rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 50;
    char *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(stack != MAP_FAILED, "no stack");
    for (size_t i = 0; i < rounds; i++) {
        ht_slot_step(&slots[i % BLOCKS], &random_numbers, 5 * HT_MIB);
        pid_t child =
            clone(live_as_clone, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
        ht_wait_child(child, "a process that shares our memory");
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        ht_slot_free(&slots[i]);
    }
    ht_crowd_run();
    return 0;
}
