// serial
// native only
// preload only
// with features
// In a container with 64 MiB a block grows in place to 56 MiB or nearly, and all of it is used: the kernel kills nothing, as it
// would beside a copy. The same holds with limit_group, and when another block behind it makes it move: what was copied is purged
// meanwhile.
#include "../support/control_group.h"

#define LIMIT "67108864"

struct growth {
    size_t start;
    size_t step;
    bool has_neighbour;
};
static const struct growth growths[] = {{8 * HT_MIB, 64 * HT_KIB, false},
                                        {8 * HT_MIB, HT_MIB, false},
                                        {8 * HT_MIB, 5 * HT_MIB, false},
                                        {36 * HT_MIB, HT_MIB, true},
                                        {36 * HT_MIB, 16 * HT_MIB, true}};
enum { GROWTHS = sizeof growths / sizeof *growths };

static int grow(const struct growth *growth)
{
    size_t bytes = growth->start;
    unsigned char *block = malloc(bytes);
    HT_CHECK(block != NULL, "no block");
    memset(block, 1, bytes);
    void *neighbour = growth->has_neighbour ? malloc(HT_MIB) : NULL;
    while (bytes + growth->step <= 56 * HT_MIB) {
        unsigned char *larger = realloc(block, bytes + growth->step);
        HT_CHECK(larger != NULL, "%zu bytes more than %zu were refused", growth->step, bytes);
        memset(larger + bytes, 1, growth->step);
        block = larger;
        bytes += growth->step;
    }
    HT_CHECK(ht_first_other(block, bytes, 1) == bytes, "its content was lost");
    free(block);
    free(neighbour);
    return 0;
}

static void try_in_group(const struct ht_group *group, const char *policy, const char *number)
{
    const pid_t child = fork();
    if (child == 0) {
        ht_enter_group(group);
        setenv("HAKMEM_LIMIT_GROUP", policy, 1);
        execl("/proc/self/exe", "grow", number, (char *)NULL);
        _exit(1);
    }
    ht_wait_child(child, number);
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1) {
        return grow(&growths[strtoul(arguments[1], NULL, 10)]);
    }
    const struct ht_group group = ht_make_group(LIMIT);
    for (size_t i = 0; i < GROWTHS; i++) {
        const char number[] = {(char)('0' + i), '\0'};
        try_in_group(&group, "auto", number);
        try_in_group(&group, "refuse", number);
    }
    ht_remove_group(&group);
    return 0;
}
