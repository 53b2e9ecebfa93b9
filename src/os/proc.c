// proc.c -- see proc.h, and os.h for hak_os_has_one_task.
#include "os/proc.h"

#include <string.h>

#include "base/number.h"
#include "os/os.h"

enum { TEXT_BYTES = 2048 }; // on the stack; the numbers that we look for are in this part of a file

uint64_t hak_proc_number(const char *path, const char *name, uint64_t otherwise)
{
    char text[TEXT_BYTES];
    return hak_os_read_file(path, text, sizeof text) > 0 ? hak_number_behind(text, name, otherwise)
                                                         : otherwise;
}

bool hak_os_has_one_task(void)
{
    char text[2 * TEXT_BYTES]; // the file takes a third, unless the process is in many groups
    hak_os_read_file("/proc/self/status", text, sizeof text);
    return strstr(text, "\nThreads:\t1\n") != NULL;
}
