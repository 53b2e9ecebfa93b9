// No cache line holds blocks of less than 128 bytes of two
// threads: not if both allocate at the same time, and not after one has freed
// the other's blocks and continues to allocate.
#include "../support/promise.h"

#include <pthread.h>

enum { BLOCKS = 4000, LINE_BYTES = 64 };
static const size_t sizes[] = {16, 48, 112};

static uintptr_t firsts[BLOCKS];  // of the other thread: all that it got
static uintptr_t seconds[BLOCKS]; // of main, after it freed every other one of those
static pthread_barrier_t barrier;

static void take_all(uintptr_t *blocks)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = sizes[i % (sizeof sizes / sizeof *sizes)];
        blocks[i] = (uintptr_t)malloc(size);
        HT_CHECK(blocks[i] != 0, "malloc(%zu) failed", size);
    }
}

static void *other_thread(void *unused)
{
    take_all(firsts);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); // main frees and allocates
    return unused;
}

static int compare(const void *a, const void *b)
{
    uintptr_t left = *(const uintptr_t *)a;
    uintptr_t right = *(const uintptr_t *)b;
    return (left > right) - (left < right);
}

// Sorts both arrays.
static void check_lines(uintptr_t *mine, size_t my_count, uintptr_t *theirs, size_t their_count)
{
    qsort(mine, my_count, sizeof *mine, compare);
    qsort(theirs, their_count, sizeof *theirs, compare);
    for (size_t i = 0, j = 0; i < my_count && j < their_count;) {
        uintptr_t my_line = mine[i] / LINE_BYTES;
        uintptr_t their_line = theirs[j] / LINE_BYTES;
        HT_CHECK(my_line != their_line, "%#lx has blocks of two threads", (long)mine[i]);
        i += my_line < their_line;
        j += their_line < my_line;
    }
}

int main(void)
{
    ht_start();
    static uintptr_t mine[BLOCKS];
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0, "no thread");
    take_all(mine);
    pthread_barrier_wait(&barrier);
    size_t kept = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % 2 == 0) {
            free((void *)firsts[i]);
        } else {
            firsts[kept++] = firsts[i];
        }
    }
    take_all(seconds);
    check_lines(mine, BLOCKS, firsts, kept);
    check_lines(seconds, BLOCKS, firsts, kept);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    return 0;
}
