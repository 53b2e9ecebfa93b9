// sleeps
// native only
// After a peak of huge blocks, resident memory falls to within a tenth and 4 MiB
// of what is live, within two seconds, while the program sleeps.
#include "../support/peak.h"

int main(void)
{
    ht_start();
    static const size_t sizes[] = {2500000, 8000000, 40000000};
    ht_check_peaks_of(sizes, sizeof sizes / sizeof *sizes, 160 * HT_MIB);
    return 0;
}
