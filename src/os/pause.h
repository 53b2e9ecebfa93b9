// pause.h -- after a refusal, the kernel is not asked again during a pause, which gets longer each time.
//
// Threads   any. Two threads that are refused at the same moment lengthen the pause twice.
// Fails     never. Without a clock, a pause does not end.
#pragma once

#include "base/atomic.h"
#include "os/os.h"

struct hak_pause {
    _Atomic(uint64_t) until_ns; // 0: there is none
    _Atomic(uint64_t) ns;       // how long it is, or was; 0: the last try was not refused
};

// A tenth of a second at first, a quarter of an hour at most.
#define HAK_PAUSE_LEAST_NS UINT64_C(100000000)
#define HAK_PAUSE_MOST_NS  (HAK_PAUSE_LEAST_NS << 13)

HAK_INLINE bool hak_pause_is_on(const struct hak_pause *pause)
{
    const uint64_t until = hak_load_relaxed(&pause->until_ns);
    return HAK_UNLIKELY(until != 0) &&
           hak_os_is_soon(hak_os_about_now_ns(), until, HAK_PAUSE_MOST_NS);
}

// Note whether a try was refused.
HAK_INLINE void hak_pause_note(struct hak_pause *pause, bool is_refused)
{
    const uint64_t before = hak_load_relaxed(&pause->ns);
    if (HAK_LIKELY(!is_refused && before == 0)) {
        return;
    }
    const uint64_t longer = before == 0 ? HAK_PAUSE_LEAST_NS : 2 * before;
    const uint64_t ns = longer < HAK_PAUSE_MOST_NS ? longer : HAK_PAUSE_MOST_NS;
    hak_store_relaxed(&pause->ns, is_refused ? ns : 0);
    hak_store_relaxed(&pause->until_ns, is_refused ? hak_os_about_now_ns() + ns : 0);
}
