// env: HAKMEM_BATCH_MADVISE=on
// sleeps
// native only
// preload only
// With many ranges purged by one system call, as option batch_madvise does, or one by one where
// the kernel refuses that call, resident memory falls as it does without the option.
#include "../support/peak.h"

int main(void)
{
    ht_start();
    static const size_t sizes[] = {700, 300 * HT_KIB};
    ht_check_peaks_of(sizes, sizeof sizes / sizeof *sizes, 64 * HT_MIB);
    return 0;
}
