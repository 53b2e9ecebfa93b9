// options.c -- see options.h; and the C API's part of it.
#include "front/options.h"

#include <limits.h>
#include <string.h>

#include "base/format.h"
#include "base/number.h"
#include "cache/nested.h"
#include "front/nearest.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "os/say.h"
#include "slab/defaults.h"

// Our other variables in the environment.
static const char *const variables[] = {
#define HAK_VARIABLE(name, who) #name,
#include "base/options.def"
};
enum { VARIABLE_COUNT = sizeof variables / sizeof variables[0] };

static _Atomic(uint64_t) *value_of(const struct hak_option_row *option)
{
    return (_Atomic(uint64_t) *)&hak_options + (option - hak_option_rows);
}

// Copies, because programs overwrite their environment.
enum { TEXT_BYTES = 128 };
static struct {
#define HAK_FILE(name, when, help)   char name[PATH_MAX];
#define HAK_TEXT(name, values, help) char name[TEXT_BYTES];
#include "base/options.def"
} files;

struct place {
    char *text; // NULL: the option has none
    size_t bytes;
};

static struct place file_place(const _Atomic(uint64_t) *option)
{
#define PLACE(name)                                           \
    if (option == &hak_options.name) {                        \
        return (struct place){files.name, sizeof files.name}; \
    }
#define HAK_FILE(name, when, help)   PLACE(name)
#define HAK_TEXT(name, values, help) PLACE(name)
#include "base/options.def"
#undef PLACE
    return (struct place){NULL, 0};
}

const char *hak_option_file(const _Atomic(uint64_t) *option)
{
    const struct place place = file_place(option);
    return place.text != NULL ? place.text : "";
}

// Are the first `length` letters the same, in upper or lower case? Not strncasecmp: a sanitizer replaces it, and is not ready yet
// when this is called.
static bool is_same(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char c = a[i] >= 'A' && a[i] <= 'Z' ? (char)(a[i] - 'A' + 'a') : a[i];
        const char d = b[i] >= 'A' && b[i] <= 'Z' ? (char)(b[i] - 'A' + 'a') : b[i];
        if (c != d || c == '\0') {
            return c == d;
        }
    }
    return true;
}

char *hak_option_trimmed(char *text)
{
    static const char spaces[] = " \t\r";
    text += strspn(text, spaces);
    size_t length = strlen(text);
    while (length > 0 && strchr(spaces, text[length - 1]) != NULL) {
        text[--length] = '\0';
    }
    return text;
}

const struct hak_option_row *hak_option_named(const char *name, size_t length)
{
    for (unsigned i = 0; i < HAK_OPTION_COUNT; i++) {
        if (strlen(hak_option_rows[i].name) == length &&
            is_same(hak_option_rows[i].name, name, length)) {
            return &hak_option_rows[i];
        }
    }
    return NULL;
}

// A decimal number, with K, M or G for powers of 1,024; or an address, which begins with 0x.
static bool parse_number(const char *text, uint64_t *value)
{
    const bool is_address = text[0] == '0' && text[1] == 'x';
    const char *c = is_address ? text + 2 : text;
    uint64_t number;
    if (!hak_number_take(&c, is_address ? 16 : 10, &number)) {
        return false;
    }
    const unsigned shift = is_address ? 0 : *c == 'K' ? 10 : *c == 'M' ? 20 : *c == 'G' ? 30 : 0;
    c += shift != 0;
    if (*c != '\0' || number > UINT64_MAX >> shift) {
        return false;
    }
    *value = number << shift;
    return true;
}

// The number of `text` among words separated by |.
static bool parse_word(const char *words, const char *text, uint64_t *value)
{
    const size_t length = strlen(text);
    for (uint64_t number = 0; words != NULL; number++) {
        const char *end = strchr(words, '|');
        const size_t word_length = end != NULL ? (size_t)(end - words) : strlen(words);
        if (word_length == length && is_same(words, text, length)) {
            *value = number;
            return true;
        }
        words = end != NULL ? end + 1 : NULL;
    }
    return false;
}

