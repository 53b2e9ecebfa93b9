// variants.h -- an option that has two values at a time: a trial in the running process.
//
// Owns      hak_variants: which option, its two values, and what each group of users has cost.
// Threads   any; single words, read and written relaxed. policy/trial.h's caller begins and ends a trial.
//
// Who uses such an option belongs to one of two groups for good: a cache by its number, a superslab by its
// address. Each group has one of the values (a variant), and now and then they change places. Without a trial
// a slow path pays for a compare that is always predicted; the fast paths know nothing of it.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/options.h"

enum { HAK_VARIANTS = 2 };

struct hak_variants {
    _Atomic(uint32_t) option; // the number of the option; 0, which is option mode: none
    _Atomic(uint32_t) swap;   // 1: each group has the other's variant
    _Atomic(uint64_t) values[HAK_VARIANTS]; // by variant
    // Since the start, by group: in refills and spills of its caches; of its superslabs' units that were used
    // again after they had been given back.
    _Atomic(uint64_t) cycles[HAK_VARIANTS];
    _Atomic(uint64_t) retaken_bytes[HAK_VARIANTS];
};
HAK_INTERNAL extern struct hak_variants hak_variants;

// What the option is for a group. `option`: its number (HAK_OPTION_IS_…).
HAK_INLINE uint64_t hak_variants_value(uint32_t option, unsigned group)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_variants.option) == option)) {
        return hak_load_relaxed(&hak_variants.values[group ^ hak_load_relaxed(&hak_variants.swap)]);
    }
    return hak_load_relaxed((_Atomic(uint64_t) *)&hak_options + option);
}
