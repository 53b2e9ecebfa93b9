// figures_text.c -- the figures as JSON and as a table.
#include <stdarg.h>
#include <string.h>

#include "base/format.h"
#include "base/timing.h"
#include "os/os.h"
#include "report/figures.h"

// A text. What does not fit is counted, too.
struct text {
    char *start;
    size_t bytes;
    size_t length; // with enough room
};

static void add(struct text *text, const char *format, ...)
{
    char piece[160];
    va_list list;
    va_start(list, format);
    const size_t length = hak_format_list(piece, sizeof piece, format, list);
    va_end(list);
    if (text->length < text->bytes) {
        const size_t room = text->bytes - text->length - 1; // for the final 0
        const size_t part = length < room ? length : room;
        memcpy(text->start + text->length, piece, part);
        text->start[text->length + part] = '\0';
    }
    text->length += length;
}

static bool is_used(const struct hak_class_figures *figures)
{
    return figures->slabs_made != 0;
}

static void add_class_json(struct text *text,
                           unsigned size_class,
                           const struct hak_class_figures *f)
{
    add(text, "{\"bytes\":%u", (unsigned)hak_classes[size_class].bytes);
#define HAK_FIGURE(name) add(text, ",\"%s\":%z", #name, (size_t)f->name);
    HAK_CLASS_FIGURES(HAK_FIGURE)
#undef HAK_FIGURE
    add(text, "}");
}

static uint64_t timing_count(const struct hak_timing *timing)
{
    uint64_t count = 0;
    for (unsigned step = 0; step < HAK_TIMING_STEPS; step++) {
        count += hak_load_relaxed(&timing->times[step]);
    }
    return count;
}

static void add_timing_json(struct text *text, unsigned path)
{
    const struct hak_timing *timing = &hak_timings[path];
    add(text,
        "{\"name\":\"%s\",\"cycles\":%z,\"times\":[",
        hak_timing_names[path],
        (size_t)hak_load_relaxed(&timing->cycles));
    for (unsigned step = 0; step < HAK_TIMING_STEPS; step++) {
        add(text, "%s%z", step > 0 ? "," : "", (size_t)hak_load_relaxed(&timing->times[step]));
    }
    add(text, "]}");
}

// With option debug_timing.
static void add_timings_json(struct text *text)
{
    bool is_first = true;
    for (unsigned path = 0; path < HAK_TIMING_PATHS; path++) {
        if (timing_count(&hak_timings[path]) > 0) {
            add(text, "%s", is_first ? ",\"timings\":[" : ",");
            add_timing_json(text, path);
            is_first = false;
        }
    }
    add(text, "%s", is_first ? "" : "]");
}

size_t hak_figures_json(const struct hak_figures *figures, char *start, size_t bytes)
{
    struct text text = {start, bytes, 0};
    add(&text, "{\"release\":\"%s\",\"process\":%d", HAKMEM_VERSION, hak_os_process_id());
    add(&text, ",\"walked\":%s", figures->is_walked ? "true" : "false");
#define HAK_FIGURE(name) add(&text, ",\"%s\":%z", #name, (size_t)figures->totals.name);
    HAK_TOTALS(HAK_FIGURE)
#undef HAK_FIGURE
#define HAK_FIGURE(name) add(&text, ",\"%s\":%z", #name, (size_t)figures->name);
    HAK_COUNTERS(HAK_FIGURE)
#undef HAK_FIGURE
    add(&text, ",\"classes\":[");
    const char *between = "";
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        if (is_used(&figures->classes[size_class])) {
            add(&text, "%s", between);
            add_class_json(&text, size_class, &figures->classes[size_class]);
            between = ",";
        }
    }
    add(&text, "]");
    add_timings_json(&text);
    add(&text, "}\n");
    return text.length;
}

// Add a value, on the right of a column that is as wide as `title`, or as most numbers.
static void add_column(struct text *text, const char *title, const char *value)
{
    const size_t title_width = strlen(title) + 2;
    const size_t width = title_width < 12 ? 12 : title_width;
    for (size_t i = strlen(value); i < width; i++) {
        add(text, " ");
    }
    add(text, "%s", value);
}

static void add_number(struct text *text, const char *title, uint64_t value)
{
    char digits[24];
    hak_format(digits, sizeof digits, "%z", (size_t)value);
    add_column(text, title, digits);
}

static void add_line(struct text *text, const char *name, uint64_t value)
{
    add_number(text, "peak_mapped_bytes", value);
    add(text, "  %s\n", name);
}

// A row for each path that was taken: how often, the average of its cycles, and a bound that the slowest was below.
static void add_timings(struct text *text)
{
    const char *title = "       times     average     slowest  cycles of\n";
    for (unsigned path = 0; path < HAK_TIMING_PATHS; path++) {
        const struct hak_timing *timing = &hak_timings[path];
        const uint64_t count = timing_count(timing);
        unsigned slowest = HAK_TIMING_STEPS;
        while (slowest > 0 && hak_load_relaxed(&timing->times[slowest - 1]) == 0) {
            slowest--;
        }
        if (count > 0) {
            add(text, "%s", title);
            title = "";
            add_number(text, "times", count);
            add_number(text, "average", hak_load_relaxed(&timing->cycles) / count);
            add_number(text, "slowest", UINT64_C(1) << slowest);
            add(text, "  %s\n", hak_timing_names[path]);
        }
    }
}

size_t hak_figures_text(const struct hak_figures *figures, char *start, size_t bytes)
{
    struct text text = {start, bytes, 0};
    add(&text, "hakmem %s\n", HAKMEM_VERSION);
#define HAK_FIGURE(name) add_line(&text, #name, figures->totals.name);
    HAK_TOTALS(HAK_FIGURE)
#undef HAK_FIGURE
#define HAK_FIGURE(name) add_line(&text, #name, figures->name);
    HAK_COUNTERS(HAK_FIGURE)
#undef HAK_FIGURE
    add_column(&text, "block_bytes", "block_bytes");
#define HAK_FIGURE(name) add_column(&text, #name, #name);
    HAK_CLASS_FIGURES(HAK_FIGURE)
#undef HAK_FIGURE
    add(&text, "\n");
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        const struct hak_class_figures *of_class = &figures->classes[size_class];
        if (is_used(of_class)) {
            add_number(&text, "block_bytes", hak_classes[size_class].bytes);
#define HAK_FIGURE(name) add_number(&text, #name, of_class->name);
            HAK_CLASS_FIGURES(HAK_FIGURE)
#undef HAK_FIGURE
            add(&text, "\n");
        }
    }
    add_timings(&text);
    return text.length < bytes ? text.length : bytes - 1;
}
