// misuse.h -- what the programs in tests/misuse share.
//
// Each makes one mistake and must die by SIGABRT with the line that its first
// comment names. If it reaches the end of main, or exits with 0, the test has failed.
#ifndef HAK_TESTS_SUPPORT_MISUSE_H
#define HAK_TESTS_SUPPORT_MISUSE_H

#include "promise.h"

#include <pthread.h>

// Write to a block, so that it counts as used, and hide its origin from the compiler.
static inline char *ht_block(size_t size)
{
    char *block = ht_hide(malloc(size));
    if (block == NULL) {
        HT_BREAK("malloc(%zu) failed", size);
    }
    memset(block, 1, size);
    return block;
}

static inline void ht_free(void *block)
{
    free(ht_hide(block));
}

#endif
