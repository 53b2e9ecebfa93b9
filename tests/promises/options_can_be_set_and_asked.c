// preload only
// native only
// An option is set by its variable in the environment, or by name while the
// program runs; what makes no sense is refused, in one line on stderr where the
// environment says it, and the default stays.
#include "../support/api.h"

static uint64_t value_of(const char *name)
{
    HT_API(hak_option_get);
    uint64_t value = 0;
    HT_CHECK(api_hak_option_get(name, &value), "there is no option %s", name);
    return value;
}

static int see_environment(void)
{
    HT_CHECK(value_of("decay_ms") == 2048, "HAKMEM_DECAY_MS=2K is %d", (int)value_of("decay_ms"));
    HT_CHECK(value_of("dirty_bytes") == 256 * HT_MIB, "a word counts as a number");
    HT_CHECK(value_of("check") == 0, "a number out of range counts");
    HT_CHECK(value_of("parcel_bytes") == 65536, "a number with something behind it counts");
    return 0;
}

static void check_environment(void)
{
    static char settings[][40] = {"HAKMEM_DECAY_MS=2K",
                                  "HAKMEM_DIRTY_BYTES=lots",
                                  "HAKMEM_CHECK=2",
                                  "HAKMEM_PARCEL_BYTES=1Mx"};
    static const char *const complaints[] = {
        ("hakmem: HAKMEM_DIRTY_BYTES=lots is not a number from 0 to 1099511627776; using "
         "268435456\n"),
        "hakmem: HAKMEM_CHECK=2 is not a number from 0 to 1; using 0\n",
        "hakmem: HAKMEM_PARCEL_BYTES=1Mx is not a number from 64 to 16777216; using 65536\n"};
    int ends[2];
    HT_CHECK(pipe(ends) == 0, "pipe failed");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            putenv(settings[i]);
        }
        execl("/proc/self/exe", "options", "see", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    char text[1024] = "";
    size_t length = 0;
    ssize_t more = 0;
    while (length < sizeof text - 1 &&
           (more = read(ends[0], text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)more;
    }
    for (size_t i = 0; i < sizeof complaints / sizeof *complaints; i++) {
        HT_CHECK(strstr(text, complaints[i]) != NULL, "'%s' lacks '%s'", text, complaints[i]);
    }
    ht_wait_child(child, "the program with options");
}

static void check_at_run_time(void)
{
    HT_API(hak_option_set);
    HT_API(hak_option_get);
    uint64_t value = 7;
    HT_CHECK(api_hak_option_set("decay_ms", 1234) && value_of("decay_ms") == 1234, "not set");
    HT_CHECK(!api_hak_option_set("decay_ms", UINT64_MAX), "any number is accepted");
    HT_CHECK(value_of("decay_ms") == 1234, "a refused value was kept");
    HT_CHECK(!api_hak_option_set("check", 1), "check can be set too late");
    HT_CHECK(!api_hak_option_set("no_such_option", 1), "any name is accepted");
    HT_CHECK(!api_hak_option_get("no_such_option", &value) && value == 7, "any name is known");
}

int main(int count, char **arguments)
{
    (void)arguments;
    ht_start();
    if (count > 1) {
        return see_environment();
    }
    check_environment();
    check_at_run_time();
    return 0;
}
