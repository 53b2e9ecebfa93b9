// module.c -- see module.h.
#include "os/module.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/syscall.h"

// A file that is read a character at a time.
struct stream {
    long file;
    long got;
    long at;
    char text[512];
};

enum { END = -1 };

static int next(struct stream *stream)
{
    if (stream->at >= stream->got) {
        stream->at = 0;
        stream->got =
            hak_syscall(SYS_read, stream->file, (long)stream->text, sizeof stream->text, 0, 0, 0);
    }
    return stream->got > 0 ? (unsigned char)stream->text[stream->at++] : END;
}

// A hexadecimal number, and the character behind it.
static uintptr_t take_number(struct stream *stream, int *behind)
{
    uintptr_t value = 0;
    for (;;) {
        const int c = next(stream);
        if (c >= '0' && c <= '9') {
            value = value << 4 | (uintptr_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            value = value << 4 | (uintptr_t)(c - 'a' + 10);
        } else {
            *behind = c;
            return value;
        }
    }
}

static int skip_to(struct stream *stream, char wanted)
{
    int c;
    do {
        c = next(stream);
    } while (c != wanted && c != '\n' && c != END);
    return c;
}

struct mapping {
    uintptr_t start;
    uintptr_t end;
    uintptr_t offset;
    size_t path_bytes; // length of its path, even if it did not fit
};

// "start-end rights offset device inode   path"
static bool take_line(
    struct stream *stream, uintptr_t address, struct mapping *mapping, char *path, size_t room)
{
    int c;
    mapping->start = take_number(stream, &c);
    mapping->end = c == '-' ? take_number(stream, &c) : 0;
    c = skip_to(stream, ' '); // the rights
    mapping->offset = c == ' ' ? take_number(stream, &c) : 0;
    c = c == ' ' ? skip_to(stream, ' ') : c; // the device
    c = c == ' ' ? skip_to(stream, ' ') : c; // the inode
    while (c == ' ') {
        c = next(stream);
    }
    mapping->path_bytes = 0;
    const bool is_it = address >= mapping->start && address < mapping->end;
    const bool has_path = is_it && c == '/';
    for (; c != '\n' && c != END; c = next(stream)) {
        if (has_path && mapping->path_bytes < room) {
            path[mapping->path_bytes] = (char)c;
        }
        mapping->path_bytes += has_path;
    }
    return is_it;
}

static bool find_in(
    const char *maps, uintptr_t address, struct mapping *mapping, char *path, size_t room)
{
    struct stream stream = {0};
    stream.file = hak_syscall(SYS_openat, AT_FDCWD, (long)maps, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (stream.file < 0) {
        return false;
    }
    bool is_found = false;
    do {
        is_found = take_line(&stream, address, mapping, path, room);
    } while (!is_found && stream.got > 0);
    hak_syscall_close(stream.file);
    return is_found && mapping->path_bytes > 0;
}

// The first file is empty once the first thread of the process has ended; an emulator (qemu) shows its mappings only there.
static bool find(uintptr_t address, struct mapping *mapping, char *path, size_t room)
{
    return find_in("/proc/self/maps", address, mapping, path, room) ||
           find_in("/proc/thread-self/maps", address, mapping, path, room);
}

size_t hak_module_path(uintptr_t address, char *path, size_t bytes)
{
    struct mapping mapping;
    return find(address, &mapping, path, bytes) ? mapping.path_bytes : 0;
}

void hak_module_of(uintptr_t address, struct hak_module *module)
{
    struct mapping mapping;
    const size_t room = sizeof module->path - 1;
    *module = (struct hak_module){.path = "?", .offset = address};
    if (find(address, &mapping, module->path, room)) {
        const size_t length = mapping.path_bytes < room ? mapping.path_bytes : room;
        module->path[length] = '\0';
        module->offset = address - mapping.start + mapping.offset;
    }
}
