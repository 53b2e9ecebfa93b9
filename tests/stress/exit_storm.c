// args: 8 60 1
// args in aarch64: 8 20 1
// args in mte: 8 5 1
// secure too
//
// Processes that end while all their threads allocate, free each other's blocks
// and end themselves: by exit, by return, by quick_exit, with handlers that
// allocate, and with output that must be read before they can end, long
// after the library's last work. None may crash or hang.
#include "../support/stress.h"

#include "../support/model.h"

enum { SHARED = 256, LARGEST = 20000, CODE = 3, TIMEOUT_S = 30 };
enum { OUTPUT_BYTES = 200000 }; // more than a pipe holds

static _Atomic(struct ht_slot *) shared[SHARED];

static void swap_one(struct ht_random *random)
{
    struct ht_slot *slot = malloc(sizeof *slot);
    HT_CHECK(slot != NULL, "no slot");
    size_t size = 1 + ht_random_size(random, LARGEST);
    ht_slot_take(slot, malloc(size), size, _Alignof(max_align_t), size);
    slot = atomic_exchange(&shared[ht_random_below(random, SHARED)], slot);
    if (slot != NULL) {
        ht_slot_free(slot);
        free(slot);
    }
}

static void *work_for_ever(void *argument)
{
    struct ht_worker *worker = argument;
    for (size_t i = 0; worker->index % 4 != 3 || i < 500; i++) {
        swap_one(&worker->random);
    }
    return NULL;
}

static void handle_exit(void)
{
    struct ht_random random = {7};
    for (size_t i = 0; i < 300; i++) {
        swap_one(&random);
    }
}

_Noreturn static void live_and_exit(const struct ht_stress *stress, size_t way)
{
    static struct ht_worker workers[HT_MOST_THREADS];
    alarm(TIMEOUT_S);
    atexit(handle_exit);
    at_quick_exit(handle_exit);
    for (size_t i = 0; i < stress->threads; i++) {
        workers[i].index = i;
        workers[i].random.state = stress->seed + way * 100 + i;
        HT_CHECK(pthread_create(&workers[i].thread, NULL, work_for_ever, &workers[i]) == 0,
                 "no thread");
    }
    ht_sleep_ms((long)(way % 7));
    static char output[OUTPUT_BYTES + 1];
    setvbuf(stdout, output, _IOFBF, sizeof output);
    for (size_t i = 0; i < OUTPUT_BYTES; i++) {
        putchar('x');
    }
    if (way % 3 == 0) {
        quick_exit(CODE);
    }
    exit(CODE);
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    for (size_t i = 0; i < stress.operations; i++) {
        int ends[2];
        HT_CHECK(pipe(ends) == 0, "no pipe");
        pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDOUT_FILENO);
            live_and_exit(&stress, i);
        }
        close(ends[1]);
        ht_sleep_ms(10);
        static char output[OUTPUT_BYTES];
        while (read(ends[0], output, sizeof output) > 0) {
        }
        close(ends[0]);
        int status = 0;
        HT_CHECK(waitpid(child, &status, 0) == child, "no child");
        HT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CODE,
                 "exit %zu: status %#x",
                 i,
                 (unsigned)status);
    }
    return 0;
}
