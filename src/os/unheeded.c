// unheeded.c -- the functions of os.h for callers to whom a refusal makes no difference; of those that tell it.
#include "base/format.h"
#include "os/os.h"

void hak_os_discard(void *start, size_t bytes)
{
    HAK_UNHEEDED(hak_os_unmap(start, bytes) || hak_os_purge(start, bytes)); // what else could go?
}

void hak_os_append_or_say(const char *path, const char *text, size_t length)
{
    char line[256];
    if (!hak_os_append(path, text, length)) {
        hak_os_print(line,
                     hak_format(line, sizeof line, "hakmem: %s cannot be written to\n", path));
    }
}
