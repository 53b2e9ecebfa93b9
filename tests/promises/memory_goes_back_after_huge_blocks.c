// serial
// native only
// After a peak of huge blocks, resident memory falls to within a tenth and 4 MiB
// of what is live, within two seconds, while the program sleeps.
#include "../support/peak.h"

int main(void)
{
    ht_start();
    static const size_t sizes[] = {2500000, 8000000, 40000000};
    ht_need_memory(512 * HT_MIB);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ht_check_peaks(sizes[i], 160 * HT_MIB);
    }
    return 0;
}
