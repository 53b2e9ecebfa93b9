// preload only
// env: HAKMEM_FREE_POLICY=lazy
// After mallopt(M_TRIM_THRESHOLD, -1) and a threshold, memory is purged by the policy that the user had chosen.
#include "../support/api.h"

#include "../support/promise.h"

#include <malloc.h>

enum { LAZY = 1, KEEP = 3 };

int main(void)
{
    uint64_t policy = 0;
    ht_start();
    HT_API(hak_option_get);
    for (int i = 0; i < 2; i++) {
        HT_CHECK(mallopt(M_TRIM_THRESHOLD, -1) == 1, "-1 refused");
        HT_CHECK(mallopt(M_TRIM_THRESHOLD, -1) == 1, "a second -1 refused");
        HT_CHECK(api_hak_option_get("free_policy", &policy) && policy == KEEP,
                 "free_policy is %d after -1",
                 (int)policy);
        HT_CHECK(mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1, "1 MiB refused");
        HT_CHECK(api_hak_option_get("free_policy", &policy) && policy == LAZY,
                 "free_policy is %d after a threshold",
                 (int)policy);
    }
    return 0;
}
