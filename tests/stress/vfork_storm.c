// args: 4 60 1
// secure too
//
// Threads make children by vfork while all allocate. A child runs in its parent's memory, where it frees and allocates before it
// starts a program or ends; the other threads are not stopped, so they release any lock that they hold meanwhile.
#include "../support/stress.h"

#include "../support/model.h"

enum { SLOTS = 200, STEPS = 3000, LARGEST = 60000, CHILD_BLOCKS = 200, TIMEOUT_S = 60 };

// In a separate function: the stack frame of the function that calls vfork is the child's as well.
static void use_heap(void)
{
    void *blocks[CHILD_BLOCKS];
    for (size_t i = 0; i < CHILD_BLOCKS; i++) {
        blocks[i] = ht_hide(malloc(100 + 300 * i));
    }
    for (size_t i = 0; i < CHILD_BLOCKS; i++) {
        free(blocks[i]);
    }
}

static void make_child(bool has_program)
{
    const pid_t child = vfork();
    if (child == 0) {
        use_heap();
        if (has_program) {
            ht_run_what_ends();
        }
        _exit(0);
    }
    ht_wait_child(child, "a child");
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    struct ht_slot slots[SLOTS] = {{NULL, 0, 0}};
    for (size_t i = 0; i < worker->operations; i++) {
        for (size_t j = 0; j < STEPS; j++) {
            ht_slot_step(&slots[ht_random_below(&worker->random, SLOTS)], &worker->random, LARGEST);
        }
        make_child(i % 3 == 0);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(&slots[i]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct ht_stress stress = ht_stress_start(argc, argv);
    alarm(TIMEOUT_S);
    ht_run_rising_threads(&stress, work);
    return 0;
}
