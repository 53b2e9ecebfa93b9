// The limits of control groups of both versions, read from the kernel's files.
#include "os/control_group.h"

#include "../unit.h"

static void expect(const struct hak_fake_file *files, size_t memory_bytes, unsigned processors)
{
    hak_fake.files = files;
    const struct hak_share share = hak_control_group_read_share();
    UNIT_EQUAL(share.memory_bytes, memory_bytes);
    UNIT_EQUAL(hak_control_group_read_processors(), processors);
}

static void without_files_the_machine_is_the_limit(void)
{
    expect(NULL, (size_t)16 << 30, 8);
}

static void version_2_limits(void)
{
    static const struct hak_fake_file files[] = {
        {"/proc/self/cgroup", "0::/user.slice/app.scope\n"},
        {"/sys/fs/cgroup/user.slice/app.scope/memory.max", "67108864\n"},
        {"/sys/fs/cgroup/user.slice/app.scope/cpu.max", "150000 100000\n"},
        {NULL, NULL}};
    expect(files, 64 << 20, 2); // one and a half processors can keep two threads busy
}

static void max_is_no_limit(void)
{
    static const struct hak_fake_file files[] = {{"/proc/self/cgroup", "0::/app\n"},
                                                 {"/sys/fs/cgroup/app/memory.max", "max\n"},
                                                 {"/sys/fs/cgroup/app/memory.high", "max\n"},
                                                 {"/sys/fs/cgroup/app/cpu.max", "max 100000\n"},
                                                 {NULL, NULL}};
    expect(files, (size_t)16 << 30, 8);
}

static void the_lowest_of_all_groups_above_counts(void)
{
    static const struct hak_fake_file files[] = {
        {"/proc/self/cgroup", "0::/a/b/c\n"},
        {"/sys/fs/cgroup/a/b/c/memory.max", "8000000000\n"},
        {"/sys/fs/cgroup/a/b/memory.max", "500000000\n"},
        {"/sys/fs/cgroup/a/memory.high", "400000000\n"},
        {"/sys/fs/cgroup/a/b/c/cpu.max", "700000 100000\n"},
        {"/sys/fs/cgroup/a/cpu.max", "300000 100000\n"},
        {NULL, NULL}};
    expect(files, 400000000, 3);
}

// A container with a cgroup namespace of its own sees itself as the root.
static void a_container_is_its_own_root(void)
{
    static const struct hak_fake_file files[] = {{"/proc/self/cgroup", "0::/\n"},
                                                 {"/sys/fs/cgroup/memory.max", "1000000\n"},
                                                 {"/sys/fs/cgroup/cpu.max", "5000 100000\n"},
                                                 {NULL, NULL}};
    expect(files, 1000000, 1);
}

