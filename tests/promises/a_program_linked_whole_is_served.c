// linked only
// static too
//
// In a program that links the archive, and all else statically (-static, -static-pie), every allocation is hakmem's, also those
// that the C library makes for it; threads free each other's blocks, and a forked child goes on.
#include "../support/promise.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>

enum { THREADS = 4, BLOCKS = 1000, STEP = 40, SIZES = 101 };

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
static void *blocks[THREADS][BLOCKS];

// The program is what its name says (tests/CMakeLists.txt): else the test would prove nothing about such programs.
static void check_kind(const char *name)
{
    const bool is_static = strstr(name, "_static") != NULL;
    HT_CHECK((getauxval(AT_BASE) == 0) == is_static, "%s is not linked as its name says", name);
    if (is_static) {
        const bool is_pie = strstr(name, "_static_pie") != NULL;
        HT_CHECK(
            (__ehdr_start.e_type == ET_DYN) == is_pie, "%s has type %d", name, __ehdr_start.e_type);
    }
}

static void expect_ours(void *block, const char *call)
{
    HT_CHECK(block != NULL && hak_owns != NULL && hak_owns(block), "%s: not hakmem's block", call);
    free(block);
}

static void use_the_c_library(void)
{
    char *text = NULL;
    size_t bytes = 0;
    expect_ours(strdup("a text"), "strdup");
    HT_CHECK(asprintf(&text, "%d texts", 2) == 7, "asprintf");
    expect_ours(text, "asprintf");
    FILE *stream = open_memstream(&text, &bytes);
    HT_CHECK(stream != NULL && fputs("a longer text\n", stream) >= 0 && fclose(stream) == 0,
             "stream");
    stream = fmemopen(text, bytes, "r");
    char *line = NULL;
    size_t room = 0;
    HT_CHECK(stream != NULL && getline(&line, &room, stream) == 14, "getline");
    fclose(stream);
    expect_ours(line, "getline");
    expect_ours(text, "open_memstream");
}

static void *allocate(void *argument)
{
    const size_t thread = (uintptr_t)argument;
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t bytes = i % SIZES * STEP;
        blocks[thread][i] = malloc(bytes);
        HT_CHECK(blocks[thread][i] != NULL, "malloc failed in a thread");
        memset(blocks[thread][i], (int)thread, bytes);
    }
    return NULL;
}

// Frees the other thread's blocks.
static void *release(void *argument)
{
    const size_t thread = ((uintptr_t)argument + 1) % THREADS;
    for (size_t i = 0; i < BLOCKS; i++) {
        const unsigned char *block = blocks[thread][i];
        const size_t bytes = i % SIZES * STEP;
        HT_CHECK(bytes == 0 || block[bytes - 1] == thread, "a block has other contents");
        free(blocks[thread][i]);
    }
    return NULL;
}

static void run_threads(void *(*run)(void *))
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i) == 0, "no thread");
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    ht_start();
    check_kind(argv[0]);
    use_the_c_library();
    for (int round = 0; round < 10; round++) {
        run_threads(allocate);
        const pid_t child = fork();
        if (child == 0) {
            for (size_t i = 0; i < THREADS; i++) {
                release((void *)(uintptr_t)i);
            }
            use_the_c_library();
            _exit(0);
        }
        ht_wait_child(child, "a forked child");
        run_threads(release);
    }
    return 0;
}
