// decay.h -- how long free pages wait, from what became of those that did not.
//
// Layer     cache
// Threads   none: a pure function of counters; the sweeper calls it.
//
// What is given back comes in swells. When the next one begins, the last is judged: if half of it was used again
// meanwhile, giving it back cost page faults for little, and the next may wait twice as long; if less than an
// eighth was, half as long.
#ifndef HAK_CACHE_DECAY_H
#define HAK_CACHE_DECAY_H

#include <stddef.h>

#include "base/compiler.h"

enum { HAK_DECAY_STEPS = 4, HAK_DECAY_CALM_TICKS = 3 };

struct hak_decay {
    unsigned steps;      // what waits does so for 2 to the power of this times the decay time
    unsigned calm_ticks; // since something was given back
    size_t gone_bytes;   // in the present swell
    size_t retaken_at;   // what had been used again when it began
};

// In this tick `gone` bytes were given back; since the start of the process `retaken` were used again.
HAK_INLINE void hak_decay_tick(struct hak_decay *decay, size_t gone, size_t retaken)
{
    if (gone == 0) {
        decay->calm_ticks++;
        return;
    }
    if (decay->calm_ticks >= HAK_DECAY_CALM_TICKS) {
        const size_t again = retaken - decay->retaken_at;
        const size_t before = decay->gone_bytes;
        if (again >= before / 2 && before != 0 && decay->steps < HAK_DECAY_STEPS) {
            decay->steps++;
        } else if (again < before / 8 && decay->steps > 0) {
            decay->steps--;
        }
        decay->gone_bytes = 0;
        decay->retaken_at = retaken;
    }
    decay->gone_bytes += gone;
    decay->calm_ticks = 0;
}

#endif
