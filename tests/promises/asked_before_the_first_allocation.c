// static too
// with features
// A program that asks for statistics, or trims the heap, before anything was allocated gets an answer.
#include "../support/promise.h"

#include <malloc.h>

static int trimmed = -1;
static size_t used = 1;

__attribute__((constructor(101))) static void ask(void)
{
    trimmed = malloc_trim(0);
    used = mallinfo2().uordblks;
}

int main(void)
{
    ht_start();
    HT_CHECK(trimmed >= 0 && used < HT_MIB, "trimmed %d, in use %zu", trimmed, used);
    free(ht_hide(malloc(100)));
    return 0;
}
