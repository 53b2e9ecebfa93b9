// soak in: aarch64 mte
// args: 4 100 1
// args in secure: 4 40 1
// args in aarch64: 4 20 1
// args in mte: 4 5 1
// env: ASAN_OPTIONS=detect_leaks=0
// secure too
// linked too
//
// Programs whose threads allocate and free each other's blocks, until one of them frees a block twice, or an address that is no
// block. Any of them may find it, with any locks held. The handler of SIGABRT allocates, frees and forks, and
// so does the child; the other threads go on.
#include "../support/stress.h"

#include "../support/model.h"

#include <signal.h>

enum {
    SHARED = 64,
    BLOCKS = 300,
    LARGEST = 60000,
    MISTAKES = 4,
    CODE = 6,
    TIMEOUT_S = 30,
    LATE_EACH = 10,
    LATE_US = 300000
};

static _Atomic(void *) shared[SHARED];

static void use_heap(size_t rounds)
{
    struct ht_random random = {rounds};
    struct ht_slot slots[40] = {{NULL, 0, 0}};
    for (size_t i = 0; i < rounds; i++) {
        ht_slot_step(&slots[ht_random_below(&random, 40)], &random, LARGEST);
    }
    for (size_t i = 0; i < 40; i++) {
        ht_slot_free(&slots[i]);
    }
}

static bool is_late;

static void report(int signal)
{
    (void)signal;
    usleep(is_late ? LATE_US : 0); // meanwhile the other threads use up the memory
    use_heap(2000);
    const pid_t child = fork();
    if (child == 0) {
        use_heap(1000);
        _exit(0);
    }
    ht_wait_child(child, "a reporter");
    _exit(CODE);
}

static void make_mistake(struct ht_random *random, void *block)
{
    char *wrong = ht_hide(block);
    free(block);
    switch (ht_random_below(random, MISTAKES)) {
    case 0:
        free(wrong);
        break;
    case 1:
        free(atomic_exchange(&shared[0], wrong)); // by another thread
        break;
    case 2:
        free(wrong + 16);
        break;
    default:
        free(ht_hide((char *)shared + 16));
    }
}

static void *work_for_ever(void *argument)
{
    struct ht_worker *worker = argument;
    void *blocks[BLOCKS] = {NULL};
    for (size_t i = 0;; i++) {
        void **block = &blocks[ht_random_below(&worker->random, BLOCKS)];
        free(*block);
        *block = malloc(1 + ht_random_size(&worker->random, LARGEST));
        while (*block == NULL) {
            pause(); // in a process that ends no thread is left; in another one the alarm ends it
        }
        *block = atomic_exchange(&shared[ht_random_below(&worker->random, SHARED)], *block);
        if (worker->index == 0 && i >= worker->operations && *block != NULL) {
            make_mistake(&worker->random, *block);
            *block = NULL;
        }
        if (i % 5000 == 4999) {
            malloc_trim(0);
        }
    }
    return NULL;
}

_Noreturn static void live_until_found(const struct ht_stress *stress,
                                       struct ht_random random,
                                       int said)
{
    static struct ht_worker workers[HT_MOST_THREADS];
    alarm(TIMEOUT_S);
    signal(SIGABRT, report);
    dup2(said, STDERR_FILENO);
    for (size_t i = 0; i < stress->threads; i++) {
        workers[i].index = i;
        workers[i].operations = ht_random_below(&random, 20000);
        workers[i].random.state = ht_random_next(&random);
        HT_CHECK(pthread_create(&workers[i].thread, NULL, work_for_ever, &workers[i]) == 0,
                 "no thread");
    }
    for (;;) {
        pause();
    }
}

static void show(int said)
{
    char text[2000];
    const ssize_t bytes = pread(said, text, sizeof text, 0);
    fprintf(stderr, "%.*s", bytes > 0 ? (int)bytes : 0, text);
}

int main(int argc, char **argv)
{
    const struct ht_stress stress = ht_stress_start(argc, argv);
    FILE *file = tmpfile(); // the program's output, for when it ends in another way
    HT_CHECK(file != NULL, "tmpfile: errno %d", errno);
    const int said = fileno(file);
    for (size_t i = 0; i < stress.operations; i++) {
        HT_CHECK(ftruncate(said, 0) == 0 && lseek(said, 0, SEEK_SET) == 0, "errno %d", errno);
        is_late = i % LATE_EACH == LATE_EACH - 1;
        const pid_t child = fork();
        if (child == 0) {
            live_until_found(&stress, (struct ht_random){stress.seed * 1000 + i}, said);
        }
        int status = 0;
        HT_CHECK(waitpid(child, &status, 0) == child, "waitpid: errno %d", errno);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != CODE) {
            show(said);
        }
        HT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CODE,
                 "program %zu ended with %#x",
                 i,
                 (unsigned)status);
    }
    printf("%zu misuses reported\n", stress.operations);
    return 0;
}
