// preload only
//
// A program defines all ten functions that the C library's manual lists for a replacement. Other functions that take blocks work
// on the program's blocks: reallocarray, free_sized, the C library itself.
#include "../support/promise.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdalign.h>

enum { POOL_BYTES = 1 << 24, HEAD = 16 };
static alignas(4096) char pool[POOL_BYTES];
static size_t used;
static size_t freed;

static size_t *head_of(void *block)
{
    return (size_t *)(void *)((char *)block - HEAD);
}

void *memalign(size_t alignment, size_t bytes)
{
    alignment = alignment < HEAD ? HEAD : alignment;
    const size_t at = (used + HEAD + alignment - 1) & ~(alignment - 1);
    if (bytes > sizeof pool - at) {
        return NULL;
    }
    used = at + bytes;
    *head_of(pool + at) = bytes;
    return pool + at;
}

void *malloc(size_t bytes)
{
    return memalign(HEAD, bytes);
}

void free(void *block)
{
    freed += block != NULL;
}

void *calloc(size_t count, size_t bytes)
{
    return malloc(count * bytes); // the pool is zeros
}

size_t malloc_usable_size(void *block)
{
    return block != NULL ? *head_of(block) : 0;
}

void *realloc(void *block, size_t bytes)
{
    void *other = malloc(bytes);
    const size_t old = malloc_usable_size(block);
    if (block != NULL && other != NULL) {
        memcpy(other, block, old < bytes ? old : bytes);
        free(block);
    }
    return other;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    *block = memalign(alignment, bytes);
    return 0;
}

void *valloc(size_t bytes)
{
    return memalign(4096, bytes);
}

void *pvalloc(size_t bytes)
{
    return memalign(4096, (bytes + 4095) & ~(size_t)4095);
}

static void expect_own(const void *block, const char *what)
{
    const char *at = block;
    HT_CHECK(at >= pool && at < pool + sizeof pool,
             "%s gave %p, which is not the program's",
             what,
             block);
}

int main(void)
{
    HT_CHECK(ht_is_any() || dlsym(RTLD_DEFAULT, "hak_version") != NULL, "hakmem is not there");
    char *text = ht_hide(strdup("text"));
    expect_own(text, "strdup");
    text = reallocarray(text, 10, 10);
    expect_own(text, "reallocarray");
    HT_CHECK(strcmp(text, "text") == 0, "reallocarray lost the content");
    const volatile size_t much = SIZE_MAX / 2;
    HT_CHECK(reallocarray(text, much, 4) == NULL, "reallocarray overflows");
    void (*sized)(void *, size_t);
    void (*aligned)(void *, size_t, size_t);
    *(void **)&sized = dlsym(RTLD_DEFAULT, "free_sized"); // newer than some C libraries
    *(void **)&aligned = dlsym(RTLD_DEFAULT, "free_aligned_sized");
    const size_t before = freed;
    if (sized != NULL && aligned != NULL) {
        sized(text, 100);
        aligned(memalign(64, 100), 64, 100);
        HT_CHECK(freed == before + 2, "free_sized has not called the program's free");
    }
    return 0;
}
