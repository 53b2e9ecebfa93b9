// noop_malloc.c -- an allocator that does nothing: the least that calls can cost.
//
// Owns      two static areas, handed out round and round; free is empty.
// Threads   one.
// Fails     returns NULL for a block larger than the area.
//
// Preloaded under a program that holds few blocks at a time, such as bench_tiny, it shows the
// price of the calls alone. A program that holds more than the area gets blocks that overlap.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    ALIGNMENT = 16,
    // Small blocks come from an area that stays in the first cache level.
    SMALL_BYTES_MAX = 256,
    SMALL_AREA_BYTES = 16 << 10,
    LARGE_AREA_BYTES = 64 << 20,
};

// Behind the small area is room for a block that starts on its last bytes.
static _Alignas(4096) unsigned char small_area[SMALL_AREA_BYTES + SMALL_BYTES_MAX];
static _Alignas(4096) unsigned char large_area[LARGE_AREA_BYTES];
static size_t small_used;
static size_t large_used;

void *malloc(size_t bytes);
void free(void *block);
void *calloc(size_t count, size_t bytes);
void *realloc(void *block, size_t bytes);
void *aligned_alloc(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes);
int posix_memalign(void **block, size_t alignment, size_t bytes);

static void *large_take(size_t alignment, size_t bytes)
{
    if (alignment > LARGE_AREA_BYTES || bytes > LARGE_AREA_BYTES - alignment) {
        errno = ENOMEM;
        return NULL;
    }
    if (large_used > LARGE_AREA_BYTES - alignment - bytes) {
        large_used = 0;
    }
    size_t gap = (size_t)(0 - (uintptr_t)(large_area + large_used)) & (alignment - 1);
    unsigned char *block = large_area + large_used + gap;
    large_used += gap + bytes;
    return block;
}

void *malloc(size_t bytes)
{
    if (bytes > SMALL_BYTES_MAX) {
        return large_take(ALIGNMENT, bytes);
    }
    size_t begin = small_used;
    small_used = (begin + bytes + ALIGNMENT - 1) & (SMALL_AREA_BYTES - ALIGNMENT);
    return small_area + begin;
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t bytes)
{
    if (bytes != 0 && count > SIZE_MAX / bytes) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = malloc(count * bytes);
    return block != NULL ? memset(block, 0, count * bytes) : NULL;
}

// The old size is unknown: copies as many bytes as the area has behind the old block.
void *realloc(void *block, size_t bytes)
{
    void *moved = malloc(bytes);
    if (block == NULL || moved == NULL) {
        return moved;
    }
    uintptr_t old = (uintptr_t)block;
    uintptr_t small_begin = (uintptr_t)small_area;
    uintptr_t end = old - small_begin < sizeof small_area
                        ? small_begin + sizeof small_area
                        : (uintptr_t)large_area + LARGE_AREA_BYTES;
    return memmove(moved, block, bytes < end - old ? bytes : end - old);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return large_take(alignment < ALIGNMENT ? ALIGNMENT : alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    void *aligned = aligned_alloc(alignment, bytes);
    if (aligned == NULL) {
        return ENOMEM;
    }
    *block = aligned;
    return 0;
}
