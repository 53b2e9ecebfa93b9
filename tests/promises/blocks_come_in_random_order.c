// env: HAKMEM_RANDOM_ORDER=1
// preload only
// with features
//
// The address of the next block cannot be predicted from those of the last ones.
#include "../support/promise.h"

enum { BLOCKS = 256 };

int main(void)
{
    ht_start();
    uintptr_t before = 0;
    uintptr_t step_before = 0;
    int same_steps = 0;
    for (int i = 0; i < BLOCKS; i++) {
        const uintptr_t block = (uintptr_t)ht_hide(malloc(200));
        same_steps += block - before == step_before;
        step_before = block - before;
        before = block;
    }
    // By chance a step equals the one before once in some hundred times.
    HT_CHECK(same_steps < BLOCKS / 4, "%d of %d steps were the same", same_steps, BLOCKS);
    return 0;
}
