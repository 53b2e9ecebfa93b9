// serial
// native only
// preload only
// If the kernel promises only memory that it has (overcommit_memory
// 2), reservations do not count as use: the program starts and works. A request that the
// kernel refuses gets NULL with ENOMEM, and the program goes on.
//
// The setting belongs to the machine: it is changed only if
// HAK_TEST_SYSTEM=1 allows it, and put back.
#include "../support/memory.h"

static const char setting[] = "/proc/sys/vm/overcommit_memory";

static int read_setting(void)
{
    char text[16] = "";
    int fd = open(setting, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) {
        HT_SKIP("%s cannot be read", setting);
    }
    close(fd);
    return (int)strtol(text, NULL, 10);
}

static void write_setting(int value)
{
    char digit = (char)('0' + value);
    int fd = open(setting, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, &digit, 1) != 1) {
        HT_SKIP("%s cannot be set", setting);
    }
    close(fd);
}

// Request all that is promised, untouched, except a GiB that other programs may need meanwhile.
static void use_up(void)
{
    enum { MOST = 4096 };
    static unsigned char *blocks[MOST];
    const size_t size = 64 * HT_MIB;
    size_t count = 0;
    long left = ht_proc_number("/proc/meminfo", "CommitLimit");
    while (count < MOST && left - ht_proc_number("/proc/meminfo", "Committed_AS") > 1024 * 1024) {
        blocks[count] = malloc(size);
        HT_CHECK(blocks[count] != NULL, "refused while there was a GiB to promise");
        blocks[count][0] = (unsigned char)count;
        count++;
    }
    errno = 0;
    HT_CHECK(malloc(2 * HT_GIB) == NULL && errno == ENOMEM, "promised what is not there");
    HT_CHECK(realloc(blocks[0], 2 * HT_GIB) == NULL && errno == ENOMEM,
             "grew beyond what is there");
    for (size_t i = 0; i < count; i++) {
        HT_CHECK(blocks[i][0] == (unsigned char)i, "block %zu changed", i);
        free(blocks[i]);
    }
    malloc_trim(0);
    void *large = malloc(2 * HT_GIB);
    HT_CHECK(large != NULL, "what was given back is not promised again");
    free(large);
}

static int live(void)
{
    long committed = ht_proc_number("/proc/meminfo", "Committed_AS");
    enum { BLOCKS = 100 };
    char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(HT_MIB);
        HT_CHECK(blocks[i] != NULL, "no memory under strict overcommit");
        memset(blocks[i], 1, HT_MIB);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    // Half a GiB: other programs may start meanwhile.
    long more = ht_proc_number("/proc/meminfo", "Committed_AS") - committed;
    HT_CHECK(more < 512 * 1024, "a heap of 100 MiB was charged with %ld KiB", more);
    HT_CHECK(malloc(HT_MIB << 20) == NULL && errno == ENOMEM, "1 TiB were promised");
    use_up();
    return 0;
}

int main(int count, char **arguments)
{
    (void)arguments;
    ht_start();
    if (count > 1) {
        return live();
    }
    int before = read_setting();
    if (before != 2 && getenv("HAK_TEST_SYSTEM") == NULL) {
        HT_SKIP("HAK_TEST_SYSTEM=1 would allow to change %s", setting);
    }
    write_setting(2);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "strict", "live", (char *)NULL);
        _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    write_setting(before);
    HT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0,
             "under strict overcommit: status %#x",
             (unsigned)status);
    return 0;
}
