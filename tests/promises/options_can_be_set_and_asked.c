// preload only
// native only
// with features
// An option is set by the mode, a file, a list, its variable in the environment, or by name while the
// program runs; the later source overrules the earlier. A senseless value is refused, with one line on stderr
// if it comes from outside, and the default stays.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/nameless.h"
#include "../support/options.h"

static uint64_t value_of(const char *name)
{
    HT_API(hak_option_get);
    uint64_t value = 0;
    HT_CHECK(api_hak_option_get(name, &value), "there is no option %s", name);
    return value;
}

static void check_option(const char *name, uint64_t value, const char *source)
{
    const struct hak_option_info info = ht_option_info(name);
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
    check_option("dirty_bytes", 2 * HT_MIB, "default");
    check_option("check", 0, "default");
    check_option("parcel_bytes", 65536, "default");
    return 0;
}

// All sources at the same time: each option is set by all of them up to a certain one.
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
    HT_CHECK(ht_option_info("decay_ms").at_run_time && !ht_option_info("check").at_run_time,
             "when is wrong");
    HT_CHECK(ht_option_info("decay_ms").initial == 500 &&
                 ht_option_info("decay_ms").most == 3600000,
             "range");
    HT_CHECK(strcmp(ht_option_info("mode").kind, "choice") == 0, "mode is no choice");
    return 0;
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
        "hakmem: HAKMEM_DIRTY_BYTES=lots is not a number from 0 to 1099511627776; ignored\n",
        "hakmem: HAKMEM_CHECK=2 is neither on nor off; ignored\n",
        "hakmem: HAKMEM_PARCEL_BYTES=1Mx is not a number from 64 to 16777216; ignored\n",
        "hakmem: HAKMEM_DEKAY_MS is not an option, the nearest one is HAKMEM_DECAY_MS; ",
        "hakmem: HAKMEM_MODE=fast is none of ",
        "hakmem: HAKMEM_OPTIONS: check_ is not an option, the nearest one is check; ",
        "hakmem: HAKMEM_OPTIONS: nothing_like_it is not an option; ",
        NULL};
    check_lines(ht_run_again("see", settings), complaints);
}

static void check_sources(void)
{
    static const char text[] = "# what holds here\n\n  purge_start_bytes = 1111\r\n"
                               "decay_ms=1111 # too early\ndirty_bytes\t=\t1111\npurger=off\nno=1";
    char file[HT_NAMELESS_PATH];
    const int open = ht_nameless_file(text, file);
    char config[64];
    snprintf(config, sizeof config, "HAKMEM_CONFIG=%s", file);
    static char list[] = "HAKMEM_OPTIONS=decay_ms=2222, dirty_bytes = 2222";
    static char dirty[] = "HAKMEM_DIRTY_BYTES=3333";
    static char mode[] = "HAKMEM_MODE=memory";
    char *const settings[] = {dirty, list, config, mode, NULL};
    char complaint[128];
    snprintf(complaint, sizeof complaint, "hakmem: %s:7: no is not an option", file);
    const char *const lines[] = {complaint, NULL};
    check_lines(ht_run_again("sources", settings), lines);
    close(open);
}

// The text of an option, as the name of a file, comes from the same source as its value, in whatever order they are read.
static int see_files(void)
{
    HT_CHECK(strcmp(ht_option_info("stats").file, "") == 0, "a file that was overruled is used");
    HT_CHECK(strcmp(ht_option_info("pressure_ledger").file, "/dev/null") == 0, "overruled");
    HT_CHECK(strcmp(ht_option_info("ab").file, "decay_ms=300|400") == 0, "overruled");
    HT_API(hak_option_set);
    HT_CHECK(!api_hak_option_set("site_rules", 1), "rules can be read too late");
    return 0;
}

