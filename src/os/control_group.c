// control_group.c -- see control_group.h.
#include "os/control_group.h"

#include <string.h>

#include "base/number.h"

// Where every distribution and container mounts them. In version 1, each controller has a mount of its own.
#define MOUNT_2        "/sys/fs/cgroup"
#define MOUNT_1_MEMORY "/sys/fs/cgroup/memory"
#define MOUNT_1_CPU    "/sys/fs/cgroup/cpu"

#define USE_2  "/memory.current"
#define USE_1  "/memory.usage_in_bytes"
#define MOST_2 "/memory.max"
#define MOST_1 "/memory.limit_in_bytes"

enum {
    PATH_BYTES = 4096 + 64,         // a group's, and the mount and a file's name around it
    GROUPS_BYTES = 16 * PATH_BYTES, // version 1: some 14 lines, each with a path
    NUMBERS_BYTES = 64,
    NAME_BYTES = 32,
    STATISTICS_BYTES = 4096,
};

static char groups[GROUPS_BYTES]; // /proc/self/cgroup: lines "number:controllers:group"

// A group's folder, with room for the name of a file in it.
static struct {
    char path[PATH_BYTES];
    size_t length;
} folder;

// The folder of the group whose memory limit applies, and the version of its files. A length of 0: there is none.
static struct {
    char path[PATH_BYTES];
    size_t length;
    bool is_version_1;
} limiting;

static size_t read_here(const char *name, char *text, size_t bytes)
{
    memcpy(folder.path + folder.length, name, strlen(name) + 1);
    return hak_os_read_file(folder.path, text, bytes);
}

// Read the first numbers in a file of the folder. Returns how many there are, two at most.
static unsigned read_numbers(const char *name, uint64_t numbers[2])
{
    char text[NUMBERS_BYTES];
    const size_t length = read_here(name, text, sizeof text);
    const char *c = text;
    unsigned count = 0;
    while (length > 0 && count < 2 && hak_number_take(&c, 10, &numbers[count])) {
        c += *c == ' ';
        count++;
    }
    return count;
}

static void limit_memory(struct hak_share *share, const char *name, bool is_version_1)
{
    uint64_t numbers[2];
    if (read_numbers(name, numbers) > 0 && numbers[0] < share->memory_bytes) {
        share->memory_bytes = numbers[0];
        share->memory_used =
            read_numbers(is_version_1 ? USE_1 : USE_2, numbers) > 0 ? numbers[0] : 0;
        memcpy(limiting.path, folder.path, folder.length);
        limiting.length = folder.length;
        limiting.is_version_1 = is_version_1;
    }
}

// `quota` microseconds of processor time in each `period`.
static void limit_processors(unsigned *processors, uint64_t quota, uint64_t period)
{
    const uint64_t whole = period != 0 ? quota / period + (quota % period != 0) : UINT64_MAX;
    if (whole < *processors) {
        *processors = whole > 0 ? (unsigned)whole : 1;
    }
}

static void visit_memory(void *into, bool is_version_1)
{
    limit_memory(into, is_version_1 ? MOST_1 : MOST_2, is_version_1);
    if (!is_version_1) {
        limit_memory(into, "/memory.high", false); // beyond it the process is slowed down
    }
}

static void visit_processors(void *into, bool is_version_1)
{
    uint64_t quota[2];
    uint64_t period[2];
    if (!is_version_1 && read_numbers("/cpu.max", quota) == 2) {
        limit_processors(into, quota[0], quota[1]);
    } else if (is_version_1 && read_numbers("/cpu.cfs_quota_us", quota) > 0 &&
               read_numbers("/cpu.cfs_period_us", period) > 0) {
        limit_processors(into, quota[0], period[0]);
    }
}

// Is `item` in `list`, whose items are separated by commas? Version 2 has an empty list.
static bool list_has(const char *list, size_t length, const char *item)
{
    const size_t item_length = strlen(item);
    for (size_t from = 0; from <= length; from++) {
        const char *comma = memchr(list + from, ',', length - from);
        const size_t to = comma != NULL ? (size_t)(comma - list) : length;
        if (to - from == item_length && memcmp(list + from, item, item_length) == 0) {
            return true;
        }
        from = to;
    }
    return false;
}

// The group of this process in the hierarchy of `controller` ("": version 2), or NULL.
static const char *group_of(const char *controller, size_t *length)
{
    for (const char *line = groups; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        const char *list = strchr(line, ':');
        const char *group = list != NULL ? strchr(list + 1, ':') : NULL;
        if (group == NULL || end == NULL || group > end) {
            return NULL;
        }
        if (list_has(list + 1, (size_t)(group - list - 1), controller)) {
            *length = (size_t)(end - group - 1);
            return group + 1;
        }
        line = end + 1;
    }
    return NULL;
}

// Visit the process's group and those above it, up to the mount. In a container without a namespace
// of its own, the lower folders are not there, and the mount is the container's group.
static void visit_groups(void *into,
                         const char *controller,
                         const char *mount,
                         void (*visit)(void *into, bool is_version_1))
{
    size_t length;
    const char *group = group_of(controller, &length);
    const size_t root = strlen(mount);
    if (group == NULL || root + length + NAME_BYTES > sizeof folder.path) {
        return;
    }
    memcpy(folder.path, mount, root);
    memcpy(folder.path + root, group, length);
    folder.length = root + length;
    for (;;) {
        while (folder.length > root && folder.path[folder.length - 1] == '/') {
            folder.length--;
        }
        visit(into, *controller != '\0');
        if (folder.length <= root) {
            return;
        }
        while (folder.path[folder.length - 1] != '/') {
            folder.length--;
        }
    }
}

