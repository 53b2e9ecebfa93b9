// price.c -- see price.h.
#include "slab/price.h"

#include "base/bits.h"
#include "base/options.h"
#include "os/os.h"

// After an expensive huge page we ask for none for this many times as long as it took, so they cost at most 1 % of the time.
enum { REST_TIMES = 100 };
// Or until this much was purged: the kernel has that memory at hand, and need not ask a host for it.
#define REST_BYTES HAK_MIB(64)

static _Atomic(uint64_t) rest_until;       // by hak_os_about_now_ns; 0: none was expensive
static _Atomic(uint64_t) rest_until_bytes; // of hak_os_counts.purged_bytes

bool hak_price_is_high(void)
{
    const uint64_t until = hak_load_relaxed(&rest_until);
    return until != 0 && hak_os_about_now_ns() < until &&
           hak_load_relaxed(&hak_os_counts.purged_bytes) < hak_load_relaxed(&rest_until_bytes);
}

// The wall clock, since a thread's own clock takes a system call; and the coarse one, which advances by ticks. A single
// measurement is 0, or a tick or more, and right on average. The sum grows by what each took beyond the limit, and shrinks by
// what it took less, down to 0: the cumulative sum of E. S. Page, Continuous Inspection Schemes, 1954. One counts at most four
// times the limit, as its thread may have waited for a processor; so it takes three. Nor does one stop huge pages for longer than
// a hundred times that.
enum { DEAR_SUM = 8, COUNTS_FOR = 4 };

bool hak_price_note(uint64_t begin, uint64_t limit_ns)
{
    static _Atomic(uint64_t) sum_ns; // at most DEAR_SUM times the limit
    const uint64_t end = hak_os_about_now_ns();
    const uint64_t counted = hak_least(end - begin, COUNTS_FOR * limit_ns);
    const uint64_t sum = hak_load_relaxed(&sum_ns) + counted;
    const uint64_t over = sum > limit_ns ? sum - limit_ns : 0;
    const bool is_dear = over > DEAR_SUM * limit_ns;
    hak_store_relaxed(&sum_ns, is_dear ? DEAR_SUM * limit_ns : over);
    if (is_dear) {
        const uint64_t purged = hak_load_relaxed(&hak_os_counts.purged_bytes);
        hak_store_relaxed(&rest_until_bytes, purged + REST_BYTES);
        hak_store_relaxed(&rest_until, end + REST_TIMES * counted);
    }
    return is_dear;
}

uint64_t hak_price_limit_ns(void)
{
    const bool has_price = hak_load_relaxed(&hak_options.thp) == HAK_THP_AUTO &&
                           hak_load_relaxed(&hak_options.deterministic) == 0;
    return has_price ? hak_load_relaxed(&hak_options.huge_dear_us) * 1000 : 0;
}
