// linked too
// secure too
//
// One thread calls exit while another forks, again and again: the process ends. A fork takes long here, as there is much to copy.
#include "../support/stress.h"

#include <sys/mman.h>

enum { ROUNDS = 25, BYTES = 64 * 1024 * 1024, PAGE = 4096, TIMEOUT_S = 20 };

static void *fork_for_ever(void *unused)
{
    for (;;) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return unused;
}

static void exit_beside_forks(unsigned round)
{
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(memory != MAP_FAILED, "no memory");
    madvise(memory, BYTES, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < BYTES; i += PAGE) {
        memory[i] = 1;
    }
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, fork_for_ever, NULL) == 0, "no thread");
    usleep(2000 + round * 700);
    alarm(TIMEOUT_S);
    exit(0);
}

int main(void)
{
    ht_start();
    for (unsigned round = 0; round < ROUNDS; round++) {
        const pid_t child = fork();
        if (child == 0) {
            exit_beside_forks(round);
        }
        ht_wait_child(child, "a process that ends");
    }
    return 0;
}
