// glibc only: musl has none
// preload only
// With libc_malloc_debug.so.0 preloaded before us, mtrace, mcheck and MALLOC_CHECK_ work as without us: that library
// looks for headers in front of its blocks, and finds them.
#include "../support/promise.h"

#include <mcheck.h>

#define DEBUGGING "libc_malloc_debug.so.0"

static void check(void)
{
    mtrace();
    for (size_t size = 1; size < 8 * HT_MIB; size = size * 5 / 2 + 1) {
        char *block = ht_hide(malloc(size));
        HT_CHECK(malloc_usable_size(block) >= size && malloc_usable_size(block) < 2 * size + 4096,
                 "a block of %zu has %zu bytes",
                 size,
                 malloc_usable_size(block));
        memset(block, 1, malloc_usable_size(block));
        block = realloc(block, 3 * size);
        HT_CHECK(block[size - 1] == 1 && malloc_usable_size(block) >= 3 * size, "realloc");
        memset(block, 2, malloc_usable_size(block));
        free(block);
        block = memalign(256, size);
        HT_CHECK((uintptr_t)block % 256 == 0, "a block at %p", (void *)block);
        memset(block, 3, malloc_usable_size(block));
        free(block);
        block = calloc(size, 2);
        HT_CHECK(block[2 * size - 1] == 0, "calloc gave no zeros");
        free(block);
    }
    muntrace();
    free(reallocarray(NULL, 10, 100));
}

static void run(const char *program, const char *more)
{
    const pid_t child = fork();
    HT_CHECK(child >= 0, "no child: errno %d", errno);
    if (child == 0) {
        char preload[4096];
        snprintf(preload, sizeof preload, DEBUGGING " %s", getenv("HAKMEM_LIB"));
        setenv("LD_PRELOAD", preload, 1);
        putenv((char *)(uintptr_t)more);
        execl(program, program, "checks", (char *)NULL);
        _exit(HT_BROKEN);
    }
    ht_wait_child(child, more);
}

int main(int count, char **arguments)
{
    if (count > 1) {
        check();
        return 0;
    }
    ht_start();
    Dl_info libc;
    char path[4096];
    void *function = dlsym(RTLD_DEFAULT, "getpid");
    HT_CHECK(dladdr(function, &libc) != 0, "the C library is nowhere");
    const char *name = strrchr(libc.dli_fname, '/');
    snprintf(path, sizeof path, "%.*s/" DEBUGGING, (int)(name - libc.dli_fname), libc.dli_fname);
    if (access(path, R_OK) != 0) {
        HT_SKIP("there is no %s", path);
    }
    run(arguments[0], "NOTHING=1");
    run(arguments[0], "MALLOC_TRACE=/dev/null");
    run(arguments[0], "MALLOC_CHECK_=3");
    run(arguments[0], "GLIBC_TUNABLES=glibc.malloc.check=3");
    return 0;
}