static void check_files(void)
{
    static char stats[] = "HAKMEM_STATS=off";
    static char ledger[] = "HAKMEM_PRESSURE_LEDGER=/dev/null";
    static char trial[] = "HAKMEM_AB=decay_ms=300|400";
    static char list[] = "HAKMEM_OPTIONS=stats=/nowhere/s,pressure_ledger=on,ab=decay_ms=100|200";
    char *const settings[2][5] = {{stats, ledger, trial, list, NULL},
                                  {list, trial, ledger, stats, NULL}};
    for (unsigned i = 0; i < 2; i++) {
        const char *said = ht_run_again("files", settings[i]);
        HT_CHECK(strstr(said, "hakmem: HAKMEM_") == NULL, "a setting is refused: %s", said);
    }
}

// Whatever a value holds, its complaint is one line, and says what is wrong.
static void check_odd_values(void)
{
    static char two_lines[] = "HAKMEM_CHECK=1\nhakmem: \033[31m";
    static char digits[4096] = "HAKMEM_DECAY_MS=";
    memset(digits + strlen(digits), '9', sizeof digits - 1 - strlen(digits));
    char *const settings[] = {two_lines, digits, NULL};
    static const char *const complaints[] = {
        "hakmem: HAKMEM_CHECK=1?hakmem: ?[31m is neither on nor off; ignored\n",
        "99 is not a number from 0 to 3600000; ignored\n",
        NULL};
    check_lines(ht_run_again("nothing", settings), complaints);
}

static void check_empty(void)
{
    static char mode[] = "HAKMEM_MODE=";
    static char decay[] = "HAKMEM_DECAY_MS=";
    static char config[] = "HAKMEM_CONFIG=";
    static char list[] = "HAKMEM_OPTIONS=";
    static char *const settings[] = {mode, decay, config, list, NULL};
    const char *said = ht_run_again("nothing", settings);
    HT_CHECK(strstr(said, "HAKMEM_") == NULL, "an empty variable is reported: %s", said);
}

// A pipe has a name as a file does: a pipe that no process writes to holds no program up; one that a process writes to is read.
static void check_pipes(void)
{
    char pipe[HT_NAMELESS_PATH];
    const int file = ht_nameless_pipe(pipe);
    char config[96];
    snprintf(config, sizeof config, "HAKMEM_CONFIG=%s", pipe);
    char rules[96];
    snprintf(rules, sizeof rules, "HAKMEM_SITE_RULES=%s", pipe);
    char stats[96];
    snprintf(stats, sizeof stats, "HAKMEM_STATS=%s", pipe);
    char *const settings[] = {config, rules, stats, NULL};
    char complaints[3][192];
    const char *const lines[] = {complaints[0], complaints[1], complaints[2], NULL};
    snprintf(complaints[0],
             sizeof complaints[0],
             "hakmem: this file of options cannot be read, is empty, or is a pipe without a "
             "writer: %s\n",
             pipe);
    snprintf(complaints[1],
             sizeof complaints[1],
             "hakmem: the site rules %s cannot be read, or are empty; no rule applies\n",
             pipe);
    snprintf(complaints[2], sizeof complaints[2], "hakmem: %s cannot be written to\n", pipe);
    check_lines(ht_run_again("nothing", settings), lines);

    const int end = open(pipe, O_RDWR | O_CLOEXEC);
    const pid_t writer = fork();
    if (writer == 0) {
        static const char text[] = "no=1\n";
        usleep(200000); // meanwhile the program waits
        _exit(write(end, text, strlen(text)) != (ssize_t)strlen(text));
    }
    char *const written[] = {config, NULL};
    snprintf(complaints[0], sizeof complaints[0], "hakmem: %s:1: no is not an option", pipe);
    const char *const read[] = {complaints[0], NULL};
    check_lines(ht_run_again("nothing", written), read);
    ht_wait_child(writer, "who writes the pipe");
    close(end);
    close(file);
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
    if (count > 1 && strcmp(arguments[1], "nothing") == 0) {
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "files") == 0) {
        return see_files();
    }
    if (count > 1) {
        return strcmp(arguments[1], "see") == 0 ? see_environment() : see_sources();
    }
    check_environment();
    check_sources();
    check_files();
    check_odd_values();
    check_empty();
    check_pipes();
    check_at_run_time();
    return 0;
}
