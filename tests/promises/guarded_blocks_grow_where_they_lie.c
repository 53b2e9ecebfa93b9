// with features
// env: HAKMEM_GUARD_LARGE=1
// native only
//
// A guarded block that grows in small steps is copied a few times at most; so are several that grow in turn and
// stand in each other's way. Memory behind the block's last page can never be touched, whether the block has grown or shrunk.
#include "../support/memory.h"
#include "../support/older_kernel.h"

enum { SOME = 3 };

static char *blocks[SOME];
static size_t sizes[SOME];
static size_t copied;

static bool can_be_read(const char *address)
{
    int ends[2];
    HT_CHECK(pipe(ends) == 0, "no pipe");
    const ssize_t got = write(ends[1], address, 1);
    close(ends[0]);
    close(ends[1]);
    return got == 1;
}

static void check_guard(size_t i)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t behind = ((uintptr_t)blocks[i] + sizes[i] + page - 1) & ~(page - 1);
    HT_CHECK(can_be_read((const char *)behind - 1), "the end of %zu bytes is shut", sizes[i]);
    HT_CHECK(!can_be_read((const char *)behind), "no guard behind %zu bytes", sizes[i]);
}

static void resize(size_t i, size_t bytes)
{
    char *block = ht_hide(realloc(blocks[i], bytes));
    HT_CHECK(block != NULL, "realloc to %zu failed", bytes);
    if (block != blocks[i]) {
        copied += bytes < sizes[i] ? bytes : sizes[i];
    }
    blocks[i] = block;
    if (bytes > sizes[i]) {
        memset(block + sizes[i], (int)i + 1, bytes - sizes[i]);
    }
    sizes[i] = bytes;
    HT_CHECK(malloc_usable_size(block) == bytes, "%zu of %zu", malloc_usable_size(block), bytes);
}

static void check_content(size_t i)
{
    for (size_t at = 0; at < sizes[i]; at++) {
        HT_CHECK(blocks[i][at] == (char)(i + 1), "byte %zu of block %zu changed", at, i);
    }
}

static void start(size_t count)
{
    copied = 0;
    for (size_t i = 0; i < count; i++) {
        sizes[i] = 40000;
        blocks[i] = malloc(sizes[i]);
        HT_CHECK(blocks[i] != NULL, "no block");
        memset(blocks[i], (int)i + 1, sizes[i]);
    }
}

static void alone(void)
{
    start(1);
    for (size_t step = 0; sizes[0] < 20 * HT_MIB; step++) {
        resize(0, sizes[0] + 64);
        if (step % 1000 == 0) {
            check_guard(0);
        }
    }
    HT_CHECK(copied <= 2 * sizes[0], "%zu bytes copied to reach %zu", copied, sizes[0]);
    check_content(0);
    while (sizes[0] > 100000) {
        resize(0, sizes[0] - sizes[0] / 50);
        check_guard(0);
    }
    HT_CHECK(copied <= 4 * 20 * HT_MIB, "%zu bytes copied to shrink", copied);
    check_content(0);
    resize(0, 3 * HT_MIB); // it grows again over what it had given up
    check_content(0);
    free(blocks[0]);
}

static void in_turn(void)
{
    start(SOME);
    while (sizes[0] < 50 * HT_MIB) {
        for (size_t i = 0; i < SOME; i++) {
            resize(i, sizes[i] + 10000);
        }
    }
    HT_CHECK(copied <= SOME * 10 * sizes[0],
             "%zu bytes copied to reach %zu three times",
             copied,
             sizes[0]);
    for (size_t i = 0; i < SOME; i++) {
        check_guard(i);
        check_content(i);
        free(blocks[i]);
    }
}

// Fresh memory behind a block that has shrunk is zeros: calloc relies on it, and so does the check of the rest of its page.
static void grows_into_zeros(void)
{
    start(1);
    resize(0, 300000);
    resize(0, 200001);
    char *block = realloc(blocks[0], 250000);
    HT_CHECK(block != NULL, "no block");
    for (size_t at = 200001; block == blocks[0] && at < 250000; at++) {
        HT_CHECK(block[at] == 0, "byte %zu is not 0", at);
    }
    free(block);
}

static void grow(void)
{
    alone();
    in_turn();
    grows_into_zeros();
}

int main(void)
{
    ht_start();
    ht_need_memory(HT_GIB);
    if (sysconf(_SC_PAGESIZE) > 16384) {
        HT_SKIP("pages as long as a unit");
    }
    ht_on_both_kernels(grow);
    return 0;
}
