// static too
//
// atexit and on_exit handlers and destructors allocate and free, also blocks of
// main's, while other threads continue to allocate until the end.
#include "../support/promise.h"

#include <pthread.h>

enum { CHILDREN = 40, BUSY_THREADS = 3, EXIT_CODE = 5 };

static void *kept[100];

static void allocate_and_free(void)
{
    for (size_t size = 1; size < 4000000; size *= 4) {
        char *block = malloc(size);
        HT_CHECK(block != NULL, "malloc(%zu) failed at exit", size);
        memset(block, 1, size);
        free(ht_hide(block));
    }
}

static void free_kept(void)
{
    for (size_t i = 0; i < 100; i++) {
        free(kept[i]);
        kept[i] = NULL;
    }
    allocate_and_free();
}

static void on_exit_handler(int code, void *block)
{
    HT_CHECK(code == EXIT_CODE, "on_exit sees code %d", code);
    free(block);
    allocate_and_free();
}

__attribute__((destructor)) static void destruct(void)
{
    allocate_and_free();
}

__attribute__((destructor(101))) static void destruct_last(void)
{
    allocate_and_free();
}

// Not in musl.
extern int on_exit(void (*handler)(int, void *), void *data) __attribute__((weak));

static void *allocate_for_ever(void *unused)
{
    for (;;) {
        allocate_and_free();
    }
    return unused;
}

static void live_and_exit(int child)
{
    for (size_t i = 0; i < 100; i++) {
        kept[i] = malloc(i * i + 1);
    }
    atexit(free_kept);
    if (on_exit != NULL) {
        on_exit(on_exit_handler, malloc(1000));
    }
    for (int i = 0; i < BUSY_THREADS; i++) {
        pthread_t thread;
        HT_CHECK(pthread_create(&thread, NULL, allocate_for_ever, NULL) == 0, "no thread");
        pthread_detach(thread);
    }
    ht_sleep_ms(child % 5);
    exit(EXIT_CODE);
}

int main(void)
{
    ht_start();
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0) {
            live_and_exit(i);
        }
        int status = 0;
        HT_CHECK(waitpid(child, &status, 0) == child, "no child");
        HT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CODE,
                 "exit became status %#x",
                 (unsigned)status);
    }
    return 0;
}
