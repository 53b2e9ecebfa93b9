// die.c -- the one way to die.
#include <stdarg.h>

#include "base/check.h"
#include "os/os.h"
#include "os/say.h"

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
