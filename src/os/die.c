// die.c -- the one way to die.
#include <stdarg.h>
#include <stddef.h>

#include "base/check.h"
#include "base/format.h"
#include "os/os.h"

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
    char line[256] = "hakmem: "; // one line of a terminal or two; never a reason to allocate
    const size_t prefix = sizeof "hakmem: " - 1;
    va_list list;
    va_start(list, format);
    size_t length = prefix + hak_format_list(line + prefix, sizeof line - prefix - 1, format, list);
    va_end(list);
    line[length++] = '\n';
    hak_os_print(line, length);
    hak_end();
}
