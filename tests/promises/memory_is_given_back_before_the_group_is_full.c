// not secure: large blocks are unmapped at once, so nothing waits
// serial
// native only
// preload only
// with features
// With option pressure: free memory that could wait for an hour goes back when the control group comes near its
// limit, whoever uses the memory. With pressure_ledger: a file tells what the heap consisted of before the kernel
// killed the process.
#include "../support/control_group.h"
#include "../support/memory.h"

#include <signal.h>

#define LIMIT       "67108864"
#define LIMIT_BYTES (64 * HT_MIB)

enum { BLOCKS = 240, BLOCK_BYTES = 100 * 1024, TIMEOUT_MS = 20000 };

// Fill memory outside the heap until a fixed amount is resident; the heap's free 24 MiB leave no room for that.
static int share_with_others(void)
{
    static void *blocks[BLOCKS];
    ht_fill(blocks, BLOCKS, BLOCK_BYTES);
    ht_free_all(blocks, BLOCKS);
    long rss = ht_rss_kib();
    HT_CHECK(rss >= 24 * 1024, "%ld KiB resident: nothing waits", rss);
    char *own = mmap(NULL, LIMIT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(own != MAP_FAILED, "no memory for the test itself");
    for (size_t done = 0; ht_rss_kib() < 60 * 1024 && done < 40 * HT_MIB; done += HT_MIB) {
        memset(own + done, 1, HT_MIB);
    }
    ht_expect_rss(44 * 1024, TIMEOUT_MS, "near the limit");
    return 0;
}

static int grow_until_the_end(void)
{
    for (;;) {
        char *block = ht_hide(malloc(BLOCK_BYTES));
        HT_CHECK(block != NULL, "refused: the kernel does not do that");
        memset(block, 1, BLOCK_BYTES);
    }
}

// Returns how the process ended.
static int run_in_group(const char *role, char *setting, char *other)
{
    struct ht_group group = ht_make_group(LIMIT);
    pid_t child = fork();
    if (child == 0) {
        ht_enter_group(&group);
        putenv("HAKMEM_DECAY_MS=3600000");
        putenv("HAKMEM_DIRTY_BYTES=1G");
        putenv("HAKMEM_LIMIT_GROUP=off");
        putenv(setting);
        putenv(other);
        execl("/proc/self/exe", "inside", role, (char *)NULL);
        _exit(1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    ht_remove_group(&group);
    if (WIFEXITED(status) && WEXITSTATUS(status) == HT_SKIPPED) {
        HT_SKIP("no control group");
    }
    return status;
}

static void check_ledger(void)
{
    static char text[65536];
    char setting[64] = "HAKMEM_PRESSURE_LEDGER=";
    char *path = setting + strlen(setting);
    snprintf(path, 32, "/tmp/hakmem-ledger-%d", (int)getpid());
    int status = run_in_group("grows", setting, "HAKMEM_PURGER=0");
    HT_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "not ended by the kernel");
    int file = open(path, O_RDONLY | O_CLOEXEC);
    HT_CHECK(file >= 0, "no ledger was left behind");
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    unlink(path);
    text[length > 0 ? length : 0] = '\0';
    HT_CHECK(strstr(text, "\"short_of_memory\":\"growth\"") != NULL, "not the ledger: %.80s", text);
    HT_CHECK(strstr(text, "\"group_limit\":" LIMIT) != NULL, "another limit: %.200s", text);
    const char *live = strstr(text, "\"live_bytes\":");
    const size_t bytes = live != NULL ? strtoul(live + strlen("\"live_bytes\":"), NULL, 10) : 0;
    HT_CHECK(bytes > LIMIT_BYTES / 2 && bytes <= LIMIT_BYTES, "%zu bytes live", bytes);
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1) {
        return strcmp(arguments[1], "grows") == 0 ? grow_until_the_end() : share_with_others();
    }
    int status = run_in_group("shares", "HAKMEM_PRESSURE=always", "HAKMEM_PURGER=1");
    HT_CHECK(!WIFSIGNALED(status), "ended by signal %d", WTERMSIG(status));
    HT_CHECK(WEXITSTATUS(status) == 0, "exit code %d", WEXITSTATUS(status));
    check_ledger();
    return 0;
}
