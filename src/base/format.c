// format.c -- see format.h.
#include "base/format.h"

struct sink {
    char *text;
    size_t length;
    size_t room; // without the final 0
};

static void sink_put(struct sink *sink, char c)
{
    if (sink->length < sink->room) {
        sink->text[sink->length++] = c;
    }
}

static void sink_text(struct sink *sink, const char *text)
{
    for (; *text != '\0'; text++) {
        sink_put(sink, *text);
    }
}

static void sink_number(struct sink *sink, uint64_t value, unsigned base)
{
    char digits[20]; // 2^64 has 20 decimal digits
    unsigned count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    while (count > 0) {
        sink_put(sink, digits[--count]);
    }
}

static void sink_signed(struct sink *sink, int value)
{
    if (value < 0) {
        sink_put(sink, '-');
    }
    sink_number(sink, value < 0 ? 0 - (uint64_t)(int64_t)value : (uint64_t)value, 10);
}

size_t hak_format_list(char *text, size_t bytes, const char *format, va_list list)
{
    struct sink sink = {text, 0, bytes - 1};
    for (const char *f = format; *f != '\0'; f++) {
        if (*f != '%') {
            sink_put(&sink, *f);
            continue;
        }
        switch (*++f) {
        case 's':
            sink_text(&sink, va_arg(list, const char *));
            break;
        case 'u':
            sink_number(&sink, va_arg(list, unsigned), 10);
            break;
        case 'z':
            sink_number(&sink, va_arg(list, size_t), 10);
            break;
        case 'd':
            sink_signed(&sink, va_arg(list, int));
            break;
        case 'p':
            sink_text(&sink, "0x");
            sink_number(&sink, (uintptr_t)va_arg(list, void *), 16);
            break;
        default:
            sink_put(&sink, *f);
            break;
        }
    }
    text[sink.length] = '\0';
    return sink.length;
}

size_t hak_format(char *text, size_t bytes, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t length = hak_format_list(text, bytes, format, list);
    va_end(list);
    return length;
}
