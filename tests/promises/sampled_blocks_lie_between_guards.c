// env: HAKMEM_GUARD_SAMPLE=1 HAKMEM_CHECK=1
// preload only
// with features
//
// A touch of memory behind a sampled block, or of the block after its free, faults; and the report
// says which block it is, who allocated it, and who freed it. Otherwise it is like any other block.
#include "../support/mistake.h"

static void overflow(void)
{
    ht_touch((char *)ht_hide(malloc(96)) + 96);
}

static void use_after_free(void)
{
    char *block = ht_hide(malloc(100));
    free(block);
    ht_touch(block + 10);
}

static void double_free(void)
{
    char *block = ht_hide(malloc(100));
    free(block);
    free(ht_hide(block));
}

static void underflow(void)
{
    char *block = ht_hide(malloc(100));
    ht_touch(block - 3);
    free(block);
}

static void interior(void)
{
    free((char *)ht_hide(malloc(100)) + 8);
}

static void handler(int number)
{
    _exit(number == SIGSEGV ? 42 : 1);
}

static void goes_on_as_others_do(void)
{
    for (size_t size = 0; size < 5000; size += 7) {
        char *block = ht_hide(malloc(size));
        HT_CHECK(block != NULL && (uintptr_t)block % 16 == 0, "malloc(%zu)", size);
        HT_CHECK(malloc_usable_size(block) >= size, "malloc(%zu) has less", size);
        memset(block, 1, size);
        block = ht_hide(realloc(block, size + 50));
        HT_CHECK(size == 0 || block[size - 1] == 1, "realloc of %zu", size);
        char *aligned = ht_hide(aligned_alloc(256, 512));
        HT_CHECK((uintptr_t)aligned % 256 == 0, "aligned_alloc gave %p", (void *)aligned);
        free(aligned);
        free(block);
    }
}

int main(void)
{
    ht_start();
    goes_on_as_others_do();
    const char *text = ht_said_by(overflow, SIGSEGV);
    ht_expect_said(text, "hakmem: overflow: ");
    ht_expect_said(text, "96 bytes after the start of ");
    ht_expect_said(text, "allocated by thread ");
    ht_expect_said(text, "promise_sampled_blocks_lie_between_guards+0x");
    text = ht_said_by(use_after_free, SIGSEGV);
    ht_expect_said(text, "hakmem: use after free: ");
    ht_expect_said(text, "10 bytes after the start of ");
    ht_expect_said(text, "freed by thread ");
    ht_expect_said(ht_said_by(double_free, SIGABRT), "hakmem: double free: ");
    ht_expect_said(ht_said_by(underflow, SIGABRT), "hakmem: underflow: ");
    ht_expect_said(ht_said_by(interior, SIGABRT), "hakmem: invalid free: ");
    // The program's own handler gets the fault alone.
    signal(SIGSEGV, handler);
    pid_t child = fork();
    if (child == 0) {
        overflow();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    HT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42, "status %x", (unsigned)status);
    return 0;
}
