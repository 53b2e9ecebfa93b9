// profile.c -- switching the sampling of allocations on and off (profile/sampler.h).
#include "cache/nested.h"
#include "hakmem/hakmem.h"
#include "profile/sample.h"
#include "profile/sampler.h"

bool hak_profile_start(size_t sample_bytes)
{
    if (sample_bytes == 0 || sample_bytes > hak_option_rows[HAK_OPTION_IS_sample_bytes].most ||
        !hak_nested_may_wait()) {
        return false;
    }
    hak_store_relaxed(&hak_samples.lease_ns, 0); // the program's, no tool's any more
    const bool is_set = hak_option_set("sample_bytes", sample_bytes);
    hak_sampler_kick();
    return is_set;
}

void hak_profile_stop(void)
{
    if (hak_option_set("sample_bytes", 0)) {
        hak_sampler_kick();
    }
}
