// preload only
// native only
// not secure: it asks for that itself
// with features
// A rule with align=N applies to each block of its function also where every call takes the slow path: with check, and in mode
// secure.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/options.h"

enum { BYTES_MOST = 6000, BYTES_STEP = 37, ROUNDS = 20, ALIGNMENT = 1024 };

static __attribute__((noinline)) char *take_aligned(size_t bytes)
{
    char *block = malloc(bytes);
    HT_CHECK(block != NULL, "malloc(%zu) failed", bytes);
    HT_CHECK((uintptr_t)block % ALIGNMENT == 0,
             "malloc(%zu) gave %p, which is not aligned to %d",
             bytes,
             (void *)block,
             ALIGNMENT);
    memset(block, 1, bytes);
    return block;
}

static int follow_rule(void)
{
    HT_API(hak_site_rule);
    HT_API(hak_free_sized);
    HT_CHECK(api_hak_site_rule("take_aligned", "align=1024"), "the rule was refused");
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t bytes = 1; bytes < BYTES_MOST; bytes += BYTES_STEP) {
            char *block = take_aligned(bytes);
            if (round % 2 == 0) {
                api_hak_free_sized(block, bytes);
                continue;
            }
            block = realloc(block, bytes + 1);
            HT_CHECK(block != NULL && block[bytes - 1] == 1, "realloc lost what was written");
            free(block);
        }
    }
    return 0;
}

static void check_with(char *setting)
{
    char *const settings[] = {setting, NULL};
    const char *said = ht_run_again("follow", settings);
    HT_CHECK(*said == '\0', "with %s it said:\n%s", setting, said);
}

int main(int count, char **arguments)
{
    (void)arguments;
    ht_start();
    if (count > 1) {
        return follow_rule();
    }
    check_with("HAKMEM_CHECK=1");
    check_with("HAKMEM_MODE=secure");
    return 0;
}
