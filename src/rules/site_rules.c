// site_rules.c -- see site_rules.h; and the C API's part of it.
#include "rules/site_rules.h"

#include <string.h>

#include "base/bits.h"
#include "base/number.h"
#include "base/options.h"
#include "cache/nested.h"
#include "front/options.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "os/say.h"
#include "rules/modules.h"
#include "rules/site.h"

enum { LINE_BYTES = 512 };

// A rule as it is written in the text.
struct rule {
    const char *where; // a function, or a module where `is_offset`
    bool is_offset;    // where in that module: [start, end)
    uintptr_t start;
    uintptr_t end;
    unsigned ways;
    bool is_full; // there was no room for it
};

// A number in the notation of `nm` and `objdump`, at the start of `*text`, which moves behind it.
static bool take_hexadecimal(const char **text, uintptr_t *value)
{
    *text += strncmp(*text, "0x", 2) == 0 ? 2 : 0;
    return hak_number_take(text, 16, value);
}

// `module+0x12`, `module+0x12-0x40`, or the name of a function.
static bool parse_where(char *text, struct rule *rule)
{
    rule->where = text;
    char *plus = strrchr(text, '+');
    if (plus == NULL) {
        return *text != '\0';
    }
    const char *rest = plus + 1;
    *plus = '\0';
    rule->is_offset = true;
    if (!take_hexadecimal(&rest, &rule->start)) {
        return false;
    }
    rule->end = rule->start + 1;
    if (*rest == '-') {
        rest++;
        return take_hexadecimal(&rest, &rule->end) && *rest == '\0' && rule->end > rule->start;
    }
    return *rest == '\0';
}

static bool parse_way(const char *word, unsigned *ways)
{
    static const struct {
        const char *word;
        unsigned way;
    } words[] = {{"short", HAK_WAY_SHORT},
                 {"long", HAK_WAY_LONG},
                 {"uncached", HAK_WAY_UNKEPT},
                 {"unmap", HAK_WAY_UNMAP},
                 {"huge", HAK_WAY_HUGE},
                 {"zero", HAK_WAY_ZERO}};
    static const char align[] = "align=";
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i].word) == 0) {
            *ways |= words[i].way;
            return (*ways & (HAK_WAY_SHORT | HAK_WAY_LONG)) != (HAK_WAY_SHORT | HAK_WAY_LONG);
        }
    }
    if (strncmp(word, align, strlen(align)) != 0) {
        return false;
    }
    const char *c = word + strlen(align);
    uint64_t alignment;
    if (!hak_number_take(&c, 10, &alignment) || *c != '\0' || !hak_is_power_of_two(alignment) ||
        alignment < HAK_MALLOC_ALIGNMENT || alignment > HAK_SITE_ALIGN_MAX ||
        HAK_WAYS_ALIGN_LOG2(*ways) != 0) {
        return false;
    }
    *ways |= hak_highest_bit(alignment) << HAK_WAY_ALIGN_BIT;
    return true;
}

static bool parse_ways(char *text, unsigned *ways)
{
    *ways = 0;
    for (char *next = text; next != NULL;) {
        char *word = strsep(&next, ",");
        if (!parse_way(hak_option_trimmed(word), ways)) {
            return false;
        }
    }
    return true;
}

static void add(struct rule *rule, uintptr_t start, uintptr_t end)
{
    const struct hak_site_rule site = {start, end, rule->ways};
    rule->is_full |= !hak_site_add(&site);
}

static void add_function(uintptr_t start, uintptr_t end, void *data)
{
    // A call at the very end of a function returns to the byte behind it.
    add(data, start + 1, end + 1);
}

static void add_in_module(const struct hak_module *module, void *data)
{
    struct rule *rule = data;
    if (!rule->is_offset) {
        hak_module_visit_functions(module, rule->where, add_function, rule);
    } else if (strcmp(module->name, rule->where) == 0) {
        add(rule, module->base + rule->start, module->base + rule->end);
    }
}

// Add a rule. Overwrites both texts. Returns NULL, or what is wrong with them.
static const char *take_rule(char *where, char *ways)
{
    struct rule rule = {.where = NULL};
    if (!parse_where(where, &rule)) {
        return "names no place; write a function, module+0xoffset or module+0xstart-0xend";
    }
    if (!parse_ways(ways, &rule.ways)) {
        return "has an unknown way; the ways are short or long, uncached, unmap, huge, zero and "
               "align=16 to 32768";
    }
    hak_modules_visit(add_in_module, &rule);
    return rule.is_full ? "is one rule too many: at most 256 functions can have one" : NULL;
}

static const char *take_line(char *line)
{
    line[strcspn(line, "#")] = '\0';
    line = hak_option_trimmed(line);
    char *arrow = strstr(line, "->");
    if (*line == '\0') {
        return NULL;
    }
    if (arrow == NULL) {
        return "is not a rule; write 'where -> way'";
    }
    *arrow = '\0';
    return take_rule(hak_option_trimmed(line), arrow + 2);
}

static void take_text(const char *path, const char *text, size_t length)
{
    const char *end = text + length;
    for (size_t number = 1; text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const size_t line_length = (size_t)((stop != NULL ? stop : end) - text);
        char line[LINE_BYTES];
        const char *wrong = "is longer than 511 characters";
        if (line_length < sizeof line) {
            memcpy(line, text, line_length);
            line[line_length] = '\0';
            wrong = take_line(line);
        }
        if (wrong != NULL) {
            hak_say("%s:%z: %s", path, number, wrong);
        }
        text += line_length + 1;
    }
}

void hak_site_rules_read(void)
{
    const char *path = hak_option_file(&hak_options.site_rules);
    if (hak_load_relaxed(&hak_options.site_rules) == 0 || *path == '\0') {
        return;
    }
    size_t length;
    const char *text = hak_os_map_file(path, &length);
    if (text == NULL) {
        hak_say("the site rules %s cannot be read, or are empty; no rule applies", path);
        return;
    }
    take_text(path, text, length);
    hak_os_discard((void *)(uintptr_t)text, length);
}

bool hak_site_rule(const char *where, const char *ways)
{
    char where_text[LINE_BYTES];
    char ways_text[LINE_BYTES];
    if (strlen(where) >= sizeof where_text || strlen(ways) >= sizeof ways_text ||
        !hak_nested_may_wait()) {
        return false;
    }
    memcpy(where_text, where, strlen(where) + 1);
    memcpy(ways_text, ways, strlen(ways) + 1);
    return take_rule(hak_option_trimmed(where_text), ways_text) == NULL;
}
