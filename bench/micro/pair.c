// pair.c -- pairs of malloc and free of one size.
#include "idle.h"
#include "loop.h"

LOOP_INLINE void pairs(size_t bytes, size_t n, void *(*take)(size_t), void (*give)(void *))
{
    for (size_t i = 0; i < n; i++) {
        volatile unsigned char *block = loop_require(take(bytes));
        *block = 1;
        give((void *)block);
    }
}

int main(int argc, char **argv)
{
    static const char usage[] = "pair <bytes> <n>";
    size_t bytes = loop_number(argc, argv, 1, usage);
    size_t n = loop_number(argc, argv, 2, usage);
    if (loop_is_idle(argc, argv, 3, usage)) {
        pairs(bytes, n, idle_take, idle_give);
    } else {
        pairs(bytes, n, malloc, free);
    }
    return 0;
}
