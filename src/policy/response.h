// response.h -- what is given back under memory pressure, and the ledger that is written then.
//
// Threads   hak_response_start: once, before the program's main. The rest runs in the sweeper's thread, and in
//           a thread that must give back all free memory before the heap may grow.
//
// Memory is short when the control group's working set is near its limit, or tasks wait for memory for a
// twentieth of the time (limits/pressure.h). In each tick of a shortage one more kind of free memory is given back
// without waiting, those first that are least likely to be used again (enum hak_urgency). Then all is given back,
// also what running threads hold in their caches, and again every ten seconds.
#pragma once

#include "base/compiler.h"
#include "cache/due.h"
#include "cache/sweep.h"
#include "cache/sweeper.h"

enum {
    HAK_RESPONSE_CALM_TICKS = 10,    // without a shortage, until urgency falls by one step
    HAK_RESPONSE_REPEAT_TICKS = 100, // of a shortage, until all is given back once more
};

struct hak_response {
    enum hak_urgency urgency;
    unsigned calm_ticks;
    unsigned short_ticks; // of a shortage with the highest urgency
};

// Note a tick. True when all has to be given back.
HAK_INTERNAL bool hak_response_next(struct hak_response *response, bool is_short);

// Start this if option pressure or pressure_ledger asks for it.
HAK_INTERNAL void hak_response_start(void);
