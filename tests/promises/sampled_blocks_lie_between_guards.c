// env: HAKMEM_GUARD_SAMPLE=1 HAKMEM_CHECK=1
// preload only
//
// A sampled block faults when what lies behind it is touched, or the block after it was freed; and the report
// says which block it is, who allocated it, and who freed it. All else goes on as with other blocks.
#include "../support/promise.h"

#include <signal.h>
#include <sys/resource.h>

enum { TEXT_BYTES = 8192 };

// What a child that makes a mistake says on stderr before it dies of `signal_number`.
static const char *said_by(void (*mistake)(void), int signal_number)
{
    static char text[TEXT_BYTES];
    int ends[2];
    size_t length = 0;
    int status = 0;
    HT_CHECK(pipe(ends) == 0, "no pipe: errno %d", errno);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(ends[1], STDERR_FILENO);
        mistake();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + length, sizeof text - 1 - length)) > 0;) {
        length += (size_t)got;
    }
    close(ends[0]);
    text[length] = '\0';
    HT_CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child: errno %d", errno);
    HT_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal_number,
             "status %x instead of signal %d: '%s'",
             (unsigned)status,
             signal_number,
             text);
    return text;
}

static void expect(const char *text, const char *part)
{
    HT_CHECK(strstr(text, part) != NULL, "'%s' is not in: %s", part, text);
}

static void touch(char *address)
{
    *(volatile char *)ht_hide(address) = 1;
}

static void overflow(void)
{
    touch((char *)ht_hide(malloc(96)) + 96);
}

static void use_after_free(void)
{
    char *block = ht_hide(malloc(100));
    free(block);
    touch(block + 10);
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
    touch(block - 3);
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
    const char *text = said_by(overflow, SIGSEGV);
    expect(text, "hakmem: overflow: ");
    expect(text, "96 bytes behind the start of ");
    expect(text, "allocated by thread ");
    expect(text, "promise_sampled_blocks_lie_between_guards+0x");
    text = said_by(use_after_free, SIGSEGV);
    expect(text, "hakmem: use after free: ");
    expect(text, "10 bytes behind the start of ");
    expect(text, "freed by thread ");
    expect(said_by(double_free, SIGABRT), "hakmem: double free: ");
    expect(said_by(underflow, SIGABRT), "hakmem: underflow: ");
    expect(said_by(interior, SIGABRT), "hakmem: invalid free: ");
    // The program's own handler has the fault for itself.
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
