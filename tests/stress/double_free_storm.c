// soak in: aarch64
// args: 1 150 1
//
// Two threads share the blocks of a thread that may have ended, and both free a few of them at the same
// moment, while slabs end and their memory is used for something else. The result is the program's
// fault, but each process ends with a line that says so, or by itself: it neither crashes nor hangs.
#include "../support/stress.h"

#include "../support/model.h"

#include <sys/wait.h>

enum { FREEING = 2, BLOCKS = 400, SPARES = 100, LARGEST = 60000, TIMEOUT_S = 60 };

static void *_Atomic blocks[BLOCKS];
static atomic_size_t met;

static size_t next_size(struct ht_random *random)
{
    // Mostly few blocks for each slab, so that slabs end.
    return ht_random_below(random, 4) == 0 ? 1 + ht_random_size(random, 10 * LARGEST)
                                           : 8000 + ht_random_below(random, LARGEST);
}

static void *make_blocks(void *argument)
{
    struct ht_random *random = argument;
    for (size_t i = 0; i < BLOCKS; i++) {
        atomic_store(&blocks[i], malloc(next_size(random)));
    }
    return NULL;
}

// As close to the same moment as possible.
static void meet(size_t times)
{
    atomic_fetch_add(&met, 1);
    while (atomic_load(&met) < FREEING * times) {
    }
}

static void *free_all(void *argument)
{
    struct ht_worker *worker = argument;
    void *spares[SPARES];
    for (size_t i = 0; i < SPARES; i++) {
        spares[i] = malloc(next_size(&worker->random)); // so that it reclaims their slabs
    }
    for (size_t i = 0; i < SPARES; i++) {
        free(spares[i]);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % 40 == 0) {
            meet(1 + i / 40);
            free(atomic_load(&blocks[i]));
        } else if (i % FREEING == worker->index) {
            free(atomic_load(&blocks[i]));
        }
        if (ht_random_below(&worker->random, 8) == 0) {
            spares[i % SPARES] = malloc(next_size(&worker->random));
        }
    }
    return NULL;
}

_Noreturn static void live_and_die(const struct ht_stress *stress, size_t round)
{
    static struct ht_worker workers[FREEING];
    struct ht_random random = {stress->seed * 1000 + round};
    pthread_t maker;
    alarm(TIMEOUT_S);
    if (round % 3 == 0) {
        make_blocks(&random);
    } else {
        HT_CHECK(pthread_create(&maker, NULL, make_blocks, &random) == 0, "no thread");
        pthread_join(maker, NULL);
    }
    for (size_t i = 0; i < FREEING; i++) {
        workers[i].index = i;
        workers[i].random.state = random.state + i;
        HT_CHECK(pthread_create(&workers[i].thread, NULL, free_all, &workers[i]) == 0, "no thread");
    }
    for (size_t i = 0; i < FREEING; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    exit(0);
}

// The child's output is read before it is waited for.
static size_t read_all(int from, char *text, size_t most)
{
    size_t length = 0;
    ssize_t more;
    while (length < most && (more = read(from, text + length, most - length)) > 0) {
        length += (size_t)more;
    }
    return length;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    size_t said = 0;
    for (size_t round = 0; round < stress.operations; round++) {
        int ends[2];
        HT_CHECK(pipe(ends) == 0, "no pipe");
        pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDERR_FILENO);
            live_and_die(&stress, round);
        }
        close(ends[1]);
        char text[1000];
        size_t length = read_all(ends[0], text, sizeof text - 1);
        text[length] = '\0';
        close(ends[0]);
        int status = 0;
        HT_CHECK(waitpid(child, &status, 0) == child, "no child");
        bool is_told = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
                       strncmp(text, "hakmem: ", 8) == 0 && strstr(text, "internal") == NULL;
        HT_CHECK(is_told || (WIFEXITED(status) && WEXITSTATUS(status) == 0 && length == 0),
                 "round %zu: status %#x and '%s'",
                 round,
                 (unsigned)status,
                 text);
        said += is_told;
    }
    printf("%zu of %zu were told\n", said, stress.operations);
    return 0;
}
