// Refused allocations are recorded with kind, size and cause, the latest ones; and what the injector refuses.
#include "failures/failure.h"

#include <errno.h>

#include "../unit.h"
#include "base/bits.h"
#include "base/options.h"
#include "failures/cause.h"
#include "hakmem/hakmem.h"

static volatile size_t too_many = SIZE_MAX; // the compiler would complain

static const struct hak_failure *latest(void)
{
    const uint64_t count = hak_failures.count;
    const struct hak_failure *failure = &hak_failures.latest[count % HAK_FAILURES_KEPT];
    UNIT_EQUAL(failure->number, count);
    return failure;
}

static void expect(const void *block, uint64_t count, enum hak_failure_kind kind, size_t bytes)
{
    UNIT_CHECK(block == NULL);
    UNIT_EQUAL(errno, ENOMEM);
    UNIT_EQUAL(hak_failures.count, count);
    UNIT_EQUAL(latest()->kind, kind);
    UNIT_EQUAL(latest()->bytes, bytes);
}

static void what_no_size_class_takes_is_a_threshold(void)
{
    expect(hak_malloc(too_many), 1, HAK_FAILURE_THRESHOLD, SIZE_MAX);
    expect(hak_calloc(too_many, 2), 2, HAK_FAILURE_THRESHOLD, SIZE_MAX);
    expect(hak_reallocarray(NULL, too_many, 2), 3, HAK_FAILURE_THRESHOLD, SIZE_MAX);
    UNIT_EQUAL(latest()->error, 0);
}

// Finding the cause takes system calls that the program may have forbidden itself: only if it is wanted.
static void what_the_kernel_refuses_has_its_cause(void)
{
    hak_fake.refuse_asks = true;
    expect(hak_malloc(HAK_MIB(100)), 4, HAK_FAILURE_MAP_FAIL, HAK_MIB(100));
    const size_t reads = hak_fake.file_reads;
    expect(hak_malloc(HAK_MIB(100)), 5, HAK_FAILURE_MAP_FAIL, HAK_MIB(100));
    UNIT_EQUAL(latest()->limit, HAK_LIMIT_UNKNOWN);
    UNIT_EQUAL(hak_fake.file_reads, reads);
    hak_options.trace_failures = 1;
    static const struct hak_fake_file files[] = {
        {"/proc/self/statm", "4750 1000 500 10 0 2000 0\n"}, {NULL, NULL}};
    hak_fake.address_limit = 20000000;
    hak_fake.files = files;
    expect(hak_malloc(HAK_MIB(100)), 6, HAK_FAILURE_MAP_FAIL, HAK_MIB(100));
    UNIT_EQUAL(latest()->error, ENOMEM);
    UNIT_EQUAL(latest()->limit, HAK_LIMIT_AS);
    UNIT_EQUAL(latest()->limit_value, 20000000);
    UNIT_EQUAL(latest()->limit_use, 19000 * 1024);
    UNIT_CHECK(latest()->asked_bytes >= HAK_MIB(100));
    expect(hak_aligned_alloc(4096, HAK_MIB(9)), 7, HAK_FAILURE_MAP_FAIL, HAK_MIB(9));
    UNIT_EQUAL(latest()->alignment, 4096);
    hak_fake.address_limit = SIZE_MAX;
}

static void a_control_group_is_named_when_nothing_else_explains_it(void)
{
    static const struct hak_fake_file files[] = {{"/proc/self/cgroup", "0::/\n"},
                                                 {"/sys/fs/cgroup/memory.max", "50000000\n"},
                                                 {"/sys/fs/cgroup/memory.current", "49000000\n"},
                                                 {NULL, NULL}};
    hak_fake.files = files;
    expect(hak_malloc(HAK_MIB(50)), 8, HAK_FAILURE_MAP_FAIL, HAK_MIB(50));
    UNIT_EQUAL(latest()->limit, HAK_LIMIT_GROUP);
    UNIT_EQUAL(latest()->limit_use, 49000000);
}

static void a_limit_of_ours_is_an_exhaustion(void)
{
    hak_options.limit_hard = HAK_MIB(64);
    expect(hak_malloc(HAK_MIB(65)), 9, HAK_FAILURE_EXHAUSTION, HAK_MIB(65));
    UNIT_EQUAL(latest()->limit, HAK_LIMIT_HARD);
    UNIT_EQUAL(latest()->limit_value, HAK_MIB(64));
    hak_options.limit_hard = 0;
}

static void a_storm_keeps_the_latest(void)
{
    hak_options.trace_failures = 0;
    for (unsigned i = 0; i < 1000; i++) {
        expect(hak_malloc(HAK_MIB(10) + i), 10 + i, HAK_FAILURE_MAP_FAIL, HAK_MIB(10) + i);
    }
    for (unsigned i = 0; i < HAK_FAILURES_KEPT; i++) {
        UNIT_CHECK(hak_failures.latest[i].number > hak_failures.count - HAK_FAILURES_KEPT);
    }
    hak_fake.refuse_asks = false;
}

static void each_can_be_printed(void)
{
    hak_options.trace_failures = 1;
    hak_fake.printed_bytes = 0;
    expect(hak_malloc(too_many), 1010, HAK_FAILURE_THRESHOLD, SIZE_MAX);
    UNIT_CHECK(strstr(hak_fake.printed, "hakmem: refused 18446744073709551615 bytes") != NULL);
    UNIT_CHECK(strstr(hak_fake.printed, "Threshold\n") != NULL);
    hak_options.trace_failures = 0;
}

static void the_injector_refuses_the_call_of_a_number(void)
{
    const uint64_t before = hak_failures.count;
    hak_options.fail_at = 3;
    hak_options.fail_min_bytes = 1000;
    void *blocks[6];
    for (unsigned i = 0; i < 6; i++) {
        hak_free(hak_malloc(100)); // too small to count
        blocks[i] = i % 2 != 0 ? hak_malloc(HAK_MIB(1)) : hak_calloc(1, 1000);
        UNIT_EQUAL(blocks[i] == NULL, i == 2);
        hak_free(blocks[i]);
    }
    UNIT_EQUAL(hak_failures.count, before + 1);
    UNIT_EQUAL(latest()->kind, HAK_FAILURE_INJECTED);
    hak_options.fail_at = 0;
}

static unsigned refused_of(unsigned calls)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < calls; i++) {
        void *block = hak_malloc(2000);
        refused += block == NULL;
        hak_free(block);
    }
    return refused;
}

static void the_injector_refuses_one_in_so_many(void)
{
    hak_options.fail_rate = 10;
    const unsigned refused = refused_of(10000);
    UNIT_CHECK(refused > 900 && refused < 1100);
    hak_options.fail_max_bytes = 1999;
    UNIT_EQUAL(refused_of(1000), 0);
    hak_options.fail_max_bytes = HAK_GIB(1);
    hak_options.fail_site = 1; // an address to which no call returns
    UNIT_EQUAL(refused_of(1000), 0);
}

int main(void)
{
    hak_options.purger = 0;
    hak_free(hak_malloc(1)); // so that the tables exist
    what_no_size_class_takes_is_a_threshold();
    what_the_kernel_refuses_has_its_cause();
    a_control_group_is_named_when_nothing_else_explains_it();
    a_limit_of_ours_is_an_exhaustion();
    a_storm_keeps_the_latest();
    each_can_be_printed();
    the_injector_refuses_the_call_of_a_number();
    the_injector_refuses_one_in_so_many();
    return 0;
}
