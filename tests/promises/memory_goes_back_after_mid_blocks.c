// sleeps
// native only
// After a peak of mid blocks, resident memory falls to within a tenth and 4 MiB
// of what is live, within two seconds, while the program sleeps.
#include "../support/peak.h"

int main(void)
{
    ht_start();
    static const size_t sizes[] = {1500, 9000, 30000};
    ht_check_peaks_of(sizes, sizeof sizes / sizeof *sizes, 64 * HT_MIB);
    return 0;
}
