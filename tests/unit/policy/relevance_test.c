// An option is relevant if what it changes costs the program a hundredth of its time, and only then.
#include "../unit.h"
#include "base/options.h"
#include "policy/relevance.h"

enum { MIB = 1 << 20 };

// A second of a busy processor in which the allocator had nothing to do.
static const struct hak_activity quiet = {.wall_ns = 1000000000, .processor_ns = 1000000000};

static bool parcels_matter(struct hak_activity activity)
{
    return hak_relevance_of(HAK_OPTION_IS_parcel_bytes, 524288, 65536, &activity);
}

static bool magazines_matter(struct hak_activity activity, uint64_t value)
{
    return hak_relevance_of(HAK_OPTION_IS_magazine_bytes, value, 16 * MIB, &activity);
}

static bool decay_matters(struct hak_activity activity)
{
    return hak_relevance_of(HAK_OPTION_IS_decay_ms, 2000, 500, &activity);
}

static bool huge_pages_matter(struct hak_activity activity)
{
    return hak_relevance_of(HAK_OPTION_IS_huge_start_bytes, 4 * MIB, 32 * MIB, &activity);
}

static void parcels_do_where_blocks_are_handed_over(void)
{
    struct hak_activity activity = quiet;
    UNIT_CHECK(!parcels_matter(activity));
    activity.slow_calls = 40000; // 12 ms
    UNIT_CHECK(!parcels_matter(activity));
    activity.sent_parcels = 10000;
    UNIT_CHECK(parcels_matter(activity));
    activity.slow_calls = 30000; // 9 ms
    UNIT_CHECK(!parcels_matter(activity));
}

static void a_bound_does_that_would_bind(void)
{
    struct hak_activity activity = quiet;
    activity.slow_calls = 40000;
    activity.magazine_bytes = MIB;
    UNIT_CHECK(magazines_matter(activity, MIB / 2));
    UNIT_CHECK(!magazines_matter(activity, 2 * MIB));
    UNIT_CHECK(!magazines_matter(activity, 64 * MIB));
    activity.magazine_bytes = 15 * MIB;
    UNIT_CHECK(magazines_matter(activity, 64 * MIB));
    activity.slow_calls = 100;
    UNIT_CHECK(!magazines_matter(activity, 64 * MIB) && !magazines_matter(activity, MIB / 2));
}

static void waiting_does_by_faults_and_memory(void)
{
    struct hak_activity activity = quiet;
    UNIT_CHECK(!decay_matters(activity));
    activity.faults = 15000; // 10.5 ms
    UNIT_CHECK(decay_matters(activity));
    activity.faults = 0;
    activity.waiting_bytes = 100 * MIB; // 0.012 processors
    UNIT_CHECK(decay_matters(activity));
    activity.waiting_bytes = 64 * MIB;
    UNIT_CHECK(!decay_matters(activity));
}

static void huge_pages_do_while_the_heap_grows(void)
{
    struct hak_activity activity = quiet;
    activity.faults = 15000;
    UNIT_CHECK(!huge_pages_matter(activity));
    activity.maps = 1;
    UNIT_CHECK(huge_pages_matter(activity));
    activity.faults = 1000;
    UNIT_CHECK(!huge_pages_matter(activity));
}

static void nothing_does_while_the_program_is_idle(void)
{
    struct hak_activity activity = quiet;
    activity.processor_ns = 1000000;
    activity.faults = 15000;
    activity.waiting_bytes = 1000 * (uint64_t)MIB;
    UNIT_CHECK(!decay_matters(activity));
    activity.processor_ns = 0;
    UNIT_CHECK(!decay_matters(activity));
}

int main(void)
{
    parcels_do_where_blocks_are_handed_over();
    a_bound_does_that_would_bind();
    waiting_does_by_faults_and_memory();
    huge_pages_do_while_the_heap_grows();
    nothing_does_while_the_program_is_idle();
    return 0;
}
