// its names for all
// native only
// If no memory is left (RLIMIT_AS), realloc to fewer bytes still succeeds, as with the C library: a program that shrinks a
// block may rely on that, and have no other way out. The content and errno stay, and the block may be freed with its size.
#include "../support/api.h"

#include "../support/addresses.h"

static const size_t sizes[][2] = {{600 * HT_MIB, HT_MIB},
                                  {100 * HT_MIB, 5 * HT_MIB},
                                  {100 * HT_MIB, HT_MIB},
                                  {3 * HT_MIB, HT_MIB},
                                  {HT_MIB, 1000},
                                  {200000, 40000},
                                  {30000, 3000},
                                  {4000, 100},
                                  {100, 1}};
enum { SIZES = sizeof sizes / sizeof *sizes };

int main(void)
{
    ht_start();
    HT_API(hak_free_sized);
    unsigned char *blocks[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        blocks[i] = malloc(sizes[i][0]);
        HT_CHECK(blocks[i] != NULL, "malloc(%zu) failed", sizes[i][0]);
        memset(blocks[i], (int)i + 1, sizes[i][1]);
    }
    ht_limit_addresses(0);
    for (size_t i = SIZES; i-- > 0;) {
        ht_exhaust_all();
        errno = 0;
        blocks[i] = realloc(blocks[i], sizes[i][1]);
        HT_CHECK(blocks[i] != NULL, "%zu bytes to %zu were refused", sizes[i][0], sizes[i][1]);
        HT_CHECK(errno == 0, "errno is %d", errno);
        HT_CHECK(malloc_usable_size(blocks[i]) >= sizes[i][1], "%zu bytes", sizes[i][1]);
    }
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t at = 0; at < sizes[i][1]; at++) {
            HT_CHECK(blocks[i][at] == i + 1, "byte %zu of %zu was lost", at, sizes[i][1]);
        }
        api_hak_free_sized(blocks[i], sizes[i][1]);
    }
    ht_limit_addresses(SIZE_MAX);
    void *block = malloc(64 * HT_MIB);
    HT_CHECK(block != NULL, "no memory although the limit was lifted");
    free(block);
    return 0;
}
