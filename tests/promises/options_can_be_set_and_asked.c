// preload only
// native only
// An option is set by the mode, a file, a list, its variable in the environment, or by name while the
// program runs; the later overrules the earlier. What makes no sense is refused, in one line on stderr
// where it comes from outside, and the default stays.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/api.h"

static uint64_t value_of(const char *name)
{
    HT_API(hak_option_get);
    uint64_t value = 0;
    HT_CHECK(api_hak_option_get(name, &value), "there is no option %s", name);
    return value;
}

static struct hak_option_info info_of(const char *name)
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

static void check_option(const char *name, uint64_t value, const char *source)
{
    const struct hak_option_info info = info_of(name);
    HT_CHECK(value_of(name) == value && info.value == value,
             "%s is %zu, not %zu",
             name,
             (size_t)info.value,
             (size_t)value);
    HT_CHECK(strcmp(info.source, source) == 0, "%s is from %s, not %s", name, info.source, source);
}

static int see_environment(void)
{
    check_option("decay_ms", 2048, "environment");
    check_option("dirty_bytes", 256 * HT_MIB, "default");
    check_option("check", 0, "default");
    check_option("parcel_bytes", 65536, "default");
    return 0;
}

// Everything at once: each option is set by all sources up to one of them.
static int see_sources(void)
{
    check_option("mode", 3, "environment");
    check_option("huge_start_bytes", (uint64_t)1 << 40, "mode");
    check_option("purge_start_bytes", 1111, "config file");
    check_option("decay_ms", 2222, "HAKMEM_OPTIONS");
    check_option("dirty_bytes", 3333, "environment");
    check_option("purger", 0, "config file");
    HT_API(hak_option_set);
    HT_CHECK(api_hak_option_set("dirty_bytes", 4444), "not set");
    check_option("dirty_bytes", 4444, "program");
    HT_CHECK(info_of("decay_ms").at_run_time && !info_of("check").at_run_time, "when is wrong");
    HT_CHECK(info_of("decay_ms").initial == 500 && info_of("decay_ms").most == 3600000, "range");
    HT_CHECK(strcmp(info_of("mode").kind, "choice") == 0, "mode is no choice");
    return 0;
}

// Run this program as `role` in this environment, and return what it says on stderr.
static const char *run(const char *role, char *const *settings)
{
    static char text[2048];
    int ends[2];
    HT_CHECK(pipe(ends) == 0, "pipe failed");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        for (char *const *setting = settings; *setting != NULL; setting++) {
            putenv(*setting);
        }
        execl("/proc/self/exe", "options", role, (char *)NULL);
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

static void check_lines(const char *text, const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        HT_CHECK(strstr(text, *lines) != NULL, "'%s' lacks '%s'", text, *lines);
    }
}

static void check_environment(void)
{
    static char decay[] = "HAKMEM_DECAY_MS=2K";
    static char dirty[] = "HAKMEM_DIRTY_BYTES=lots";
    static char check[] = "HAKMEM_CHECK=2";
    static char parcel[] = "HAKMEM_PARCEL_BYTES=1Mx";
    static char name[] = "HAKMEM_DEKAY_MS=1";
    static char mode[] = "HAKMEM_MODE=fast";
    static char list[] = "HAKMEM_OPTIONS=check_=on,nothing_like_it=1";
    static char *const settings[] = {decay, dirty, check, parcel, name, mode, list, NULL};
    static const char *const complaints[] = {
        ("hakmem: HAKMEM_DIRTY_BYTES=lots is not a number from 0 to 1099511627776; using "
         "268435456\n"),
        "hakmem: HAKMEM_CHECK=2 is neither on nor off; using off\n",
        "hakmem: HAKMEM_PARCEL_BYTES=1Mx is not a number from 64 to 16777216; using 65536\n",
        "hakmem: HAKMEM_DEKAY_MS is no option, the nearest one is HAKMEM_DECAY_MS; ",
        "hakmem: HAKMEM_MODE=fast is none of ",
        "hakmem: HAKMEM_OPTIONS: check_ is no option, the nearest one is check; ",
        "hakmem: HAKMEM_OPTIONS: nothing_like_it is no option; ",
        NULL};
    check_lines(run("see", settings), complaints);
}

static void check_sources(void)
{
    char file[] = "/tmp/hakmem-options-XXXXXX";
    static const char text[] = "# what holds here\n\n  purge_start_bytes = 1111\r\n"
                               "decay_ms=1111 # too early\ndirty_bytes\t=\t1111\npurger=off\nno=1";
    const int open = mkstemp(file);
    HT_CHECK(write(open, text, strlen(text)) == (ssize_t)strlen(text), "no file to write");
    close(open);
    char config[64];
    snprintf(config, sizeof config, "HAKMEM_CONFIG=%s", file);
    static char list[] = "HAKMEM_OPTIONS=decay_ms=2222, dirty_bytes = 2222";
    static char dirty[] = "HAKMEM_DIRTY_BYTES=3333";
    static char mode[] = "HAKMEM_MODE=memory";
    char *const settings[] = {dirty, list, config, mode, NULL};
    char complaint[128];
    snprintf(complaint, sizeof complaint, "hakmem: %s:7: no is no option", file);
    const char *const lines[] = {complaint, NULL};
    check_lines(run("sources", settings), lines);
    unlink(file);
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
    ht_start();
    if (count > 1) {
        return strcmp(arguments[1], "see") == 0 ? see_environment() : see_sources();
    }
    check_environment();
    check_sources();
    check_at_run_time();
    return 0;
}
