// serial
// native only
// preload only
// with features
// In a container with 64 MiB a block of 8 MiB grows to 56, a piece at a time, where it lies, and all of it is used: the kernel ends
// nobody, as it would beside a copy. So it does with limit_group.
#include "../support/control_group.h"

#define LIMIT "67108864"

static int grow(size_t step)
{
    size_t bytes = 8 * HT_MIB;
    unsigned char *block = malloc(bytes);
    HT_CHECK(block != NULL, "no block");
    memset(block, 1, bytes);
    while (bytes + step <= 56 * HT_MIB) {
        unsigned char *larger = realloc(block, bytes + step);
        HT_CHECK(larger != NULL, "%zu bytes more than %zu were refused", step, bytes);
        memset(larger + bytes, 1, step);
        block = larger;
        bytes += step;
    }
    HT_CHECK(ht_first_other(block, bytes, 1) == bytes, "its content was lost");
    free(block);
    return 0;
}

static void try_in_group(const struct ht_group *group, const char *policy, const char *step)
{
    const pid_t child = fork();
    if (child == 0) {
        ht_enter_group(group);
        setenv("HAKMEM_LIMIT_GROUP", policy, 1);
        execl("/proc/self/exe", "grow", step, (char *)NULL);
        _exit(1);
    }
    ht_wait_child(child, policy);
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1) {
        return grow(strtoul(arguments[1], NULL, 10));
    }
    static const char *const steps[] = {"65536", "1048576", "5242880"};
    const struct ht_group group = ht_make_group(LIMIT);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        try_in_group(&group, "auto", steps[i]);
        try_in_group(&group, "refuse", steps[i]);
    }
    ht_remove_group(&group);
    return 0;
}