// A controller is in one version only; the other version does not have its files.
static void visit_controller(void *into,
                             const char *controller,
                             const char *mount_1,
                             void (*visit)(void *into, bool is_version_1))
{
    size_t length;
    const bool is_version_1 = group_of(controller, &length) != NULL;
    visit_groups(into, is_version_1 ? controller : "", is_version_1 ? mount_1 : MOUNT_2, visit);
}

struct hak_share hak_control_group_read_share(void)
{
    struct hak_share share = {hak_os_memory_bytes(), 0};
    limiting.length = 0;
    hak_os_read_file("/proc/self/cgroup", groups, sizeof groups);
    visit_controller(&share, "memory", MOUNT_1_MEMORY, visit_memory);
    return share;
}

unsigned hak_control_group_read_processors(void)
{
    unsigned processors = hak_os_processors();
    visit_controller(&processors, "cpu", MOUNT_1_CPU, visit_processors);
    return processors;
}

// How many of the bytes that the group uses the kernel can take back before it ends a process: pages of files (but not of a
// tmpfs); in version 2 also the kernel's caches of names.
static uint64_t droppable_bytes(bool is_version_1)
{
    static char text[STATISTICS_BYTES];
    if (read_here("/memory.stat", text, sizeof text) == 0) {
        return 0;
    }
    return is_version_1 ? hak_number_behind(text, "\ntotal_inactive_file ", 0) +
                              hak_number_behind(text, "\ntotal_active_file ", 0)
                        : hak_number_behind(text, "\ninactive_file ", 0) +
                              hak_number_behind(text, "\nactive_file ", 0) +
                              hak_number_behind(text, "\nslab_reclaimable ", 0);
}

static uint64_t number_here(const char *name, uint64_t otherwise)
{
    uint64_t numbers[2];
    return read_numbers(name, numbers) > 0 ? numbers[0] : otherwise;
}

// How many more bytes the group may swap out. Version 1 counts memory and swap together: what it has for swap alone is the
// difference of the limits, and what it has swapped out is that of the uses.
static uint64_t swappable_bytes(bool is_version_1, uint64_t limit, uint64_t used)
{
    const uint64_t free = hak_os_free_swap_bytes();
    if (free == 0) {
        return 0;
    }
    const uint64_t most = is_version_1
                              ? number_here("/memory.memsw.limit_in_bytes", INT64_MAX) + used
                              : number_here("/memory.swap.max", free);
    const uint64_t taken = is_version_1 ? number_here("/memory.memsw.usage_in_bytes", used) + limit
                                        : number_here("/memory.swap.current", 0);
    const uint64_t left = most > taken ? most - taken : 0;
    return left < free ? left : free;
}

static void visit_use(void *into, bool is_version_1)
{
    struct hak_group_use *use = into;
    uint64_t limit[2];
    uint64_t used[2];
    if (read_numbers(is_version_1 ? MOST_1 : MOST_2, limit) == 0 ||
        limit[0] >= hak_os_memory_bytes() ||
        read_numbers(is_version_1 ? USE_1 : USE_2, used) == 0) {
        return;
    }
    if (used[0] > limit[0] / 2) { // with less, it does not matter
        const uint64_t soft =
            droppable_bytes(is_version_1) + swappable_bytes(is_version_1, limit[0], used[0]);
        used[0] -= soft < used[0] ? soft : used[0];
    }
    const uint64_t room = limit[0] > used[0] ? limit[0] - used[0] : 0;
    if (use->limit_bytes == SIZE_MAX || room < use->limit_bytes - use->used_bytes) {
        use->limit_bytes = limit[0];
        use->used_bytes = limit[0] - room;
    }
}

struct hak_group_use hak_control_group_read_use(void)
{
    struct hak_group_use use = {.limit_bytes = SIZE_MAX};
    hak_os_read_file("/proc/self/cgroup", groups, sizeof groups);
    visit_groups(&use, "", MOUNT_2, visit_use);
    visit_groups(&use, "memory", MOUNT_1_MEMORY, visit_use);
    return use;
}

static struct hak_held_file hold_limiting(const char *name)
{
    memcpy(limiting.path + limiting.length, name, strlen(name) + 1);
    return hak_os_hold_file(limiting.path);
}

struct hak_share_files hak_control_group_hold_files(void)
{
    struct hak_share_files files = {
        .use = {.file = -1}, .statistics = {.file = -1}, .stalls = {.file = -1}};
    if (limiting.length > 0) {
        files.is_version_1 = limiting.is_version_1;
        files.use = hold_limiting(limiting.is_version_1 ? USE_1 : USE_2);
        files.statistics = hold_limiting("/memory.stat");
        files.stalls = hold_limiting("/memory.pressure"); // version 2's
    }
    if (files.stalls.file < 0) {
        files.stalls = hak_os_hold_file("/proc/pressure/memory");
    }
    return files;
}
