// options.h -- options as a program sees them, and this program run again with other ones.
#ifndef HAK_TESTS_SUPPORT_OPTIONS_H
#define HAK_TESTS_SUPPORT_OPTIONS_H

#include "api.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void ht_set_option(const char *name, uint64_t value)
{
    HT_API(hak_option_set);
    HT_CHECK(api_hak_option_set(name, value), "%s cannot be set", name);
}

static inline struct hak_option_info ht_option_info(const char *name)
{
    HT_API(hak_option_describe);
    struct hak_option_info info;
    size_t number = 0;
    while (api_hak_option_describe(number, &info) && strcmp(info.name, name) != 0) {
        number++;
    }
    HT_CHECK(strcmp(info.name, name) == 0, "there is no option %s", name);
    return info;
}

// Run this program as `role` with these variables, the last of them NULL. Returns what it prints on
// stderr; valid until the next call.
static inline const char *ht_run_again(const char *role, char *const *settings)
{
    static char text[4096];
    int ends[2];
    HT_CHECK(pipe(ends) == 0, "pipe failed");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        for (char *const *setting = settings; *setting != NULL; setting++) {
            putenv(*setting);
        }
        execl("/proc/self/exe", "again", role, (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t more = 0;
    while (length < sizeof text - 1 &&
           (more = read(ends[0], text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)more;
    }
    text[length] = '\0';
    close(ends[0]);
    ht_wait_child(child, text);
    return text;
}

#endif
