// preload only
// native only
// With option deterministic a program gets the same addresses in each run.
#include "../support/memory.h"

#include <sys/wait.h>

enum { BLOCKS = 3000, STEPS = 200000 };

// Allocates and frees at random, always the same way, and returns a sum of all addresses.
static uint64_t work(void)
{
    static void *blocks[BLOCKS];
    struct ht_random random = {1};
    uint64_t sum = 0;
    for (int i = 0; i < STEPS; i++) {
        const size_t at = ht_random_below(&random, BLOCKS);
        const size_t most = (size_t)1 << ht_random_below(&random, 18);
        free(blocks[at]);
        blocks[at] = malloc(ht_random_below(&random, most) + 1);
        sum = (sum * 31 + (uintptr_t)blocks[at]) % 0xFFFFFFFFFFFFFFC5;
    }
    return sum;
}

// The output of a separate run of this program.
static uint64_t run(void)
{
    int ends[2];
    uint64_t sum = 0;
    HT_CHECK(pipe(ends) == 0, "no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        setenv("HAKMEM_DETERMINISTIC", "on", 1);
        execl("/proc/self/exe", "deterministic", "work", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    HT_CHECK(read(ends[0], &sum, sizeof sum) == sizeof sum, "the run says nothing");
    close(ends[0]);
    ht_wait_child(child, "a run");
    return sum;
}

int main(int count, char **arguments)
{
    (void)arguments;
    ht_start();
    if (count > 1) {
        const uint64_t sum = work();
        return write(STDOUT_FILENO, &sum, sizeof sum) == sizeof sum ? 0 : 1;
    }
    const uint64_t first = run();
    for (int i = 0; i < 4; i++) {
        HT_CHECK(run() == first, "run %d got other addresses than the first", i + 2);
    }
    return 0;
}