// Without one it sees the host's names of groups whose files it does not have.
static void a_container_with_the_hosts_names(void)
{
    static const struct hak_fake_file files[] = {
        {"/proc/self/cgroup",
         "12:memory:/docker/0123456789abcdef\n"
         "4:cpu,cpuacct:/docker/0123456789abcdef\n"
         "1:name=systemd:/docker/0123456789abcdef\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
        {NULL, NULL}};
    expect(files, 512 << 20, 3);
}

static void version_1_limits(void)
{
    static const struct hak_fake_file files[] = {
        {"/proc/self/cgroup", "5:cpuacct,cpu:/a\n4:memory:/a/b\n0::/\n"},
        {"/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"}, // none
        {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "100000000\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"}, // none
        {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
        {NULL, NULL}};
    expect(files, 100000000, 4);
}

// As in containers inside containers: 14 lines, each with the longest path, and the one that counts comes last.
static void many_long_lines_are_read(void)
{
    static char path[4095];
    static char groups[14 * 4200];
    static char file[4200];
    size_t length = 0;
    memset(path, 'a', sizeof path - 1);
    for (int i = 0; i < 13; i++) {
        length += (size_t)snprintf(
            groups + length, sizeof groups - length, "%d:name=n%d:/%s\n", 14 - i, i, path);
    }
    snprintf(groups + length, sizeof groups - length, "1:memory:/%s\n", path);
    snprintf(file, sizeof file, "/sys/fs/cgroup/memory/%s/memory.limit_in_bytes", path);
    const struct hak_fake_file files[] = {
        {"/proc/self/cgroup", groups}, {file, "100000000\n"}, {NULL, NULL}};
    expect(files, 100000000, 8);
}

// A path of more than the 1,024 characters that were enough for years.
static void a_long_path_is_read(void)
{
    static char path[3000];
    static char groups[3100];
    static char file[3100];
    memset(path, 'a', sizeof path - 1);
    snprintf(groups, sizeof groups, "1:memory:/%s\n", path);
    snprintf(file, sizeof file, "/sys/fs/cgroup/memory/%s/memory.limit_in_bytes", path);
    const struct hak_fake_file files[] = {
        {"/proc/self/cgroup", groups}, {file, "100000000\n"}, {NULL, NULL}};
    expect(files, 100000000, 8);
}

static void expect_use(const struct hak_fake_file *files, size_t limit_bytes, size_t used_bytes)
{
    hak_fake.files = files;
    const struct hak_group_use use = hak_control_group_read_use();
    UNIT_EQUAL(use.limit_bytes, limit_bytes);
    UNIT_EQUAL(use.used_bytes, used_bytes);
}

// Not the lowest limit: other processes may have filled a group further up. memory.high kills nothing.
static void the_group_with_the_least_room_counts(void)
{
    static const struct hak_fake_file files[] = {
        {"/proc/self/cgroup", "0::/a/b\n"},
        {"/sys/fs/cgroup/a/b/memory.high", "1000\n"},
        {"/sys/fs/cgroup/a/b/memory.max", "8000000\n"},
        {"/sys/fs/cgroup/a/b/memory.current", "1000000\n"},
        {"/sys/fs/cgroup/a/memory.max", "9000000\n"},
        {"/sys/fs/cgroup/a/memory.current", "7000000\n"},
        {"/sys/fs/cgroup/a/memory.stat",
         "anon 3\ninactive_file 100000\nactive_file 300000\nslab_reclaimable 100000\n"},
        {NULL, NULL}};
    expect_use(files, 9000000, 6500000);
    expect_use(NULL, SIZE_MAX, 0);
}

static void version_1_says_it_in_other_words(void)
{
    static const struct hak_fake_file files[] = {
        {"/proc/self/cgroup", "4:memory:/a\n"},
        {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9000000\n"},
        {"/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "9000000\n"},
        {"/sys/fs/cgroup/memory/a/memory.memsw.limit_in_bytes", "9500000\n"},
        {"/sys/fs/cgroup/memory/a/memory.memsw.usage_in_bytes", "9200000\n"},
        {"/sys/fs/cgroup/memory/a/memory.stat",
         "cache 5\ninactive_file 5\ntotal_inactive_file 2000000\ntotal_active_file 1000000\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "9000000\n"},
        {NULL, NULL}};
    expect_use(files, 9000000, 6000000);
    hak_fake.free_swap_bytes = 4000000;
    expect_use(files, 9000000, 5700000); // 200,000 of 500,000 bytes are swapped out already
    hak_fake.free_swap_bytes = 100000;
    expect_use(files, 9000000, 5900000);
    hak_fake.free_swap_bytes = 0;
}

static void nonsense_does_not_limit(void)
{
    static char long_name[3000];
    static const struct hak_fake_file nonsense[] = {
        {"/proc/self/cgroup", "0::/a\n"},
        {"/sys/fs/cgroup/a/memory.max", "lots\n"},
        {"/sys/fs/cgroup/a/memory.high", "99999999999999999999999\n"},
        {"/sys/fs/cgroup/a/cpu.max", "100000 0\n"},
        {"/sys/fs/cgroup/cpu.max", "100000\n"},
        {NULL, NULL}};
    expect(nonsense, (size_t)16 << 30, 8);
    static const char *const groups[] = {"", "\n", "0", "0:", "0:\n", "0:/\n1:\n", "0::/a", ":::"};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const struct hak_fake_file files[] = {{"/proc/self/cgroup", groups[i]}, {NULL, NULL}};
        expect(files, (size_t)16 << 30, 8);
    }
    memset(long_name, 'x', sizeof long_name - 1);
    memcpy(long_name, "0::/", 4);
    long_name[sizeof long_name - 2] = '\n';
    const struct hak_fake_file files[] = {{"/proc/self/cgroup", long_name}, {NULL, NULL}};
    expect(files, (size_t)16 << 30, 8);
}

int main(void)
{
    hak_fake.memory_bytes = (size_t)16 << 30;
    hak_fake.processors = 8;
    without_files_the_machine_is_the_limit();
    version_2_limits();
    max_is_no_limit();
    the_lowest_of_all_groups_above_counts();
    a_container_is_its_own_root();
    a_container_with_the_hosts_names();
    version_1_limits();
    many_long_lines_are_read();
    a_long_path_is_read();
    the_group_with_the_least_room_counts();
    version_1_says_it_in_other_words();
    nonsense_does_not_limit();
    return 0;
}
