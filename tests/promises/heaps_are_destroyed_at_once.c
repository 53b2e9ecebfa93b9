// preload only
// native only
// A separate heap: any thread allocates from it, free takes its blocks back
// one by one, and destroying it gives back all others at once. A block that realloc has moved stays.
#include "../support/api.h"

#include "../support/memory.h"
#include "../support/options.h"

#include <pthread.h>

enum { BLOCKS = 1000, THREADS = 4, HEAPS = 300, MOVED_BYTES = 5 << 20 };

static struct hak_heap *heap;
static unsigned char *others[THREADS][1000];
static __typeof__(hak_heap_malloc) *allocate_from;

static void *allocate(void *argument)
{
    size_t thread = (uintptr_t)argument;
    for (size_t i = 0; i < 1000; i++) {
        others[thread][i] = allocate_from(heap, i + 1);
        HT_CHECK(others[thread][i] != NULL, "hak_heap_malloc failed in another thread");
        memset(others[thread][i], (int)(thread + i), i + 1);
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, allocate, (void *)(uintptr_t)i) == 0,
                 "no thread");
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t j = 0; j < 1000; j++) {
            HT_CHECK(others[i][j][j] == (unsigned char)(i + j), "a heap's block is another's too");
            if (j % 2) {
                free(others[i][j]);
            }
        }
    }
}

// Also if the kernel moves it, without a copy: it has a mapping of its own, with another one behind it.
static void check_that_what_moves_outlives_the_heap(void)
{
    HT_API(hak_heap_create);
    HT_API(hak_heap_destroy);
    ht_set_option("large_pool", 0);
    struct hak_heap *short_lived = api_hak_heap_create();
    unsigned char *block = allocate_from(short_lived, MOVED_BYTES);
    unsigned char *behind = malloc(MOVED_BYTES);
    HT_CHECK(block != NULL && behind != NULL, "no large blocks");
    memset(block, 5, 100);
    const uintptr_t before = (uintptr_t)block;
    block = realloc(ht_hide(block), 10 * MOVED_BYTES);
    HT_CHECK(block != NULL && (uintptr_t)block != before, "the block grew where it lay");
    api_hak_heap_destroy(short_lived);
    HT_CHECK(malloc_usable_size(block) >= 10 * MOVED_BYTES,
             "what realloc moved ended with its heap");
    HT_CHECK(block[0] == 5 && block[99] == 5, "what realloc moved lost its content");
    free(block);
    free(behind);
    ht_set_option("large_pool", 1);
}

int main(void)
{
    ht_start();
    HT_API(hak_heap_create);
    HT_API(hak_heap_malloc);
    HT_API(hak_heap_calloc);
    HT_API(hak_heap_aligned_alloc);
    HT_API(hak_heap_destroy);
    allocate_from = api_hak_heap_malloc;
    char *outside = malloc(1000);
    HT_CHECK(outside != NULL, "malloc failed");
    memset(outside, 77, 1000);
    long before = ht_rss_kib();
    for (size_t round = 0; round < HEAPS; round++) {
        heap = api_hak_heap_create();
        HT_CHECK(heap != NULL, "hak_heap_create failed in round %zu", round);
        for (size_t i = 0; i < BLOCKS; i++) {
            size_t size = i % 100 == 0 ? 100000 : 1 + i % 700;
            unsigned char *block = api_hak_heap_malloc(heap, size);
            HT_CHECK(block != NULL, "hak_heap_malloc(%zu) failed", size);
            memset(block, 1, size);
            if (i % 3 == 0) {
                free(block);
            }
        }
        unsigned char *zeros = api_hak_heap_calloc(heap, 100, 33);
        HT_CHECK(zeros != NULL && zeros[0] == 0 && zeros[3299] == 0, "hak_heap_calloc");
        void *aligned = api_hak_heap_aligned_alloc(heap, 4096, 100);
        HT_CHECK(aligned != NULL && (uintptr_t)aligned % 4096 == 0, "hak_heap_aligned_alloc");
        zeros = realloc(zeros, 50000);
        HT_CHECK(zeros != NULL && zeros[3299] == 0, "realloc of a heap's block");
        free(aligned);
        errno = 0;
        HT_CHECK(api_hak_heap_malloc(heap, ht_hide_size(SIZE_MAX / 2 + 9)) == NULL &&
                     errno == ENOMEM,
                 "an impossible size from a heap: errno %d",
                 errno);
        if (round % 50 == 0) {
            run_threads();
        }
        api_hak_heap_destroy(heap);
    }
    // A heap that left its blocks behind would have left half a GiB.
    ht_expect_rss(before + 24 * 1024, 2000, "heaps were destroyed");
    for (size_t i = 0; i < 1000; i++) {
        HT_CHECK(outside[i] == 77, "destroying a heap changed a block outside it");
    }
    free(outside);
    check_that_what_moves_outlives_the_heap();
    return 0;
}
