// its names for all
// native only
// with features
// A block is freed with its requested size, whichever pools were on and whatever a rule for its site said when it
// was allocated: none of these makes that size wrong, whether sizes are checked now and then or always.
#include "../support/options.h"

#include <pthread.h>

enum { BLOCKS = 600 };

// How a block is allocated and freed.
struct way {
    const char *what;
    void *(*take)(size_t bytes);
    void (*give)(void *block, size_t bytes);
};

static void *blocks[BLOCKS];
static void (*sized)(void *, size_t);
static void (*aligned_sized)(void *, size_t, size_t);
static void (*delete_sized)(void *, size_t);
static void (*delete_aligned)(void *, size_t, size_t);

static void *take(size_t bytes)
{
    return malloc(bytes);
}

static void *take_aligned(size_t bytes)
{
    return aligned_alloc(64, bytes);
}

static void *take_zeros(size_t bytes)
{
    return calloc(1, bytes);
}

// A separate site, whose rule is added during the test.
static __attribute__((noinline)) void *take_ruled(size_t bytes)
{
    void *block = malloc(bytes);
    *(volatile char *)block = 1;
    return block;
}

static void give_sized(void *block, size_t bytes)
{
    sized(block, bytes);
}

static void give_aligned(void *block, size_t bytes)
{
    aligned_sized(block, 64, bytes);
}

static void give_deleted(void *block, size_t bytes)
{
    delete_sized(block, bytes);
}

static void give_deleted_aligned(void *block, size_t bytes)
{
    delete_aligned(block, bytes, 64);
}

static const struct way ways[] = {{"malloc", take, give_sized},
                                  {"calloc", take_zeros, give_sized},
                                  {"aligned_alloc", take_aligned, give_aligned},
                                  {"new", take, give_deleted},
                                  {"new, aligned", take_aligned, give_deleted_aligned},
                                  {"malloc at a ruled site", take_ruled, give_sized}};

static const struct way *way; // the one being tested
static size_t bytes_asked;

// In another thread, whose frees have no magazine: each size is checked.
static void *give_all(void *nothing)
{
    for (int i = 0; i < BLOCKS; i++) {
        way->give(ht_hide(blocks[i]), bytes_asked);
    }
    return nothing;
}

static void check(uint64_t tiny_pool, uint64_t pool)
{
    static const size_t sizes[] = {1, 24, 100, 400, 1000, 3000, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bytes_asked = sizes[i];
        ht_set_option("tiny_pool", tiny_pool);
        ht_set_option("pool", pool);
        for (int j = 0; j < BLOCKS; j++) {
            blocks[j] = way->take(bytes_asked);
            HT_CHECK(blocks[j] != NULL, "%s: no %zu bytes", way->what, bytes_asked);
        }
        ht_set_option("tiny_pool", 1);
        ht_set_option("pool", 1);
        pthread_t thread;
        HT_CHECK(pthread_create(&thread, NULL, give_all, NULL) == 0, "no thread");
        pthread_join(thread, NULL);
    }
}

static void find_functions(void)
{
    *(void **)(&sized) = dlsym(RTLD_DEFAULT, "free_sized");
    *(void **)(&aligned_sized) = dlsym(RTLD_DEFAULT, "free_aligned_sized");
    *(void **)(&delete_sized) = dlsym(RTLD_DEFAULT, "_ZdlPvm");
    *(void **)(&delete_aligned) = dlsym(RTLD_DEFAULT, "_ZdlPvmSt11align_val_t");
    HT_CHECK(sized != NULL && aligned_sized != NULL && delete_sized != NULL &&
                 delete_aligned != NULL,
             "a function that frees with a size is missing");
}

int main(void)
{
    ht_start();
    find_functions();
    HT_API(hak_site_rule);
    HT_CHECK(api_hak_site_rule("take_ruled", "align=4096"), "no rule for take_ruled");
    for (way = ways; way < ways + sizeof ways / sizeof ways[0]; way++) {
        for (uint64_t pools = 0; pools < 4; pools++) {
            check(pools % 2, pools / 2);
        }
    }
    return 0;
}
