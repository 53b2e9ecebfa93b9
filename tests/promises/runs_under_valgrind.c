// glibc only: valgrind is for the C library of the system
// preload only
// native only
// The program works under valgrind, which refuses reservations of hundreds of
// GiB: with tools that do not replace malloc, with memcheck told not to replace it, and with
// memcheck's own malloc.
#include "../support/promise.h"

#include <fcntl.h>
#include <pthread.h>

static void *use_heap(void *unused)
{
    static const size_t sizes[] = {10, 500, 3000, 50000, 700000, 9000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = calloc(1, sizes[i]);
        HT_CHECK(block != NULL, "calloc(1, %zu) failed", sizes[i]);
        block = realloc(block, sizes[i] * 2);
        HT_CHECK(block != NULL, "realloc to %zu failed", sizes[i] * 2);
        free(block);
    }
    return unused;
}

// `option`: of the tool. `whose`: an argument for the program inside.
static void run_under(const char *tool, const char *option, const char *whose)
{
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        char self[4096] = "";
        HT_CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "readlink failed");
        execlp("valgrind",
               "valgrind",
               "-q",
               tool,
               option,
               "--error-exitcode=9",
               self,
               whose,
               (char *)NULL);
        _exit(HT_SKIPPED);
    }
    ht_wait_child(child, tool);
}

int main(int count, char **arguments)
{
    if (count > 1) {
        if (strcmp(arguments[1], "ours") == 0) {
            ht_start();
        }
        use_heap(NULL);
        pthread_t thread;
        HT_CHECK(pthread_create(&thread, NULL, use_heap, NULL) == 0, "no thread");
        pthread_join(thread, NULL);
        return 0;
    }
    ht_start();
    run_under("--tool=none", "--trace-children=no", "ours");
    run_under("--tool=memcheck", "--soname-synonyms=somalloc=nouserintercepts", "ours");
    run_under("--tool=memcheck", "--trace-children=no", "not ours");
    return 0;
}
