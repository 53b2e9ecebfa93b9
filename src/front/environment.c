// environment.c -- see environment.h; and options by name.
#include "front/environment.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/format.h"
#include "base/options.h"
#include "hakmem/hakmem.h"
#include "os/os.h"

struct option {
    const char *name;
    _Atomic(uint64_t) *value;
    uint64_t min;
    uint64_t max;
};

static const struct option options[] = {
#define HAK_OPTION(name, initial, min, max, help) {#name, &hak_options.name, (min), (max)},
#include "base/options.def"
#undef HAK_OPTION
};

enum { OPTION_COUNT = sizeof options / sizeof options[0] };

static const struct option *option_named(const char *name, size_t length)
{
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        if (strlen(options[i].name) == length && strncasecmp(options[i].name, name, length) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

// A decimal number, with K, M or G for powers of 1,024.
static bool parse_number(const char *text, uint64_t *value)
{
    uint64_t number = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*c - '0'), &number)) {
            return false;
        }
    }
    if (c == text) {
        return false;
    }
    const unsigned shift = *c == 'K' ? 10 : *c == 'M' ? 20 : *c == 'G' ? 30 : 0;
    c += shift != 0;
    if (*c != '\0' || number > UINT64_MAX >> shift) {
        return false;
    }
    *value = number << shift;
    return true;
}

static char stats_file[PATH_MAX]; // empty: none. A copy, as programs write over their environment

const char *hak_stats_file(void)
{
    return stats_file;
}

// HAKMEM_STATS may name a file. False when `value` is no such name.
static bool take_file(const struct option *option, const char *value)
{
    const size_t length = strlen(value);
    const bool is_name = strcmp(option->name, "stats") == 0 && length > 0 &&
                         length < sizeof stats_file && (*value < '0' || *value > '9');
    if (is_name) {
        memcpy(stats_file, value, length + 1);
    }
    return is_name;
}

static void environment_complain(const char *value, const struct option *option)
{
    char line[256];
    char name[32] = ""; // as it stands in the environment
    for (size_t i = 0; i + 1 < sizeof name && option->name[i] != '\0'; i++) {
        const char c = option->name[i];
        name[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    size_t length = hak_format(line,
                               sizeof line,
                               "hakmem: HAKMEM_%s=%s is not a number from %z to %z; using %z\n",
                               name,
                               value,
                               (size_t)option->min,
                               (size_t)option->max,
                               (size_t)hak_load_relaxed(option->value));
    hak_os_print(line, length);
}

static void environment_take(const char *variable)
{
    const char *equals = strchr(variable, '=');
    if (equals == NULL) {
        return;
    }
    const struct option *option = option_named(variable, (size_t)(equals - variable));
    uint64_t value;
    if (option == NULL || take_file(option, equals + 1)) {
        return;
    }
    if (!parse_number(equals + 1, &value) || value < option->min || value > option->max) {
        environment_complain(equals + 1, option);
        return;
    }
    hak_option_choose(option->value, value);
}

void hak_environment_read(char **environment)
{
    static const char prefix[] = "HAKMEM_";
    if (getauxval(AT_SECURE) != 0 || environment == NULL) {
        return;
    }
    for (char **variable = environment; *variable != NULL; variable++) {
        if (strncmp(*variable, prefix, sizeof prefix - 1) == 0) {
            environment_take(*variable + sizeof prefix - 1);
        }
    }
}

bool hak_option_get(const char *name, uint64_t *value)
{
    const struct option *option = option_named(name, strlen(name));
    if (option != NULL) {
        *value = hak_load_relaxed(option->value);
    }
    return option != NULL;
}

bool hak_option_set(const char *name, uint64_t value)
{
    const struct option *option = option_named(name, strlen(name));
    if (option == NULL || option->value == &hak_options.check || value < option->min ||
        value > option->max) {
        return false; // option check decides how caches are made
    }
    hak_option_choose(option->value, value);
    return true;
}
