// env: HAKMEM_PRESSURE=always
// preload only
// with features
// In a program with a malloc of its own ours has no heap. Features that always run find none, and do no harm.
#include "../support/promise.h"

enum { POOL_BYTES = 1 << 20, ROW = 16, SLEEP_MS = 500 };
static _Alignas(ROW) char pool[POOL_BYTES];
static _Atomic(size_t) used;

void *malloc(size_t bytes)
{
    const size_t row = bytes < POOL_BYTES ? (bytes + ROW) / ROW * ROW : POOL_BYTES;
    const size_t at = used;
    used = at + row <= POOL_BYTES ? at + row : at;
    return at + row <= POOL_BYTES ? pool + at : NULL;
}

void *calloc(size_t count, size_t bytes)
{
    return malloc(count * bytes); // the pool is zeros
}

void *realloc(void *block, size_t bytes)
{
    void *other = malloc(bytes);
    const char *end = pool + POOL_BYTES;
    if (block != NULL && other != NULL) {
        const size_t left = (size_t)(end - (char *)block);
        memmove(other, block, bytes < left ? bytes : left);
    }
    return other;
}

void free(void *block)
{
    (void)block;
}

int main(void)
{
    HT_CHECK(ht_is_any() || dlsym(RTLD_DEFAULT, "hak_version") != NULL, "hakmem is not there");
    nanosleep(&(struct timespec){.tv_nsec = SLEEP_MS * 1000000L}, NULL); // a few ticks of 100 ms
    return 0;
}
