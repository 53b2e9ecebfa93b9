// its names for all
// native only
// with features
// A function that hak_visit_blocks calls may ask what any address is, as a collector does of all words, also when blocks lie
// outside the range that is set apart for the heap: these are 200 GiB, of which nothing is written.
#include "../support/options.h"

enum { BLOCKS = 25 };
#define BYTES ((size_t)8 << 30)

static char *blocks[BLOCKS];
static __typeof__(hak_owns) *owns;
static __typeof__(hak_describe) *describe;
static __typeof__(hak_usable_size) *usable_size;
static size_t visited;

static bool see(void *block, size_t bytes, void *argument)
{
    struct hak_block_info info;
    (void)block;
    (void)bytes;
    visited++;
    HT_CHECK(!owns(argument) && usable_size(argument) == 0 && !describe(argument, &info),
             "an address of the stack is taken for a block");
    HT_CHECK(!owns(NULL), "NULL is taken for a block");
    for (unsigned i = 0; i < BLOCKS; i++) {
        HT_CHECK(describe(blocks[i] + BYTES / 2, &info) && info.start == blocks[i],
                 "the middle of block %u is not known",
                 i);
    }
    return true;
}

int main(void)
{
    ht_start();
    HT_API(hak_owns);
    HT_API(hak_describe);
    HT_API(hak_usable_size);
    HT_API(hak_visit_blocks);
    owns = api_hak_owns;
    describe = api_hak_describe;
    usable_size = api_hak_usable_size;
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        if (blocks[i] == NULL) {
            HT_SKIP("no blocks of 8 GiB");
        }
    }
    int here = 0;
    HT_CHECK(api_hak_visit_blocks(NULL, see, &here), "the visit was cut short");
    HT_CHECK(visited >= BLOCKS, "%zu blocks were visited", visited);
    return 0;
}
