// timing.h -- cycles spent in slow paths, as histograms, while option debug_timing is on.
//
// Owns      hak_timings: for each path the sum of cycles, and how often it took 2^n to 2^(n+1) of them.
// Threads   any; each counter is independent.
//
// With the option off, a path costs a load and two branches that are always predicted; the fast paths cost
// nothing. Cycles are those of the processor's clock, whose rate is constant: x86-64's time stamp counter,
// 64-bit ARM's virtual counter.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/options.h"

enum hak_timing_path {
#define HAK_TIMING(name, help) HAK_TIMING_##name,
#include "base/timings.def"
    HAK_TIMING_PATHS
};

enum { HAK_TIMING_STEPS = 40 }; // the last: 3 minutes and more, at 3 GHz
struct hak_timing {
    _Atomic(uint64_t) cycles;
    _Atomic(uint64_t) times[HAK_TIMING_STEPS];
};
HAK_INTERNAL extern struct hak_timing hak_timings[HAK_TIMING_PATHS];
HAK_INTERNAL extern const char *const hak_timing_names[HAK_TIMING_PATHS];

// 0 while the option is off.
HAK_INLINE uint64_t hak_timing_begin(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_options.debug_timing) != 0) ? HAK_CYCLES() : 0;
}

HAK_INTERNAL HAK_COLD void hak_timing_note(enum hak_timing_path path, uint64_t cycles);
HAK_INTERNAL HAK_COLD void hak_timing_note_for(enum hak_timing_path path,
                                               uint64_t cycles,
                                               unsigned group);

// The same for a path whose cycles count for a group as well (base/variants.h).
HAK_INLINE void hak_timing_end_for(enum hak_timing_path path, uint64_t begin, unsigned group)
{
    if (HAK_UNLIKELY(begin != 0)) {
        hak_timing_note_for(path, HAK_CYCLES() - begin, group);
    }
}

HAK_INLINE void hak_timing_end(enum hak_timing_path path, uint64_t begin)
{
    if (HAK_UNLIKELY(begin != 0)) {
        hak_timing_note(path, HAK_CYCLES() - begin);
    }
}
