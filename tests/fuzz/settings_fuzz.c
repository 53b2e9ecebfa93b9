// settings_fuzz.c -- whatever the environment, files of options and site rules contain: it
// is read to its end, the values set are within their limits, and every line about it is ours and complete.
//
// The input is five texts, separated by zeros: HAKMEM_OPTIONS, a variable, the file that HAKMEM_CONFIG
// names, that of HAKMEM_PROFILE, site rules.
//
// faked system
#define HT_ABORT_WHEN_BROKEN
#include <stdint.h>

#include "../unit/unit.h"
#include "base/options.h"
#include "front/environment.h"
#include "hakmem/hakmem.h"
#include "rules/site.h"
#include "rules/site_rules.h"

enum { TEXT_BYTES = 16384, PARTS = 5, RULES_PART = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

struct parts {
    char text[PARTS][TEXT_BYTES];
};

static void cut(struct parts *parts, const uint8_t *bytes, size_t length)
{
    size_t part = 0;
    size_t at = 0;
    memset(parts, 0, sizeof *parts);
    for (size_t i = 0; i < length && part < PARTS; i++) {
        if (bytes[i] == '\0') {
            part++;
            at = 0;
        } else if (at < TEXT_BYTES - 1) {
            parts->text[part][at++] = (char)bytes[i];
        }
    }
}

static void check_values(void)
{
    struct hak_option_info info;
    for (size_t i = 0; hak_option_describe(i, &info); i++) {
        UNIT_CHECK(info.value >= info.least && info.value <= info.most);
        uint64_t value;
        UNIT_CHECK(hak_option_get(info.name, &value) && value == info.value);
    }
}

// As many as the fake has room for.
static void check_lines(void)
{
    const size_t printed = hak_fake.printed_bytes;
    UNIT_CHECK(printed == 0 || strncmp(hak_fake.printed, "hakmem: ", strlen("hakmem: ")) == 0);
    UNIT_CHECK(printed == 0 || printed == sizeof hak_fake.printed - 1 ||
               hak_fake.printed[printed - 1] == '\n');
}

static void read_environment(struct parts *parts)
{
    static char options[TEXT_BYTES + 16];
    static char variable[TEXT_BYTES + 16];
    static char config[] = "HAKMEM_CONFIG=config";
    static char profile[] = "HAKMEM_PROFILE=profile";
    char *environment[] = {options, variable, config, profile, NULL};
    snprintf(options, sizeof options, "HAKMEM_OPTIONS=%s", parts->text[0]);
    snprintf(variable, sizeof variable, "HAKMEM_%s", parts->text[1]);
    const struct hak_fake_file files[] = {
        {"config", parts->text[2]}, {"profile", parts->text[3]}, {NULL, NULL}};
    hak_fake.files = files;
    hak_environment_read(environment);
    hak_fake.files = NULL;
}

static void read_rules(struct parts *parts)
{
    static char variable[] = "HAKMEM_SITE_RULES=rules";
    char *environment[] = {variable, NULL};
    const struct hak_fake_content contents[] = {
        {"rules", parts->text[RULES_PART], strlen(parts->text[RULES_PART])}, {NULL, NULL, 0}};
    hak_environment_read(environment);
    hak_fake.contents = contents;
    hak_site_rules_read();
    hak_fake.contents = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct parts parts;
    static struct hak_options untouched;
    static bool is_known;
    if (!is_known) {
        memcpy(&untouched, &hak_options, sizeof untouched);
        is_known = true;
    }
    memcpy((void *)&hak_options, &untouched, sizeof untouched);
    memset((void *)&hak_option_sources, 0, sizeof hak_option_sources);
    memset((void *)&hak_sites, 0, sizeof hak_sites);
    cut(&parts, bytes, length);
    hak_fake.printed_bytes = 0;
    read_environment(&parts);
    check_values();
    check_lines();
    read_rules(&parts);
    check_lines();
    return 0;
}
