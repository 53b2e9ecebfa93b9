// response.h -- what is given back when memory is short, and what is written down before it may be too late.
//
// Layer     policy
// Threads   hak_response_start: once, before the program's main. The rest runs in the sweeper's thread, and in
//           one whose heap may not grow before all that is free was given back.
//
// Memory is short when the control group's working set is near its limit, or tasks wait for memory for a
// twentieth of the time (limits/pressure.h). Each tick in which it is, one kind of free memory more does not wait any
// longer, in the order in which it is less likely to be used again (enum hak_urgency); then all is given back,
// also what running threads hold ready, and again every ten seconds.
#pragma once

#include "base/compiler.h"
#include "cache/due.h"
#include "cache/sweep.h"
#include "cache/sweeper.h"

enum {
    HAK_RESPONSE_CALM_TICKS = 10,    // without shortage, for one step back
    HAK_RESPONSE_REPEAT_TICKS = 100, // of shortage, until all is given back once more
};

struct hak_response {
    enum hak_urgency urgency;
    unsigned calm_ticks;
    unsigned short_ticks; // since all was given back; counted from the last step of urgency on
};

// A tick has passed. True when all has to be given back.
HAK_INTERNAL bool hak_response_next(struct hak_response *response, bool is_short);

// If option pressure or pressure_ledger says so.
HAK_INTERNAL void hak_response_start(void);
