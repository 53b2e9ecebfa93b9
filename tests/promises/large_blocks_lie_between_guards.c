// with features
// env: HAKMEM_GUARD_LARGE=1
// preload only
//
// A block above 32 KiB has every requested byte and, except for a few bytes of its last page, no more:
// memory before and behind it cannot be touched, nor can the block itself after its free.
#include "../support/promise.h"

#include <signal.h>
#include <sys/resource.h>

static void expect_fault(volatile char *address, const char *what)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        *address = 1;
        _exit(0);
    }
    int status = 0;
    HT_CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child: errno %d", errno);
    HT_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "%s can be written", what);
}

int main(void)
{
    ht_start();
    for (size_t size = 33 * HT_KIB; size < 64 * HT_MIB; size = size * 3 + 1) {
        char *block = ht_hide(malloc(size));
        HT_CHECK(block != NULL && malloc_usable_size(block) == size, "malloc(%zu)", size);
        memset(block, 1, size);
        expect_fault(block + size + 16, "what lies behind it");
        expect_fault(block - 4096, "what lies before it");
        block = ht_hide(realloc(block, size + 100));
        HT_CHECK(block[0] == 1 && block[size - 1] == 1, "realloc lost something of %zu", size);
        free(block);
        expect_fault(block, "a freed block");
    }
    for (size_t alignment = 16; alignment <= 16 * HT_MIB; alignment *= 2) {
        char *block = ht_hide(aligned_alloc(alignment, 100000));
        HT_CHECK(block != NULL && (uintptr_t)block % alignment == 0, "alignment %zu", alignment);
        memset(block, 1, 100000);
        free(block);
    }
    return 0;
}
