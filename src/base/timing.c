// timing.c -- see timing.h.
#include "base/timing.h"

#include "base/bits.h"
#include "base/variants.h"

struct hak_timing hak_timings[HAK_TIMING_PATHS];

const char *const hak_timing_names[HAK_TIMING_PATHS] = {
#define HAK_TIMING(name, help) #name,
#include "base/timings.def"
};

void hak_timing_note(enum hak_timing_path path, uint64_t cycles)
{
    const unsigned step = hak_highest_bit(cycles | 1);
    struct hak_timing *timing = &hak_timings[path];
    hak_add_relaxed(&timing->cycles, cycles);
    hak_add_relaxed(&timing->times[step < HAK_TIMING_STEPS ? step : HAK_TIMING_STEPS - 1], 1);
}

void hak_timing_note_for(enum hak_timing_path path, uint64_t cycles, unsigned group)
{
    hak_timing_note(path, cycles);
    hak_add_relaxed(&hak_variants.cycles[group], cycles);
}
