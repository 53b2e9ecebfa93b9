// native only
// When a limit of the process is reached (RLIMIT_AS, RLIMIT_DATA), a request of any size gets
// NULL with ENOMEM; no allocated block changes; free works; and when
// the limit is lifted or blocks were freed, allocation works again.
#include "../support/memory.h"

#include <sys/resource.h>

enum { MOST_BLOCKS = 1 << 21 };

struct kept {
    unsigned char *bytes;
    size_t size;
};

static struct kept *kept;
static size_t count;

// What is limited, and where the kernel tells how much of it is used.
static const struct {
    ht_resource limit;
    const char *field;
} resources[] = {{RLIMIT_AS, "VmSize"}, {RLIMIT_DATA, "VmData"}};

enum { RESOURCES = sizeof resources / sizeof *resources };

static void set_limit(size_t resource, rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(resources[resource].limit, &limit);
    limit.rlim_cur = bytes;
    HT_CHECK(setrlimit(resources[resource].limit, &limit) == 0, "setrlimit failed");
}

static unsigned char mark(const unsigned char *block)
{
    return (unsigned char)((uintptr_t)block >> 4);
}

// Allocate blocks of `size` until there are no more.
static void exhaust(size_t size)
{
    for (;;) {
        errno = 0;
        unsigned char *block = malloc(size);
        if (block == NULL) {
            HT_CHECK(errno == ENOMEM, "malloc(%zu): errno is %d, not ENOMEM", size, errno);
            return;
        }
        if (count == MOST_BLOCKS) {
            HT_SKIP("no end of memory below the limit");
        }
        block[0] = mark(block);
        block[size - 1] = mark(block);
        kept[count++] = (struct kept){block, size};
    }
}

static void check_all(void)
{
    for (size_t i = 0; i < count; i++) {
        const struct kept *block = &kept[i];
        HT_CHECK(block->bytes[0] == mark(block->bytes) &&
                     block->bytes[block->size - 1] == mark(block->bytes),
                 "a block of %zu changed when memory ran out",
                 block->size);
    }
}

static void fail_in_other_ways(void)
{
    unsigned char *block = kept[0].bytes;
    void *other = NULL;
    errno = 0;
    HT_CHECK(realloc(block, 600 * HT_MIB) == NULL && errno == ENOMEM, "realloc: errno %d", errno);
    errno = 0;
    HT_CHECK(ht_hide(calloc(600, HT_MIB)) == NULL && errno == ENOMEM, "calloc: errno %d", errno);
    errno = 0;
    HT_CHECK(aligned_alloc(HT_MIB, 600 * HT_MIB) == NULL && errno == ENOMEM,
             "aligned_alloc: errno %d",
             errno);
    HT_CHECK(posix_memalign(&other, HT_MIB, 600 * HT_MIB) == ENOMEM, "posix_memalign found memory");
}

static void run_out(size_t resource)
{
    // The library may have reserved much without using it: the limit is
    // set above the present value, and what was reserved counts as memory.
    size_t now = (size_t)ht_proc_number("/proc/self/status", resources[resource].field) * HT_KIB;
    set_limit(resource, now + 96 * HT_MIB);
    count = 0;
    static const size_t sizes[] = {40 * HT_MIB, 3 * HT_MIB, 300000, 40000, 5000, 1000, 100};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t first = count;
        exhaust(sizes[i]);
        check_all();
        if (i + 1 < sizeof sizes / sizeof *sizes) {
            // Free half of them again, so that smaller blocks find room.
            for (size_t j = first + (count - first) / 2; count > j;) {
                free(kept[--count].bytes);
            }
        }
    }
    HT_CHECK(count > 1000, "only %zu blocks before memory ran out", count);
    fail_in_other_ways();
    check_all();
    for (size_t i = count; i > count / 2; i--) {
        free(kept[i - 1].bytes);
    }
    count /= 2;
    void *block = malloc(100);
    HT_CHECK(block != NULL, "no memory although blocks of the same size were freed");
    free(block);
    set_limit(resource, RLIM_INFINITY);
    block = malloc(100 * HT_MIB);
    HT_CHECK(block != NULL, "no memory although the limit was lifted");
    free(block);
    check_all();
    while (count > 0) {
        free(kept[--count].bytes);
    }
}

int main(void)
{
    ht_start();
    kept = ht_map(MOST_BLOCKS * sizeof *kept);
    for (size_t resource = 0; resource < RESOURCES; resource++) {
        struct rlimit before;
        getrlimit(resources[resource].limit, &before);
        if (before.rlim_max != RLIM_INFINITY) {
            HT_SKIP("this process is limited already");
        }
        for (int round = 0; round < 3; round++) {
            run_out(resource);
        }
    }
    return 0;
}
