// environment.c -- see environment.h.
#include "front/environment.h"

#include <string.h>
#include <sys/auxv.h>

#include "base/format.h"
#include "front/options.h"
#include "os/os.h"
#include "os/say.h"
#include "slab/arena.h"

#define PREFIX "HAKMEM_"

static char **variables; // NULL: none

// Take the setting in `text`, which is overwritten. There may be spaces around it and around its `=`.
// A # makes a comment of the rest.
static void take_setting(const struct hak_setting *setting, char *text)
{
    text[strcspn(text, "#")] = '\0';
    text = hak_option_trimmed(text);
    char *value = text + strcspn(text, "=");
    if (*text == '\0') {
        return;
    }
    if (*value == '=') {
        *value++ = '\0';
    }
    const char *name = hak_option_trimmed(text);
    hak_option_take(setting, name, strlen(name), hak_option_trimmed(value));
}

enum { TEXT_BYTES = 8192 };

static void take_list(const char *list)
{
    char text[TEXT_BYTES];
    const struct hak_setting setting = {HAK_FROM_LIST, PREFIX "OPTIONS: "};
    if (strlen(list) >= sizeof text) {
        hak_say(PREFIX "OPTIONS is longer than 8,191 characters and was not read");
        return;
    }
    memcpy(text, list, strlen(list) + 1);
    for (char *next = text; next != NULL;) {
        char *one = strsep(&next, ",");
        take_setting(&setting, one);
    }
}

static void take_file(const char *path, enum hak_option_source source)
{
    char text[TEXT_BYTES];
    char place[256];
    const struct hak_setting setting = {source, place};
    const size_t length = hak_os_read_file(path, text, sizeof text);
    if (length == 0 || length == sizeof text - 1) {
        hak_say(length == 0
                    ? "this file of options cannot be read, is empty, or is a pipe without a "
                      "writer: %s"
                    : "this file of options is longer than 8,190 characters and was not read: %s",
                path);
        return;
    }
    size_t number = 1;
    for (char *next = text; next != NULL; number++) {
        char *one = strsep(&next, "\n");
        hak_format(place, sizeof place, "%s:%z: ", path, number);
        take_setting(&setting, one);
    }
}

static void take_variable(const char *variable)
{
    const struct hak_setting setting = {HAK_FROM_VARIABLE, PREFIX};
    const char *equals = strchr(variable, '=');
    if (equals == NULL || equals[1] == '\0') {
        return; // an empty variable counts as unset: tools that pass variables on make such ones
    }
    const size_t length = (size_t)(equals - variable);
    if (length == strlen("OPTIONS") && memcmp(variable, "OPTIONS", length) == 0) {
        take_list(equals + 1);
    } else if (length == strlen("CONFIG") && memcmp(variable, "CONFIG", length) == 0) {
        take_file(equals + 1, HAK_FROM_FILE);
    } else if (length == strlen("PROFILE") && memcmp(variable, "PROFILE", length) == 0) {
        take_file(equals + 1, HAK_FROM_LEARNER);
    } else {
        hak_option_take(&setting, variable, length, equals + 1);
    }
}

void hak_environment_read(char **environment)
{
    if (getauxval(AT_SECURE) != 0 || environment == NULL) {
        return;
    }
    variables = environment;
    for (char **variable = environment; *variable != NULL; variable++) {
        if (strncmp(*variable, PREFIX, strlen(PREFIX)) == 0) {
            take_variable(*variable + strlen(PREFIX));
        }
    }
    hak_lock_take(&hak_arena.lock);
    hak_option_apply_mode();
    hak_lock_drop(&hak_arena.lock);
}

const char *hak_environment_value(const char *name)
{
    const size_t length = strlen(name);
    for (char **variable = variables; variable != NULL && *variable != NULL; variable++) {
        if (strncmp(*variable, name, length) == 0 && (*variable)[length] == '=') {
            return *variable + length + 1;
        }
    }
    return NULL;
}
