// static too
// sleeps
// native only
// args in secure: 120 200 1000
// After a peak of small blocks, resident memory falls to within a tenth and 4 MiB
// of what is live, within two seconds, while the program sleeps. (Of small blocks in
// no order, the last few thousand frees end nearly all slabs.) In mode secure: of
// blocks of 120 bytes and more, for with its canary one of 16 is twice as long.
#include "../support/peak.h"

enum { SIZES = 3 };

int main(int count, char **arguments)
{
    ht_start();
    size_t sizes[SIZES] = {16, 200, 1000};
    for (int i = 0; i < SIZES && i + 1 < count; i++) {
        sizes[i] = strtoul(arguments[i + 1], NULL, 10);
    }
    ht_check_peaks_of(sizes, SIZES, 96 * HT_MIB);
    return 0;
}
