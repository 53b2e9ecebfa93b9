// Blocks of every length are cleared and checked as hardened_secure.c does it, with the widest vectors.
#define HAK_IS_WIDE 1
#include "base/cpu.h"
#include "clearing.h"

enum { SKIPPED = 77 };

int main(void)
{
    if (!hak_cpu_is_wide()) {
        return SKIPPED;
    }
    a_cleared_block_is_zero_from_end_to_end();
    return 0;
}
