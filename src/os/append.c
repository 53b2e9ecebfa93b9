// append.c -- what is written to a file of the program's choice, and cannot be.
#include "base/format.h"
#include "os/os.h"

void hak_os_append_or_say(const char *path, const char *text, size_t length)
{
    char line[256];
    if (!hak_os_append(path, text, length)) {
        hak_os_print(line,
                     hak_format(line, sizeof line, "hakmem: %s cannot be written to\n", path));
    }
}
