// native only
// static too
// A program that has forbidden itself the processor's time stamp counter (PR_SET_TSC), as sandboxes do against measuring,
// allocates, frees, is refused and starts threads as any other; so does a static one that was started that way. The kernel's own
// clock functions read that counter.
#include "../support/memory.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#if !defined(__x86_64__)
int main(void)
{
    HT_SKIP("the processor has none");
}
#else

enum { ROUNDS = 4, BLOCKS = 100000, LARGE_BLOCKS = 128, THREADS = 4 };

// Magazines grow; slabs come and go.
static void *work(void *unused)
{
    void **blocks = malloc(BLOCKS * sizeof *blocks);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(i % 1000 == 0 ? 300000 : 16 + i % 500);
            *(char *)blocks[i] = 1;
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            free(i % 100 == 0 ? realloc(blocks[i], 700000) : blocks[i]);
        }
    }
    free(blocks);
    return unused;
}

// Large and dense: this asks for huge pages, if the machine has any.
static void fill(void)
{
    static void *blocks[LARGE_BLOCKS];
    ht_fill(blocks, LARGE_BLOCKS, 3 * HT_MIB);
    ht_free_all(blocks, LARGE_BLOCKS);
    free(calloc(1, 600 * HT_MIB));
}

static void *start(void *unused)
{
    pthread_t threads[THREADS];
    work(NULL);
    fill();
    for (int i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    HT_CHECK(malloc(ht_hide_size((size_t)1 << 46)) == NULL, "64 TiB");
    return unused;
}

static void forbid(void)
{
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0) {
        _exit(HT_SKIPPED);
    }
}

static pid_t start_child(const char *program)
{
    const pid_t child = fork();
    if (child == 0) {
        forbid();
        if (program != NULL) {
            execl(program, program, "started", (char *)NULL);
            _exit(1);
        }
        start(NULL);
        _exit(0);
    }
    return child;
}

// Does the system enforce it?
static bool is_forbidden(void)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        forbid();
        _exit(__builtin_ia32_rdtsc() == 0);
    }
    HT_CHECK(waitpid(child, &status, 0) == child, "no child");
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        start(NULL);
        return 0;
    }
    ht_start();
    ht_need_memory(1024 * HT_MIB);
    if (!is_forbidden()) {
        HT_SKIP("the counter cannot be forbidden");
    }
    free(ht_hide(malloc(1)));
    ht_wait_child(start_child(NULL), "a program that forbids it");
    if (getauxval(AT_BASE) == 0) { // the dynamic linker reads the counter
        ht_wait_child(start_child(argv[0]), "a program that was started so");
    }
    return 0;
}

#endif
