// its names for all
// native only
// with features
// not secure: each large block has pages of its own there
// Where there are no addresses for another mapping (RLIMIT_AS), a block whose rule wants one of its own goes the common way: into
// what is free.
#include "../support/api.h"

#include "../support/memory.h"

#include <sys/resource.h>

enum { BLOCKS = 100, TAKEN = 10 };
#define LONG_BYTES  (3 * HT_MIB)
#define RULED_BYTES (2 * HT_MIB)
#define SHORT_BYTES (60 * HT_KIB)

// Functions for rules to name: each writes something else, or the compiler would make one of both.
#define TAKER(name, byte)                             \
    static __attribute__((noinline)) void *name(void) \
    {                                                 \
        char *block = malloc(RULED_BYTES);            \
        if (block != NULL) {                          \
            *(volatile char *)block = (byte);         \
        }                                             \
        return block;                                 \
    }
TAKER(take_unmapped, 1)
TAKER(take_huge, 2)

static void exhaust(size_t bytes)
{
    while (ht_hide(malloc(bytes)) != NULL) {
    }
}

int main(void)
{
    static void *blocks[BLOCKS];
    ht_start();
    HT_API(hak_site_rule);
    HT_CHECK(api_hak_site_rule("take_unmapped", "unmap"), "no rule");
    HT_CHECK(api_hak_site_rule("take_huge", "huge"), "no rule");
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(LONG_BYTES);
        HT_CHECK(blocks[i] != NULL, "malloc failed");
    }
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (size_t)ht_proc_number("/proc/self/status", "VmSize") * HT_KIB;
    HT_CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit failed");
    exhaust(LONG_BYTES);
    exhaust(SHORT_BYTES);
    for (size_t i = 0; i < BLOCKS; i++) { // so that no superslab is free
        free(blocks[i]);
        HT_CHECK(ht_hide(malloc(SHORT_BYTES)) != NULL, "malloc failed");
    }
    for (size_t i = 0; i < TAKEN; i++) {
        HT_CHECK(ht_hide(take_unmapped()) != NULL, "refused with a rule, %zu taken", i);
        HT_CHECK(ht_hide(take_huge()) != NULL, "refused with a rule, %zu taken", i);
    }
    return 0;
}
