// its names for all
// native only
// with features
// hak_visit_blocks visits every block that the program holds, once, with its size, and no free block:
// blocks of several threads, of ended ones, of heaps, small and large, after many were freed by
// any thread; also guarded ones and those with a canary. As many are live as statistics say. A visitor
// may ask what an address is.
#include "../support/options.h"
#include "../support/random.h"

#include <pthread.h>

enum { HELD = 60000, THREADS = 4, STEPS = 60000 };

// The live blocks: sorted by address before each visit.
struct held {
    uintptr_t start;
    size_t bytes;
    unsigned seen;
};

static struct held held[THREADS][HELD];
static size_t held_count[THREADS];
static struct held all[THREADS * HELD];
static size_t all_count;
static size_t unknown; // the C library's own, and the dynamic linker's
static size_t visited;
static pthread_barrier_t are_all_done;
static pthread_barrier_t is_seen;
static __typeof__(hak_heap_malloc) *allocate_from;

static void step(struct ht_random *random, unsigned thread, struct hak_heap *heap)
{
    struct held *mine = held[thread];
    size_t *count = &held_count[thread];
    if (*count == HELD || (*count > 0 && ht_random_below(random, 5) < 2)) {
        const size_t gone = ht_random_below(random, *count);
        free((void *)mine[gone].start);
        mine[gone] = mine[--*count];
        return;
    }
    const size_t bytes = ht_random_below(random, 500) == 0 ? 1 + ht_random_below(random, 3 * HT_MIB)
                                                           : 1 + ht_random_below(random, 2000);
    void *block = heap != NULL ? allocate_from(heap, bytes) : malloc(bytes);
    HT_CHECK(block != NULL, "no memory");
    mine[(*count)++] = (struct held){(uintptr_t)block, bytes, 0};
}

static void *work(void *argument)
{
    const unsigned thread = (unsigned)(uintptr_t)argument;
    struct ht_random random = {thread + 1};
    for (unsigned i = 0; i < STEPS; i++) {
        step(&random, thread, NULL);
    }
    if (thread % 2 != 0) {
        return NULL; // ends before the visit, and its blocks stay
    }
    pthread_barrier_wait(&are_all_done); // holds its blocks
    pthread_barrier_wait(&is_seen);
    return NULL;
}

static int by_start(const void *a, const void *b)
{
    const uintptr_t x = ((const struct held *)a)->start;
    const uintptr_t y = ((const struct held *)b)->start;
    return (x > y) - (x < y);
}

static struct held *find(uintptr_t start)
{
    const struct held wanted = {start, 0, 0};
    return bsearch(&wanted, all, all_count, sizeof *all, by_start);
}

static void gather(unsigned first, unsigned last)
{
    all_count = 0;
    for (unsigned thread = first; thread <= last; thread++) {
        for (size_t i = 0; i < held_count[thread]; i++) {
            all[all_count++] = held[thread][i];
        }
    }
    qsort(all, all_count, sizeof *all, by_start);
    unknown = 0;
    visited = 0;
}

static __typeof__(hak_describe) *describe;

// Is a block, asked about by its last byte, what the walk says?
static bool is_described(void *block, size_t bytes)
{
    struct hak_block_info info;
    return describe((char *)block + bytes - 1, &info) && info.start == block &&
           info.bytes == bytes && !info.is_free;
}

static bool see(void *block, size_t bytes, void *argument)
{
    struct held *known = find((uintptr_t)block);
    (void)argument;
    visited++;
    if (known == NULL) {
        unknown++;
        return true;
    }
    known->seen++;
    if (bytes < known->bytes || bytes > malloc_usable_size(block) || !is_described(block, bytes)) {
        known->seen = 100;
    }
    return true;
}

static void check_seen(const char *what, size_t most_unknown)
{
    for (size_t i = 0; i < all_count; i++) {
        HT_CHECK(all[i].seen == 1,
                 "%s: a block of %zu was seen %u times",
                 what,
                 all[i].bytes,
                 all[i].seen);
    }
    HT_CHECK(unknown <= most_unknown, "%s: %zu blocks are nobody's", what, unknown);
}

static bool stop_at_ten(void *block, size_t bytes, void *argument)
{
    (void)block;
    (void)bytes;
    return ++*(unsigned *)argument < 10;
}

static void check_count(void)
{
    HT_API(hak_stats_read);
    struct hak_stats stats;
    api_hak_stats_read(&stats);
    HT_CHECK(stats.live_blocks == visited,
             "%zu blocks are live, and %zu were visited",
             stats.live_blocks,
             visited);
}

int main(int count_of_arguments, char **arguments)
{
    (void)arguments;
    ht_start();
    if (count_of_arguments == 1) {
        char guards[] = "HAKMEM_GUARD_SAMPLE=1";
        char canaries[] = "HAKMEM_CANARIES=1";
        char *const settings[][2] = {{guards, NULL}, {canaries, NULL}};
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            const char *said = ht_run_again("again", settings[i]);
            HT_CHECK(*said == '\0', "with %s: %s", settings[i][0], said);
        }
    }
    HT_API(hak_describe);
    describe = api_hak_describe;
    HT_API(hak_visit_blocks);
    HT_API(hak_heap_create);
    HT_API(hak_heap_malloc);
    HT_API(hak_heap_destroy);
    allocate_from = api_hak_heap_malloc;
    pthread_t threads[THREADS];
    pthread_barrier_init(&are_all_done, NULL, THREADS / 2 + 1);
    pthread_barrier_init(&is_seen, NULL, THREADS / 2 + 1);
    for (uintptr_t i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0, "no thread");
    }
    pthread_barrier_wait(&are_all_done);
    for (unsigned i = 1; i < THREADS; i += 2) {
        pthread_join(threads[i], NULL);
    }
    // Blocks that another thread frees are in parcels.
    for (unsigned thread = 0; thread < THREADS; thread++) {
        for (unsigned i = 0; i < 500; i++) {
            free((void *)held[thread][--held_count[thread]].start);
        }
    }
    gather(0, THREADS - 1);
    HT_CHECK(api_hak_visit_blocks(NULL, see, NULL), "not all were visited");
    check_seen("the process", 200);
    check_count();

    struct hak_heap *heap = api_hak_heap_create();
    struct ht_random random = {99};
    held_count[0] = 0; // its blocks stay live, and are not the heap's
    for (unsigned i = 0; i < STEPS; i++) {
        step(&random, 0, heap);
    }
    gather(0, 0);
    HT_CHECK(api_hak_visit_blocks(heap, see, NULL), "not all of the heap were visited");
    check_seen("a heap", 0);
    unsigned count = 0;
    HT_CHECK(!api_hak_visit_blocks(NULL, stop_at_ten, &count) && count == 10,
             "it went on after it was told to stop: %u",
             count);
    api_hak_heap_destroy(heap);
    pthread_barrier_wait(&is_seen);
    for (unsigned i = 0; i < THREADS; i += 2) {
        pthread_join(threads[i], NULL);
    }
    free(ht_hide(malloc(100))); // the locks are free again
    return 0;
}
