// unheeded.c -- the functions of os.h that do not report a refusal, made of those that do.
#include "os/os.h"
#include "os/say.h"

void hak_os_discard(void *start, size_t bytes)
{
    HAK_UNHEEDED(hak_os_unmap(start, bytes) || hak_os_purge(start, bytes)); // nothing else can go
}

void hak_os_append_or_say(const char *path, const char *text, size_t length)
{
    if (!hak_os_append(path, text, length)) {
        hak_say("%s cannot be written to", path);
    }
}
