// static too
// sleeps
// native only
// args in secure: 120 200 1000
// After a peak of small blocks, resident memory falls to within a tenth and 4 MiB
// of what is live, within two seconds, while the program sleeps. (If small blocks are freed in
// random order, the last few thousand frees end nearly all slabs.) In mode secure the blocks have
// 120 bytes or more, as a block of 16 bytes with its canary is twice as long.
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
