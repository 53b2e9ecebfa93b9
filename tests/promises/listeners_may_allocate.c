// its names for all
// sleeps
// not tagged: it compares addresses, which have tags there
// A listener to munmap, madvise and mremap may allocate and free in its calls: blocks that it keeps beyond the call, blocks that
// the program has allocated before, large ones, and by any function of the malloc family. A heap may refuse, and what would have
// to wait for the thread's own locks does nothing.
#include "../support/own_munmap.h"

#include "../support/api.h"

#include <pthread.h>

enum { KEPT = 3000 };

static char *kept[KEPT];
static unsigned kept_count;
static char *of_the_program[KEPT];
static unsigned given_count;
static struct hak_heap *heap;
static __typeof__(hak_heap_malloc) *allocate_from;

static __typeof__(hak_heap_destroy) *destroy;
static __typeof__(hak_visit_blocks) *visit_blocks;
static __typeof__(hak_stats_read) *read_stats;
static __typeof__(hak_option_set) *set_option;
static __typeof__(hak_describe) *describe;

static bool see(void *block, size_t bytes, void *argument)
{
    (void)block;
    (void)bytes;
    (void)argument;
    return true;
}

// A build of the core alone has none of these.
static void find_features(void)
{
    *(void **)(&visit_blocks) = dlsym(RTLD_DEFAULT, "hak_visit_blocks");
    *(void **)(&read_stats) = dlsym(RTLD_DEFAULT, "hak_stats_read");
    *(void **)(&set_option) = dlsym(RTLD_DEFAULT, "hak_option_set");
    *(void **)(&describe) = dlsym(RTLD_DEFAULT, "hak_describe");
}

// None of these may wait for ever. A heap refuses nothing where the munmap is not hakmem's.
static void ask_for_more(void)
{
    struct hak_stats stats;
    struct hak_block_info info;
    void *block = allocate_from(heap, 40);
    if (block != NULL) {
        free(block);
        return;
    }
    if (visit_blocks == NULL) {
        return;
    }
    HT_CHECK(mallinfo2().uordblks == 0, "figures under locks of its own");
    read_stats(&stats);
    HT_CHECK(stats.live_bytes == 0, "figures under locks of its own");
    HT_CHECK(malloc_trim(0) == 0, "given back inside of giving back");
    HT_CHECK(!visit_blocks(NULL, see, NULL), "visited inside");
    HT_CHECK(!set_option("decay_ms", 500), "an option set inside");
    describe(of_the_program[KEPT - 1], &info);
    destroy(heap); // is used again below
}

static void allocate(void)
{
    static _Thread_local bool is_inside;
    if (is_inside) {
        return;
    }
    is_inside = true;
    for (size_t size = 1; size < 300000; size = size * 3 + 5) {
        char *block = malloc(size);
        HT_CHECK(block != NULL && (uintptr_t)block % 16 == 0, "malloc(%zu) failed inside", size);
        memset(block, 0x11, malloc_usable_size(block));
        block = realloc(block, 2 * size);
        HT_CHECK(block != NULL && block[size - 1] == 0x11, "realloc failed inside");
        char *other = calloc(size, 1);
        HT_CHECK(other != NULL && other[0] == 0 && other[size - 1] == 0, "calloc failed inside");
        void *aligned = NULL;
        HT_CHECK(posix_memalign(&aligned, 1024, size) == 0 && (uintptr_t)aligned % 1024 == 0,
                 "posix_memalign failed inside");
        memset(aligned, 0x22, size);
        free(block);
        free(other);
        free(aligned);
    }
    free(allocate_from(heap, 40));
    free(allocate_from(heap, 100000));
    ask_for_more();
    if (kept_count < KEPT) {
        kept[kept_count] = malloc(100);
        HT_CHECK(kept[kept_count] != NULL, "malloc failed inside");
        memset(kept[kept_count++], 0x33, 100);
    }
    if (given_count < KEPT) {
        free(of_the_program[given_count++]);
    }
    is_inside = false;
}

static void allocate_and_free(void)
{
    void *blocks[20];
    for (unsigned i = 0; i < 20; i++) {
        blocks[i] = memset(malloc(100 + 100 * i), (int)i + 1, 100 + 100 * i);
    }
    for (unsigned i = 0; i < 20; i++) {
        HT_CHECK(((char *)blocks[i])[99 + 100 * i] == (char)(i + 1), "a block has changed");
        free(blocks[i]);
    }
}

static void *give_back(void *unused)
{
    for (unsigned round = 0; round < 10; round++) {
        void *small[1000];
        void *large = memset(malloc(4 * HT_MIB), 1, 4 * HT_MIB);
        for (unsigned i = 0; i < 1000; i++) {
            small[i] = memset(malloc(3000), 2, 3000);
        }
        for (unsigned i = 0; i < 1000; i++) {
            free(small[i]);
        }
        free(large);
        malloc_trim(0);
    }
    return unused;
}

static void let_threads_give_back(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, give_back, NULL) == 0, "no thread");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(void)
{
    ht_start();
    HT_API(hak_heap_create);
    HT_API(hak_heap_malloc);
    HT_API(hak_heap_destroy);
    allocate_from = api_hak_heap_malloc;
    destroy = api_hak_heap_destroy;
    find_features();
    heap = api_hak_heap_create();
    for (unsigned i = 0; i < KEPT; i++) {
        const size_t size = i % 100 == 0 ? 200000 : 16 + i % 900;
        of_the_program[i] = memset(malloc(size), 0x44, size);
    }
    lt_count = 0;
    lt_also = allocate;
    lt_check();
    lt_also = allocate_and_free;
    lt_count = 0;
    let_threads_give_back();
    lt_also = NULL;
    HT_CHECK(allocate_from(heap, 40) != NULL, "a heap refuses outside, too");
    api_hak_heap_destroy(heap);
    HT_CHECK(kept_count > 0 && given_count > 0, "nothing was done inside");
    for (unsigned i = 0; i < kept_count; i++) {
        HT_CHECK(kept[i][0] == 0x33 && kept[i][99] == 0x33, "a block has changed");
        kept[i] = realloc(kept[i], 1000);
        HT_CHECK(kept[i][99] == 0x33, "realloc lost the contents");
        free(kept[i]);
    }
    for (unsigned i = given_count; i < KEPT; i++) {
        free(of_the_program[i]);
    }
    free(ht_hide(malloc(3 * HT_KIB)));
    const size_t live = mallinfo2().uordblks;
    HT_CHECK(ht_is_any() || live < HT_MIB, "what was freed inside is still in use: %zu", live);
    return 0;
}
