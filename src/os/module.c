// module.c -- see module.h.
#include "os/module.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/syscall.h"

static uintptr_t hexadecimal(const char **text)
{
    uintptr_t value = 0;
    for (;; (*text)++) {
        const char c = **text;
        if (c >= '0' && c <= '9') {
            value = value << 4 | (uintptr_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            value = value << 4 | (uintptr_t)(c - 'a' + 10);
        } else {
            return value;
        }
    }
}

// "start-end rights offset device inode   path"
static bool line_has(const char *line, uintptr_t address, struct hak_module *module)
{
    const uintptr_t start = hexadecimal(&line);
    line++;
    const uintptr_t end = hexadecimal(&line);
    if (address < start || address >= end || strlen(line) < 6) {
        return false;
    }
    line += 6;
    const uintptr_t offset = hexadecimal(&line);
    const char *path = strchr(line, '/');
    if (path != NULL) {
        const size_t length = strlen(path);
        const size_t kept = length < sizeof module->path ? length : sizeof module->path - 1;
        memcpy(module->path, path, kept);
        module->path[kept] = '\0';
        module->offset = address - start + offset;
    }
    return true;
}

void hak_module_of(uintptr_t address, struct hak_module *module)
{
    char line[512];
    char text[1024];
    size_t length = 0;
    *module = (struct hak_module){.path = "?", .offset = address};
    const long file =
        hak_syscall(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0) {
        return;
    }
    bool is_found = false;
    long got;
    while (!is_found && (got = hak_syscall(SYS_read, file, (long)text, sizeof text, 0, 0, 0)) > 0) {
        for (long i = 0; i < got && !is_found; i++) {
            if (text[i] != '\n') {
                line[length] = text[i];
                length += length < sizeof line - 1;
                continue;
            }
            line[length] = '\0';
            length = 0;
            is_found = line_has(line, address, module);
        }
    }
    hak_close(file);
}