bool hak_option_parse(const struct hak_option_row *option, const char *text, uint64_t *value)
{
    if (option->kind == HAK_OPTION_CHOICE) {
        return parse_word(option->unit, text, value);
    }
    const bool is_switch = option->kind == HAK_OPTION_SWITCH || option->kind == HAK_OPTION_FILE;
    if (is_switch && parse_word("off|on", text, value)) {
        return true;
    }
    if (option->kind == HAK_OPTION_TEXT) {
        return parse_word("off", text, value);
    }
    return parse_number(text, value) && *value >= option->least && *value <= option->most;
}

// The folder that a relative path of a file starts from, with a / at its end; "" for all else. The program may go to another folder,
// or take its rights away, before the file is written.
static size_t take_folder(const struct hak_option_row *option, const char *text, struct place place)
{
    size_t length = 0;
    if (option->kind == HAK_OPTION_FILE && *text != '/' && *text != '\0') {
        length = hak_os_folder(place.text, place.bytes);
    }
    if (length > 0 && length < place.bytes - 1 && place.text[length - 1] != '/') {
        place.text[length++] = '/';
    }
    return length;
}

// A text, or the name of a file: anything that does not begin with a digit.
static bool is_file(const struct hak_option_row *option, const char *text)
{
    const size_t length = strlen(text);
    return length > 0 && length < file_place(value_of(option)).bytes &&
           (*text < '0' || *text > '9');
}

// Keep the text, or the file's name, of an option that has one; "": none, for a value without it.
static void keep_file(const struct hak_option_row *option, const char *text)
{
    const struct place place = file_place(value_of(option));
    if (place.text != NULL) {
        const size_t length = strlen(text);
        const size_t folder = take_folder(option, text, place);
        memcpy(place.text + (length < place.bytes - folder ? folder : 0), text, length + 1);
    }
}

// A name as the setting has it: in capitals if that is an environment variable.
struct spelling {
    char text[32];
};

static struct spelling spell(const struct hak_setting *setting, const char *name, size_t length)
{
    struct spelling spelling = {""};
    for (size_t i = 0; i + 1 < sizeof spelling.text && i < length; i++) {
        const bool is_raised =
            setting->source == HAK_FROM_VARIABLE && name[i] >= 'a' && name[i] <= 'z';
        spelling.text[i] = is_raised ? (char)(name[i] - 'a' + 'A') : name[i];
    }
    return spelling;
}

static void complain_of_value(const struct hak_setting *setting,
                              const struct hak_option_row *option,
                              const char *value)
{
    char wanted[128];
    if (option->kind == HAK_OPTION_SWITCH || option->kind == HAK_OPTION_FILE) {
        const bool may_be_file = option->kind == HAK_OPTION_FILE;
        hak_format(
            wanted, sizeof wanted, "neither on nor off%s", may_be_file ? ", nor a file" : "");
    } else if (option->kind == HAK_OPTION_CHOICE || option->kind == HAK_OPTION_TEXT) {
        const bool is_text = option->kind == HAK_OPTION_TEXT;
        hak_format(wanted, sizeof wanted, "%s%s", is_text ? "not " : "none of ", option->unit);
    } else {
        hak_format(wanted,
                   sizeof wanted,
                   "not a number from %z to %z",
                   (size_t)option->least,
                   (size_t)option->most);
    }
    // Of a longer value the beginning, so that the line has room for what is wrong with it.
    char shown[128];
    hak_format(shown, sizeof shown, "%s", value);
    hak_say("%s%s=%s is %s; ignored",
            setting->place,
            spell(setting, option->name, strlen(option->name)).text,
            shown,
            wanted);
}

