// swings.h -- how much free memory a program may keep, from what it took again.
//
// Layer     cache
// Threads   none: a pure function of counters; due.c calls it.
//
// What exceeds the budget goes back at once. A program whose heap swings by more than the budget pays page faults for each
// swing. When it has lately taken again four times as much as it swings by, that much is left with it, as one buys skis after so
// many days of hiring them (Karlin and others, Competitive Snoopy Caching, 1988). A process that frees once, or three times, and
// then sleeps keeps no more than the budget.
#ifndef HAK_CACHE_SWINGS_H
#define HAK_CACHE_SWINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

// What was lately is forgotten by so much in a tick: by half in 1.1 s. What swings more slowly costs little, and what went in one
// peak and does not come again says nothing of later swings.
enum {
    HAK_SWINGS = 4,
    HAK_SWINGS_FADE = 16,
    HAK_SWINGS_TICKS = 1024
}; // of these a 10 millionth is left

struct hak_swings {
    int64_t again_bytes; // lately taken again
    int64_t away_bytes;  // given back, and not yet taken again
    int64_t most_bytes;  // that were away lately
    int64_t least_bytes; // that were away lately
    size_t retaken_at; // what had been taken again since the start of the process at the last look
};

// `gone` bytes were given back now; since the start of the process `retaken` were taken again. Returns how many bytes more
// may stay.
HAK_INLINE size_t hak_swings_gone(struct hak_swings *swings, size_t gone, size_t retaken)
{
    // What a sweeper gave back was not noted, and does not count.
    const int64_t taken = (int64_t)(retaken - swings->retaken_at);
    const int64_t again = taken < swings->away_bytes ? taken : swings->away_bytes;
    const int64_t lowest = swings->away_bytes - again;
    swings->retaken_at = retaken;
    swings->again_bytes += again;
    swings->away_bytes = lowest + (int64_t)gone;
    swings->least_bytes = lowest < swings->least_bytes ? lowest : swings->least_bytes;
    if (swings->away_bytes > swings->most_bytes) {
        swings->most_bytes = swings->away_bytes;
    }
    const int64_t swing = swings->most_bytes - swings->least_bytes;
    if (swing == 0 || swings->again_bytes / HAK_SWINGS < swing) {
        return 0;
    }
    *swings = (struct hak_swings){.retaken_at = retaken};
    return (size_t)swing;
}

HAK_INLINE void hak_swings_fade(struct hak_swings *swings, uint64_t ticks)
{
    for (uint64_t i = 0; i < ticks && i < HAK_SWINGS_TICKS; i++) {
        swings->again_bytes -= swings->again_bytes / HAK_SWINGS_FADE;
        swings->most_bytes -= (swings->most_bytes - swings->away_bytes) / HAK_SWINGS_FADE;
        swings->least_bytes += (swings->away_bytes - swings->least_bytes) / HAK_SWINGS_FADE;
    }
}

#endif
