// its names for all
// static too
// native only
// env: HAKMEM_GUARD_SAMPLE=1 HAKMEM_CHECK=1
// Locked memory (mlockall) cannot be purged: its content stays. A program that only writes what it requested, and frees
// it, is not ended because of what we have left there ourselves, wherever its blocks are; and its
// zeros are zeros.
#include "../support/memory.h"

#include <sys/resource.h>

enum { ROUNDS = 40000, KEPT = 64, SMALL_MOST = 900, LARGE_MOST = 400000, LARGE_ONE_IN = 200 };

static unsigned char *kept[KEPT];

static void check_zeros(const unsigned char *block, size_t bytes)
{
    HT_CHECK(*block == 0 && memcmp(block, block + 1, bytes - 1) == 0,
             "calloc(1, %zu) is not zero",
             bytes);
}

int main(void)
{
    ht_start();
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_MEMLOCK, &none);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        HT_SKIP("mlockall: errno %d", errno);
    }
    struct ht_random random = {1};
    for (int i = 0; i < ROUNDS; i++) {
        const bool is_large = ht_random_below(&random, LARGE_ONE_IN) == 0;
        const size_t bytes = 16 + ht_random_below(&random, is_large ? LARGE_MOST : SMALL_MOST);
        unsigned char **place = &kept[ht_random_below(&random, KEPT)];
        free(*place);
        *place = malloc(bytes);
        HT_CHECK(*place != NULL, "no %zu bytes", bytes);
        if (i % 4 == 0) {
            free(*place);
            *place = calloc(1, bytes);
            HT_CHECK(*place != NULL, "no %zu bytes", bytes);
            check_zeros(*place, bytes);
        }
        memset(*place, 0x5a, bytes);
        if (i % 10000 == 0) {
            malloc_trim(0);
        }
    }
    return 0;
}
