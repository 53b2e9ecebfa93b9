// When the control group counts as near its limit, and how long tasks have waited for memory.
#include "limits/pressure.h"

#include "../unit.h"
#include "cache/hooks.h"
#include "slab/hooks.h"

#define GROUP "/sys/fs/cgroup/app"

static char used[32];
static char statistics[128];
static const struct hak_fake_file version_2[] = {
    {"/proc/self/cgroup", "0::/app\n"},
    {GROUP "/memory.max", "max\n"},
    {GROUP "/memory.high", "80000000\n"},
    {GROUP "/memory.current", used},
    {GROUP "/memory.stat", statistics},
    {GROUP "/memory.pressure",
     "some avg10=0.10 avg60=0.00 avg300=0.00 total=123456\n"
     "full avg10=0.00 avg60=0.00 avg300=0.00 total=789\n"},
    {NULL, NULL}};

static void start(const struct hak_fake_file *files)
{
    hak_fake.files = files;
    hak_fake.kept_count = 0;
    hak_pressure = (struct hak_pressure){.is_watched = false};
    hak_pressure_start();
}

static void use(const char *bytes, const char *what)
{
    strcpy(used, bytes);
    strcpy(statistics, what);
}

static void near_the_limit_is_an_eighth_of_it(void)
{
    use("60000000\n", "");
    start(version_2);
    UNIT_EQUAL(hak_pressure.limit_bytes, 80000000);
    UNIT_CHECK(!hak_pressure_is_near(0));
    UNIT_CHECK(hak_pressure_is_near(10000000));
    use("70000000\n", "");
    UNIT_CHECK(hak_pressure_is_near(0));
    UNIT_EQUAL(hak_pressure.used_bytes, 70000000);
}

static void file_pages_that_nobody_uses_do_not_count(void)
{
    use("79000000\n",
        "anon 50000000\nfile 29000000\ninactive_file 20000000\nactive_file 9000000\n");
    start(version_2);
    UNIT_CHECK(!hak_pressure_is_near(0));
    UNIT_EQUAL(hak_pressure.used_bytes, 59000000);
}

static bool allows(size_t bytes)
{
    hak_lock_take(&hak_arena.lock);
    const bool may = hak_hook_may_map_locked(bytes);
    hak_lock_drop(&hak_arena.lock);
    return may;
}

static void a_heap_grows_near_the_limit_after_all_was_given_back(void)
{
    use("60000000\n", "");
    start(version_2);
    UNIT_CHECK(allows(4 << 20));
    use("69000000\n", "");
    UNIT_CHECK(!allows(4 << 20));
    UNIT_CHECK(hak_pressure.is_refused);
    UNIT_CHECK(!allows(4 << 20)); // nothing was given back
    hak_hook_swept_everything();
    UNIT_CHECK(!hak_pressure.is_refused);
    UNIT_CHECK(allows(4 << 20)); // the program needs it
    use("71000000\n", "");
    UNIT_CHECK(allows(4 << 20));
    use("72000000\n", "");
    UNIT_CHECK(!allows(4 << 20)); // a 32nd more: once again
    hak_hook_swept_everything();
    use("50000000\n", "");
    UNIT_CHECK(allows(4 << 20));
    use("70000000\n", "");
    UNIT_CHECK(!allows(4 << 20)); // the group was not near its limit meanwhile
}

static void stalls_are_those_of_the_group(void)
{
    start(version_2);
    const struct hak_stalls stalls = hak_pressure_stalls();
    UNIT_EQUAL(stalls.some_us, 123456);
    UNIT_EQUAL(stalls.full_us, 789);
}

static void version_1_has_stalls_of_the_machine_only(void)
{
    static const struct hak_fake_file files[] = {
        {"/proc/self/cgroup", "4:memory:/a\n"},
        {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "80000000\n"},
        {"/sys/fs/cgroup/memory/a/memory.usage_in_bytes", used},
        {"/sys/fs/cgroup/memory/a/memory.stat", statistics},
        {"/proc/pressure/memory", "some avg10=0.00 total=5\nfull avg10=0.00 total=4\n"},
        {NULL, NULL}};
    use("79000000\n", "inactive_file 1\ntotal_inactive_file 30000000\n");
    start(files);
    UNIT_EQUAL(hak_pressure.limit_bytes, 80000000);
    UNIT_CHECK(!hak_pressure_is_near(0));
    UNIT_EQUAL(hak_pressure.used_bytes, 49000000);
    UNIT_EQUAL(hak_pressure_stalls().some_us, 5);
    UNIT_EQUAL(hak_pressure_stalls().full_us, 4);
}

// No group, no stalls: memory is never short. And a file that the program opened in place of ours is not read.
static void what_cannot_be_read_is_no_pressure(void)
{
    static const struct hak_fake_file nonsense[] = {{"/proc/pressure/memory", "total=99\n"},
                                                    {NULL, NULL}};
    start(NULL);
    UNIT_EQUAL(hak_pressure.limit_bytes, 0);
    UNIT_CHECK(allows(SIZE_MAX / 2));
    UNIT_EQUAL(hak_pressure_stalls().some_us, 0);
    start(nonsense);
    UNIT_EQUAL(hak_pressure_stalls().some_us, 0);
}

int main(void)
{
    hak_fake.memory_bytes = (size_t)16 << 30;
    near_the_limit_is_an_eighth_of_it();
    file_pages_that_nobody_uses_do_not_count();
    a_heap_grows_near_the_limit_after_all_was_given_back();
    stalls_are_those_of_the_group();
    version_1_has_stalls_of_the_machine_only();
    what_cannot_be_read_is_no_pressure();
    return 0;
}
