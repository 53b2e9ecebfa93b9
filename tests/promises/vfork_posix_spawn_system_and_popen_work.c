// vfork, posix_spawn, system and popen work in a program whose threads
// allocate, and the program's heap is intact afterwards.
#include "../support/memory.h"

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>

enum { ROUNDS = 30 };

static atomic_bool stop;
extern char **environ;

static void *run(void *unused)
{
    void *blocks[64];
    while (!atomic_load(&stop)) {
        ht_fill(blocks, 64, 1000);
        ht_free_all(blocks, 64);
    }
    return unused;
}

static void spawn_all_ways(void)
{
    char *const command[] = {(char *)"true", NULL};
    pid_t child;
    HT_CHECK(posix_spawnp(&child, "true", NULL, NULL, command, environ) == 0,
             "posix_spawnp failed");
    ht_wait_child(child, "posix_spawnp");
    child = vfork();
    if (child == 0) {
        execvp("true", command);
        _exit(1);
    }
    ht_wait_child(child, "vfork");
    HT_CHECK(system("exit 0") == 0, "system failed");
    FILE *pipe = popen("echo hello", "r");
    HT_CHECK(pipe != NULL, "popen failed");
    char *line = NULL;
    size_t room = 0;
    HT_CHECK(getline(&line, &room, pipe) == 6, "popen's output is '%s'", line);
    free(line);
    HT_CHECK(pclose(pipe) == 0, "pclose failed");
}

int main(void)
{
    ht_start();
#ifndef __GLIBC__
    unsetenv("LD_PRELOAD"); // the system's programs have another C library than this one
#endif
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, run, NULL) == 0, "no thread");
    for (int i = 0; i < ROUNDS; i++) {
        spawn_all_ways();
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    return 0;
}
