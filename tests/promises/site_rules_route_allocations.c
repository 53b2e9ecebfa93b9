// preload only
// native only
// not secure: there are no magazines for blocks of a kind to be kept apart in
// with features
// A rule treats the allocations of one function specially: slabs of their own, an alignment, zeros, a mapping
// that is released with the block. Rules come from a file, whose mistakes are reported in one line each, and from the program.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/nameless.h"
#include "../support/options.h"

enum { BLOCKS = 20000, LASTING_ONE_IN = 20, UNIT_LOG2 = 16 };

// Each writes another byte, or the compiler would merge the functions.
#define TAKER(name, byte)                                     \
    static __attribute__((noinline)) char *name(size_t bytes) \
    {                                                         \
        char *block = malloc(bytes);                          \
        HT_CHECK(block != NULL, "malloc(%zu) failed", bytes); \
        block[bytes - 1] = (byte);                            \
        return block;                                         \
    }
TAKER(take_lasting, 1)
TAKER(take_passing, 2)
TAKER(take_zeroed, 3)
TAKER(take_alone, 4)
TAKER(take_aligned, 5)

static __attribute__((noinline)) char *take_zeroed_again(size_t bytes)
{
    char *block = take_zeroed(bytes);
    block[bytes - 1] = 0;
    return block;
}

static char *lasting[BLOCKS];
static char *passing[BLOCKS];

static size_t shared_units(void)
{
    size_t shared = 0;
    for (unsigned i = BLOCKS / 2; i < BLOCKS; i += LASTING_ONE_IN) {
        bool is_shared = false;
        for (unsigned j = 0; j < BLOCKS && !is_shared; j++) {
            is_shared = (uintptr_t)passing[j] >> UNIT_LOG2 == (uintptr_t)lasting[i] >> UNIT_LOG2;
        }
        shared += is_shared;
    }
    return shared;
}

static void check_lifetimes(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        passing[i] = take_passing(100);
        if (i % LASTING_ONE_IN == 0) {
            lasting[i] = take_lasting(100);
        }
    }
    const size_t shared = shared_units();
    HT_CHECK(shared == 0, "%zu lasting blocks share a unit with passing ones", shared);
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(passing[i]);
        free(lasting[i]);
        lasting[i] = NULL;
    }
}

static bool is_clear(const char *block, size_t bytes)
{
    return *block == 0 && memcmp(block, block + 1, bytes - 1) == 0;
}

static void check_zeros(size_t bytes)
{
    for (unsigned i = 0; i < 200; i++) {
        char *block = take_passing(bytes);
        memset(block, 0xEE, bytes);
        free(block);
        block = take_zeroed_again(bytes);
        HT_CHECK(is_clear(block, bytes), "a ruled block of %zu bytes is not zeroed", bytes);
        memset(block, 0xEE, bytes);
        free(block);
    }
}

static void check_alone(void)
{
    HT_API(hak_owns);
    char *block = take_alone(200000);
    HT_CHECK(api_hak_owns(block), "a block in a mapping of its own is not ours");
    memset(block, 1, 200000);
    const void *place = ht_hide(block);
    free(block);
    HT_CHECK(!api_hak_owns(place), "a block that was to be unmapped is still there");
}

static void check_alignment(void)
{
    for (size_t bytes = 1; bytes < 200000; bytes += bytes / 3 + 1) {
        char *block = take_aligned(bytes);
        HT_CHECK((uintptr_t)block % 1024 == 0, "%p is not aligned to 1024", (void *)block);
        free(block);
    }
}

static int follow_rules(void)
{
    // Rules for small blocks take effect at refills: each function makes some calls.
    for (unsigned i = 0; i < 2000; i++) {
        passing[i] = take_zeroed(100);
        lasting[i] = take_zeroed(3000);
    }
    for (unsigned i = 0; i < 2000; i++) {
        free(passing[i]);
        free(lasting[i]);
        lasting[i] = NULL;
    }
    for (size_t bytes = 1; bytes < 40000; bytes += bytes / 9 + 1) {
        for (unsigned i = 0; i < 200; i++) {
            passing[i] = take_aligned(bytes);
        }
        for (unsigned i = 0; i < 200; i++) {
            free(passing[i]);
        }
    }
    check_lifetimes();
    check_zeros(100);
    check_zeros(3000);
    check_zeros(150000);
    check_alone();
    check_alignment();
    return 0;
}

// Run this program with a file of rules, and return what it prints on stderr.
static const char *run_with(const char *path)
{
    char setting[128];
    snprintf(setting, sizeof setting, "HAKMEM_SITE_RULES=%s", path);
    char *const settings[] = {setting, NULL};
    return ht_run_again("follow", settings);
}

static void check_file(void)
{
    static const char rules[] = "# comment\n"
                                "take_lasting -> long\n"
                                "take_zeroed -> zero # and another\n"
                                "  take_alone->unmap,uncached\n"
                                "take_aligned -> align=1024\n"
                                "take_lasting -> sideways\n"
                                "no rule\n"
                                "no_such_function -> short\n";
    char path[HT_NAMELESS_PATH];
    const int file = ht_nameless_file(rules, path);
    char expected[512];
    snprintf(expected,
             sizeof expected,
             "hakmem: %s:6: has an unknown way; the ways are short or long, uncached, unmap, "
             "huge, zero and align=16 to 32768\n"
             "hakmem: %s:7: is not a rule; write 'where -> way'\n",
             path,
             path);
    const char *said = run_with(path);
    HT_CHECK(strcmp(said, expected) == 0, "what was said is:\n%s", said);
    close(file);
}

static void check_api(void)
{
    HT_API(hak_site_rule);
    HT_CHECK(!api_hak_site_rule("main", "nowhere"), "a way that does not exist was taken");
    HT_CHECK(!api_hak_site_rule("main", "short,long"), "a contradiction was taken");
    HT_CHECK(!api_hak_site_rule("main", "align=8"), "less than every block's alignment was taken");
    HT_CHECK(!api_hak_site_rule("main", "align=64,align=512"), "two alignments were taken");
    HT_CHECK(!api_hak_site_rule("program+xyz", "long"), "an offset that is no number was taken");
    HT_CHECK(api_hak_site_rule("program+0x10-0x20", "long"), "a range was refused");
    HT_CHECK(api_hak_site_rule("take_lasting", "long"), "a function was refused");
    check_lifetimes();
}

int main(int count, char **arguments)
{
    (void)arguments;
    ht_start();
    if (count > 1) {
        return follow_rules();
    }
    check_file();
    check_api();
    return 0;
}
