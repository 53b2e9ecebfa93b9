// variants.h -- an option with two values at the same time: a trial in the running process.
//
// Owns      hak_variants: the option, its two values, and the cost of each group.
// Threads   any; single words, read and written relaxed. The caller of policy/trial.h begins and ends a trial.
//
// Each cache, by its number, and each superslab, by its address, belongs to one of two groups for good. Each
// group has one of the values (a variant); now and then the groups swap. Without a trial a slow path pays for
// a compare that is always predicted; the fast paths pay nothing.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/options.h"

enum { HAK_VARIANTS = 2 };

struct hak_variants {
    _Atomic(uint32_t) option;               // the option's number; 0, which is option mode: none
    _Atomic(uint32_t) swap;                 // 1: each group has the other's variant
    _Atomic(uint64_t) values[HAK_VARIANTS]; // by variant
    // Since the start, by group: cycles of its caches' refills and spills; bytes of its superslabs' units
    // that were used again after a purge.
    _Atomic(uint64_t) cycles[HAK_VARIANTS];
    _Atomic(uint64_t) retaken_bytes[HAK_VARIANTS];
};
HAK_INTERNAL extern struct hak_variants hak_variants;

// The option's value for a group. `option`: its number (HAK_OPTION_IS_…).
HAK_INLINE uint64_t hak_variants_value(uint32_t option, unsigned group)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_variants.option) == option)) {
        return hak_load_relaxed(&hak_variants.values[group ^ hak_load_relaxed(&hak_variants.swap)]);
    }
    return hak_load_relaxed((_Atomic(uint64_t) *)&hak_options + option);
}
