// static too
// sleeps
// native only
// not secure: with its canary a block of 16 bytes is twice as long
// After a peak of small blocks, resident memory falls to within a tenth and 4 MiB
// of what is live, within two seconds, while the program sleeps.
#include "../support/peak.h"

int main(void)
{
    ht_start();
    static const size_t sizes[] = {16, 200, 1000};
    ht_check_peaks_of(sizes, sizeof sizes / sizeof *sizes, 64 * HT_MIB);
    return 0;
}
