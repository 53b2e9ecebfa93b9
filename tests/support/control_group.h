// control_group.h -- runs a part of a test in a control group with little memory.
#ifndef HAK_TESTS_SUPPORT_CONTROL_GROUP_H
#define HAK_TESTS_SUPPORT_CONTROL_GROUP_H

#include "promise.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

struct ht_group {
    char folder[PATH_MAX];
    const char *limit; // the file with the limit
};

static inline bool ht_write_file(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    bool written = write(file, text, strlen(text)) == (ssize_t)strlen(text);
    close(file);
    return written;
}

// A group below this process's own: by the interface of version 1, or of version 2 if the group above
// passes the memory controller on. Skips the test if neither is possible.
static inline struct ht_group ht_make_group(const char *limit_bytes)
{
    static const char *const mounts[][3] = {
        {"memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
        {"0::", "/sys/fs/cgroup", "memory.max"},
    };
    struct ht_group group;
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        char line[PATH_MAX];
        int file = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
        ssize_t length = file >= 0 ? read(file, line, sizeof line - 1) : 0;
        close(file);
        line[length > 0 ? length : 0] = '\0';
        char *own = strstr(line, mounts[i][0]);
        if (own == NULL) {
            continue;
        }
        own += strlen(mounts[i][0]);
        own[strcspn(own, "\n")] = '\0';
        snprintf(group.folder,
                 sizeof group.folder,
                 "%s%s/hakmem-test-%d",
                 mounts[i][1],
                 strcmp(own, "/") == 0 ? "" : own,
                 (int)getpid());
        group.limit = mounts[i][2];
        if (mkdir(group.folder, 0755) == 0) {
            if (ht_write_file(group.folder, group.limit, limit_bytes)) {
                return group;
            }
            rmdir(group.folder);
        }
    }
    HT_SKIP("no right to make a control group with a memory limit here");
}

static inline void ht_enter_group(const struct ht_group *group)
{
    char number[16];
    snprintf(number, sizeof number, "%d", (int)getpid());
    if (!ht_write_file(group->folder, "cgroup.procs", number)) {
        HT_SKIP("cannot enter %s: errno %d", group->folder, errno);
    }
}

// A process that has just ended may count as a member for a moment longer.
static inline void ht_remove_group(const struct ht_group *group)
{
    for (int tries = 0; rmdir(group->folder) != 0 && errno == EBUSY && tries < 100; tries++) {
        ht_sleep_ms(10);
    }
}

#endif
