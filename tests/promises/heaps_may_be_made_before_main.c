// linked only
// native only
// with features
// A constructor may make heaps before hakmem's own constructor has read the options. What is allocated from them once each block
// is checked, as in mode secure, can be resized and freed, and so can what was allocated before. So may a heap that was made in
// place of one that ended then.
#include "../support/promise.h"

#include <hakmem/hakmem.h>

#include "../support/options.h"

enum { BLOCKS = 500, EARLY_BYTES = 50, BYTES = 40, MORE_BYTES = 5000 };

static struct hak_heap *heap;
static unsigned char *early[BLOCKS];

// 0 to 100 are the system's own priorities; 101 comes first of a program's.
__attribute__((constructor(101))) static void construct_first(void)
{
    heap = hak_heap_create();
    struct hak_heap *ended = hak_heap_create();
    HT_CHECK(heap != NULL && ended != NULL, "no heap in a constructor");
    HT_CHECK(hak_heap_malloc(ended, EARLY_BYTES) != NULL, "no block in a constructor");
    hak_heap_destroy(ended);
    for (unsigned i = 0; i < BLOCKS; i++) {
        early[i] = hak_heap_malloc(heap, EARLY_BYTES);
        HT_CHECK(early[i] != NULL, "no block in a constructor");
        memset(early[i], (int)i, EARLY_BYTES);
    }
}

static void use(struct hak_heap *used)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned char *block = hak_heap_malloc(used, BYTES);
        HT_CHECK(block != NULL, "no block");
        memset(block, (int)i, BYTES);
        block = realloc(block, MORE_BYTES);
        HT_CHECK(block != NULL && block[BYTES - 1] == (unsigned char)i, "realloc lost the content");
        free(block);
        free(hak_heap_malloc(used, EARLY_BYTES));
    }
}

static int use_heaps(void)
{
    struct hak_heap *other = hak_heap_create();
    HT_CHECK(other != NULL, "no heap");
    use(heap);
    use(other);
    for (unsigned i = 0; i < BLOCKS; i++) {
        HT_CHECK(early[i][EARLY_BYTES - 1] == (unsigned char)i, "an early block has changed");
        if (i % 2 == 0) {
            free(early[i]);
        }
    }
    use(heap);
    hak_heap_destroy(heap);
    hak_heap_destroy(other);
    return 0;
}

int main(int count, char **arguments)
{
    (void)arguments;
    ht_start();
    if (count > 1) {
        return use_heaps();
    }
    static char balanced[] = "HAKMEM_MODE=balanced";
    static char secure[] = "HAKMEM_MODE=secure";
    static char canaries[] = "HAKMEM_CANARIES=1";
    static char zeros[] = "HAKMEM_ZERO_ON_FREE=1";
    char *const settings[][3] = {
        {balanced, NULL}, {secure, NULL}, {balanced, canaries, NULL}, {balanced, zeros, NULL}};
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++) {
        ht_run_again("use", settings[i]);
    }
    return 0;
}
