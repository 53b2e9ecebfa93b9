// its names for all
// native only
// with features
// not secure: each large block has pages of its own there
// If there are no addresses for another mapping (RLIMIT_AS), a block whose rule wants one of its own is served from
// free units, as others are.
#include "../support/api.h"

#include "../support/addresses.h"

enum { BLOCKS = 100, TAKEN = 10 };
#define LONG_BYTES  (3 * HT_MIB)
#define RULED_BYTES (2 * HT_MIB)
#define SHORT_BYTES (60 * HT_KIB)

// Functions for rules to name: each writes another byte, or the compiler would merge them.
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
    ht_limit_addresses(0);
    ht_exhaust(LONG_BYTES);
    ht_exhaust(SHORT_BYTES);
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
