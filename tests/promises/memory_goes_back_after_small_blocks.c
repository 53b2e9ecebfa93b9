// static too
// serial
// native only
// not secure: the quarantine keeps pages
// After a peak of small blocks, resident memory falls to within a tenth and 4 MiB
// of what is live, within two seconds, while the program sleeps.
#include "../support/peak.h"

int main(void)
{
    ht_start();
    static const size_t sizes[] = {16, 200, 1000};
    ht_need_memory(512 * HT_MIB);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ht_check_peaks(sizes[i], 64 * HT_MIB);
    }
    return 0;
}
