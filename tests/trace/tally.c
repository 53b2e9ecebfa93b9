// tally.c -- a second, independent record of malloc's calls: one line of 40 bytes each, appended to
// the file that TALLY names.
//
// Preloaded in front of the recorder it sees the program's calls; preloaded as the allocator of a
// replay it sees the replay's calls. Slow, and simple enough to be right.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct line {
    int32_t thread;
    int32_t kind; // an enum event_kind of record/channel.h
    uint64_t address;
    uint64_t size;
    uint64_t alignment;
    int32_t process;
    int32_t error;
};

enum { MALLOC = 1, CALLOC, ALIGNED, FREE, REALLOC_FROM, REALLOC_TO };

void *memalign(size_t alignment, size_t bytes);
size_t malloc_usable_size(void *block);

static void put(int kind, const void *block, size_t bytes, size_t alignment)
{
    static int file;
    if (file == 0) {
        const char *path = getenv("TALLY");
        file = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    }
    const struct line line = {.thread = (int32_t)syscall(SYS_gettid),
                              .kind = kind,
                              .address = (uintptr_t)block,
                              .size = bytes,
                              .alignment = alignment,
                              .process = getpid()};
    if (file > 0 && write(file, &line, sizeof line) != sizeof line) {
        abort();
    }
}

#define NEXT(name)                                   \
    static __typeof__(name) *next;                   \
    if (next == NULL) {                              \
        *(void **)(&next) = dlsym(RTLD_NEXT, #name); \
    }

void *malloc(size_t bytes)
{
    NEXT(malloc);
    void *block = next(bytes);
    put(MALLOC, block, bytes, 0);
    return block;
}

void *calloc(size_t count, size_t bytes)
{
    NEXT(calloc);
    void *block = next(count, bytes);
    put(CALLOC, block, count * bytes, 0);
    return block;
}

void free(void *block)
{
    NEXT(free);
    if (block != NULL) {
        put(FREE, block, 0, 0);
    }
    next(block);
}

void *realloc(void *block, size_t bytes)
{
    NEXT(realloc);
    if (block != NULL) {
        put(REALLOC_FROM, block, 0, 0);
    }
    void *moved = next(block, bytes);
    put(block != NULL ? REALLOC_TO : MALLOC, moved, bytes, 0);
    return moved;
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    NEXT(posix_memalign);
    const int error = next(block, alignment, bytes);
    put(ALIGNED, error == 0 ? *block : NULL, bytes, alignment);
    return error;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    NEXT(aligned_alloc);
    void *block = next(alignment, bytes);
    put(ALIGNED, block, bytes, alignment);
    return block;
}

void *memalign(size_t alignment, size_t bytes)
{
    NEXT(memalign);
    void *block = next(alignment, bytes);
    put(ALIGNED, block, bytes, alignment);
    return block;
}

size_t malloc_usable_size(void *block)
{
    NEXT(malloc_usable_size);
    return next(block);
}