static void complain_of_name(const struct hak_setting *setting, const char *name, size_t length)
{
    struct hak_nearest nearest = hak_nearest_start(name, length);
    for (unsigned i = 0; i < HAK_OPTION_COUNT; i++) {
        hak_nearest_try(&nearest, hak_option_rows[i].name);
    }
    for (unsigned i = 0; i < VARIABLE_COUNT && setting->source == HAK_FROM_VARIABLE; i++) {
        hak_nearest_try(&nearest, variables[i]);
    }
    const char *word = nearest.name != NULL ? nearest.name : "";
    hak_say("%s%s is not an option%s%s%s; 'hakmem options' lists them",
            setting->place,
            spell(setting, name, length).text,
            *word != '\0' ? ", the nearest one is " : "",
            *word != '\0' && setting->source == HAK_FROM_VARIABLE ? setting->place : "",
            spell(setting, word, strlen(word)).text);
}

static bool is_other_variable(const struct hak_setting *setting, const char *name, size_t length)
{
    for (unsigned i = 0; i < VARIABLE_COUNT && setting->source == HAK_FROM_VARIABLE; i++) {
        if (strlen(variables[i]) == length && is_same(variables[i], name, length)) {
            return true;
        }
    }
    return false;
}

void hak_option_take(const struct hak_setting *setting,
                     const char *name,
                     size_t name_length,
                     const char *value)
{
    const struct hak_option_row *option = hak_option_named(name, name_length);
    if (option == NULL) {
        if (!is_other_variable(setting, name, name_length)) {
            complain_of_name(setting, name, name_length);
        }
        return;
    }
    uint64_t number = 1;
    const bool is_value = hak_option_parse(option, value, &number);
    if (!is_value && !is_file(option, value)) {
        complain_of_value(setting, option, value);
    } else if (hak_defaults_choose(value_of(option), number, setting->source)) {
        keep_file(option, is_value ? "" : value);
    }
}

bool hak_option_get(const char *name, uint64_t *value)
{
    const struct hak_option_row *option = hak_option_named(name, strlen(name));
    if (option != NULL) {
        *value = hak_load_relaxed(value_of(option));
    }
    return option != NULL;
}

bool hak_option_set(const char *name, uint64_t value)
{
    const struct hak_option_row *option = hak_option_named(name, strlen(name));
    if (option == NULL || option->when == HAK_OPTION_AT_START || value < option->least ||
        value > option->most || !hak_nested_may_wait()) {
        return false;
    }
    hak_defaults_choose(value_of(option), value, HAK_FROM_PROGRAM);
    return true;
}

bool hak_option_describe(size_t number, struct hak_option_info *info)
{
    static const char *const kinds[] = {[HAK_OPTION_SWITCH] = "switch",
                                        [HAK_OPTION_NUMBER] = "number",
                                        [HAK_OPTION_CHOICE] = "choice",
                                        [HAK_OPTION_FILE] = "file",
                                        [HAK_OPTION_TEXT] = "text"};
    static const char *const sources[HAK_OPTION_SOURCES] = {[HAK_FROM_DEFAULT] = "default",
                                                            [HAK_FROM_MODE] = "mode",
                                                            [HAK_FROM_MACHINE] = "machine",
                                                            [HAK_FROM_LEARNER] = "learner",
                                                            [HAK_FROM_FILE] = "config file",
                                                            [HAK_FROM_LIST] = "HAKMEM_OPTIONS",
                                                            [HAK_FROM_VARIABLE] = "environment",
                                                            [HAK_FROM_PROGRAM] = "program"};
    if (number >= HAK_OPTION_COUNT) {
        return false;
    }
    const struct hak_option_row *option = &hak_option_rows[number];
    *info = (struct hak_option_info){.name = option->name,
                                     .kind = kinds[option->kind],
                                     .unit = option->unit,
                                     .help = option->help,
                                     .source = sources[hak_option_source_of(value_of(option))],
                                     .file = hak_option_file(value_of(option)),
                                     .value = hak_load_relaxed(value_of(option)),
                                     .initial = option->initial,
                                     .least = option->least,
                                     .most = option->most,
                                     .at_run_time = option->when == HAK_OPTION_AT_ANY_TIME};
    return true;
}
