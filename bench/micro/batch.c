// batch.c -- `count` blocks of one size are allocated, then freed oldest first; n counts pairs.
#include "idle.h"
#include "loop.h"

enum { COUNT_MAX = 1 << 16 };

static void *blocks[COUNT_MAX];

LOOP_INLINE void batches(
    size_t bytes, size_t count, size_t n, void *(*take)(size_t), void (*give)(void *))
{
    for (size_t done = 0; done < n; done += count) {
        for (size_t i = 0; i < count; i++) {
            unsigned char *block = loop_require(take(bytes));
            *block = 1;
            blocks[i] = block;
        }
        for (size_t i = 0; i < count; i++) {
            give(blocks[i]);
        }
    }
}

int main(int argc, char **argv)
{
    static const char usage[] = "batch <bytes> <count> <n>";
    size_t bytes = loop_number(argc, argv, 1, usage);
    size_t count = loop_number(argc, argv, 2, usage);
    size_t n = loop_number(argc, argv, 3, usage);
    if (count > COUNT_MAX) {
        loop_reject(usage);
    }
    if (loop_is_idle(argc, argv, 4, usage)) {
        batches(bytes, count, n, idle_take, idle_give);
    } else {
        batches(bytes, count, n, malloc, free);
    }
    return 0;
}
