// glibc only: musl opens no library that wants storage in initial-exec
// preload only
// native only
// A program that runs on libc's malloc can dlopen the library, allocate with its
// functions in any thread, also in threads older than the library, and close it
// while blocks are still in use.
#include "../support/promise.h"

#include <pthread.h>

static void *(*their_malloc)(size_t);
static void *(*their_realloc)(void *, size_t);
static void (*their_free)(void *);
static pthread_barrier_t opened;

static void use_heap(void)
{
    void *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = their_malloc(i * 97);
        HT_CHECK(blocks[i] != NULL, "the library's malloc failed");
        memset(blocks[i], 1, i * 97);
        blocks[i] = their_realloc(blocks[i], i * 300 + 1);
        HT_CHECK(blocks[i] != NULL, "the library's realloc failed");
    }
    for (size_t i = 0; i < 200; i++) {
        their_free(blocks[i]);
    }
}

static void *older_thread(void *unused)
{
    pthread_barrier_wait(&opened);
    use_heap();
    return unused;
}

static void *younger_thread(void *unused)
{
    use_heap();
    return unused;
}

static int open_late(const char *path)
{
    pthread_barrier_init(&opened, NULL, 2);
    pthread_t older;
    pthread_create(&older, NULL, older_thread, NULL);
    free(ht_hide(malloc(100)));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    HT_CHECK(library != NULL, "dlopen: %s", dlerror());
    *(void **)(&their_malloc) = dlsym(library, "malloc");
    *(void **)(&their_realloc) = dlsym(library, "realloc");
    *(void **)(&their_free) = dlsym(library, "free");
    HT_CHECK(their_malloc != NULL && their_realloc != NULL && their_free != NULL,
             "names are missing");
    HT_CHECK(dlsym(RTLD_DEFAULT, "malloc") != *(void **)(&their_malloc), "it was loaded before");
    pthread_barrier_wait(&opened);
    use_heap();
    pthread_t younger;
    pthread_create(&younger, NULL, younger_thread, NULL);
    pthread_join(younger, NULL);
    char *block = their_malloc(1000);
    memset(block, 3, 1000);
    dlclose(library);
    pthread_join(older, NULL);
    HT_CHECK(block[999] == 3, "a block went with dlclose");
    free(ht_hide(malloc(100)));
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1) {
        return open_late(arguments[1]);
    }
    ht_start();
    if (!ht_is_preloaded() && !ht_is_any()) {
        HT_SKIP("the library's path is not known");
    }
    pid_t child = fork();
    if (child == 0) {
        const char *path = ht_malloc_file();
        unsetenv("LD_PRELOAD");
        execl("/proc/self/exe", "late", path, (char *)NULL);
        _exit(1);
    }
    ht_wait_child(child, "a program that opens the library late");
    return 0;
}
