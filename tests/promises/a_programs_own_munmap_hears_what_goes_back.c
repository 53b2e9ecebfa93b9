// sleeps
// not tagged: it compares addresses, which have tags there
// A program, or a preloaded library, may define munmap, madvise and mremap itself, and hears of all memory that goes back.
#include "../support/own_munmap.h"

int main(void)
{
    ht_start();
    lt_count = 0;
    lt_check();
    return 0;
}
