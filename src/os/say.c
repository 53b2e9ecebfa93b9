// say.c -- see say.h; and the one way to die (base/check.h).
#include "os/say.h"

#include "base/check.h"
#include "base/format.h"
#include "os/os.h"

// A line may quote anything that a user has set: a line feed in it must not begin a line that looks like ours, nor an escape sequence
// reach the terminal.
static void hide_controls(char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        *text = c < ' ' || c == 127 ? '?' : *text;
    }
}

void hak_say_list(const char *format, va_list list)
{
    char line[512] = "hakmem: "; // a few lines of a terminal; nothing is allocated
    const size_t prefix = sizeof "hakmem: " - 1;
    size_t length = prefix + hak_format_list(line + prefix, sizeof line - prefix - 1, format, list);
    hide_controls(line);
    line[length++] = '\n';
    hak_os_print(line, length);
}

void hak_say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    hak_say_list(format, list);
    va_end(list);
}

static void (*last_step)(void);

void hak_before_end(void (*step)(void))
{
    last_step = step;
}

void hak_end(void)
{
    if (last_step != NULL) {
        last_step();
    }
    hak_os_abort();
}

void hak_die(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    hak_say_list(format, list);
    va_end(list);
    hak_end();
}
