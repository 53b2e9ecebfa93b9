// calls.c -- makes calls of all kinds from several threads, which also free each other's blocks.
//
//   calls THREADS ROUNDS SEED [fork | kill | churn]
//
// fork: once more in a child. kill: ends by SIGKILL. churn: a new thread for every 50 rounds.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES 500

static _Atomic(void *) places[PLACES]; // the thread that takes a block out frees it
static unsigned rounds;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void *allocate(uint64_t choice, void *old)
{
    const size_t bytes = choice >> 20 & ((choice & 63) == 0 ? 0x3ffff : 0x3ff);
    const size_t alignment = (size_t)16 << (choice >> 8 & 7);
    void *block = NULL;
    switch (choice >> 12 & 7) {
    case 0:
        free(old);
        return calloc(bytes / 8, 8);
    case 1:
        free(old);
        return aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
    case 2:
        free(old);
        return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
    case 3:
    case 4:
        return realloc(old, bytes + 1);
    default:
        free(old);
        return malloc(bytes);
    }
}

static void *work(void *seed)
{
    uint64_t state = (uintptr_t)seed * 0x9e3779b97f4a7c15 + 1;
    for (unsigned i = 0; i < rounds; i++) {
        const uint64_t choice = next_random(&state);
        _Atomic(void *) *place = &places[(choice >> 40) % PLACES];
        void *block = allocate(choice, atomic_exchange(place, NULL));
        if (block != NULL) {
            memset(block, 1, 1);
        }
        free(atomic_exchange(place, block)); // another thread may have been faster
    }
    return NULL;
}

static void run(unsigned threads, uintptr_t seed)
{
    pthread_t handles[1024];
    for (unsigned i = 0; i < threads; i++) {
        pthread_create(&handles[i], NULL, work, (void *)(seed + i));
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(handles[i], NULL);
    }
}

int main(int count, char **arguments)
{
    if (count < 4) {
        return 2;
    }
    const unsigned threads = (unsigned)atoi(arguments[1]);
    const uintptr_t seed = (uintptr_t)atoi(arguments[3]);
    const char *mode = count > 4 ? arguments[4] : "";
    rounds = (unsigned)atoi(arguments[2]);
    if (strcmp(mode, "churn") == 0) {
        const unsigned all = rounds;
        rounds = 50;
        for (unsigned done = 0; done < all; done += 50) {
            run(threads, seed + done);
        }
        return 0;
    }
    run(threads, seed);
    if (strcmp(mode, "fork") == 0) {
        const pid_t child = fork();
        run(threads, seed + 100);
        if (child == 0) {
            return 0;
        }
        waitpid(child, NULL, 0);
    } else if (strcmp(mode, "kill") == 0) {
        kill(getpid(), SIGKILL);
    }
    return 7;
}
