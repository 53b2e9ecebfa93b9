// serial
// native only
// preload only
// with features
// timeout: 90
// A control group at its limit, with limit_group: requests are refused, the kernel kills nothing, and after a free everything
// works again; also with several threads, with large blocks, and with limit_hard below the limit. A block
// larger than the group may be used in a few places. Without limit_group, if the group makes its
// processes wait instead of killing one (version 1, memory.oom_control), the program continues unchanged once
// there is memory again.
#include "../support/control_group.h"
#include "../support/memory.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#define LIMIT      "67108864"
#define LIMIT_HARD "41943040"
#define MORE       "268435456"

enum { BLOCKS = 4096, BLOCK_BYTES = 24000, TIMEOUT_MS = 60000, THREADS = 4 };

static unsigned char *blocks[BLOCKS];

static size_t fill(size_t first)
{
    size_t i = first;
    while (i < BLOCKS && (blocks[i] = ht_hide(malloc(BLOCK_BYTES))) != NULL) {
        memset(blocks[i], (int)(i % 251) + 1, BLOCK_BYTES);
        i++;
    }
    return i;
}

static void check_and_free(size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        for (size_t j = 0; j < BLOCK_BYTES; j++) {
            HT_CHECK(blocks[i][j] == i % 251 + 1, "block %zu changed at %zu", i, j);
        }
        free(blocks[i]);
    }
}

static int be_refused(void)
{
    const size_t got = fill(0);
    HT_CHECK(got < BLOCKS && errno == ENOMEM, "%zu blocks, errno %d", got, errno);
    HT_CHECK(got > BLOCKS / 8, "refused after %zu blocks", got);
    check_and_free(got / 2, got);
    const size_t again = fill(got / 2);
    HT_CHECK(again + BLOCKS / 64 >= got, "%zu blocks after a free, %zu before", again, got);
    check_and_free(0, again);
    return 0;
}

// More than half of the group is used when the first request is refused, and at most all of it.
static size_t fill_with(size_t bytes)
{
    static const size_t limit = 64 * HT_MIB;
    size_t i = 0;
    while (i < BLOCKS && (blocks[i] = ht_hide(malloc(bytes))) != NULL) {
        memset(blocks[i], 1, bytes);
        i++;
    }
    HT_CHECK(errno == ENOMEM, "%zu blocks of %zu, errno %d", i, bytes, errno);
    HT_CHECK(i * bytes > limit / 2 && i * bytes < limit, "refused after %zu of %zu", i, bytes);
    return i;
}

static void *fill_a_part(void *argument)
{
    const size_t first = (size_t)(uintptr_t)argument;
    size_t i = first;
    while (i < first + BLOCKS / THREADS && (blocks[i] = ht_hide(malloc(BLOCK_BYTES))) != NULL) {
        memset(blocks[i], (int)(i % 251) + 1, BLOCK_BYTES);
        i++;
    }
    return (void *)(uintptr_t)i;
}

static void fill_together(void)
{
    pthread_t threads[THREADS];
    size_t got = 0;
    for (size_t i = 0; i < THREADS; i++) {
        void *first = (void *)(uintptr_t)(i * (BLOCKS / THREADS));
        HT_CHECK(pthread_create(&threads[i], NULL, fill_a_part, first) == 0, "no thread");
    }
    void *ends[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &ends[i]);
    }
    // Not as each ends: a thread that comes late must find the group full.
    for (size_t i = 0; i < THREADS; i++) {
        const size_t first = i * (BLOCKS / THREADS);
        got += (size_t)(uintptr_t)ends[i] - first;
        check_and_free(first, (size_t)(uintptr_t)ends[i]);
    }
    HT_CHECK(got > BLOCKS / 4 && got < BLOCKS, "%zu blocks in all threads", got);
}

static int fit_the_group(void)
{
    static const size_t sizes[] = {100 * 1024, HT_MIB, 5 * HT_MIB};
    be_refused();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t got = fill_with(sizes[i]);
        for (size_t j = 0; j < got; j++) {
            free(blocks[j]);
        }
    }
    fill_together();
    unsigned char *sparse = ht_hide(calloc(1, HT_GIB));
    HT_CHECK(sparse != NULL, "a sparse block is refused");
    for (size_t i = 0; i < HT_GIB; i += 64 * HT_MIB) {
        sparse[i] = 1;
    }
    free(sparse);
    return 0;
}

static int be_paused(void)
{
    HT_CHECK(fill(0) == BLOCKS, "refused: errno %d", errno);
    check_and_free(0, BLOCKS);
    return 0;
}

static pid_t start(const struct ht_group *group, const char *what)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // a process that waits for memory would wait for ever
        ht_enter_group(group);
        execl("/proc/self/exe", "full", what, (char *)NULL);
        _exit(1);
    }
    return child;
}

static void finish(pid_t child, const char *what)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == HT_SKIPPED) {
        _exit(HT_SKIPPED); // it has printed why
    }
    HT_CHECK(status == 0, "%s: status %#x", what, (unsigned)status);
}

static bool is_waiting(const struct ht_group *group)
{
    char path[PATH_MAX + 64];
    char text[256] = "";
    snprintf(path, sizeof path, "%s/memory.oom_control", group->folder);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 && strstr(text, "under_oom 1") != NULL;
}

static void pause_and_go_on(const struct ht_group *group)
{
    const pid_t child = start(group, "paused");
    int waited_ms = 0;
    for (; !is_waiting(group) && waited_ms < TIMEOUT_MS; waited_ms += 10) {
        ht_sleep_ms(10);
    }
    HT_CHECK(waited_ms < TIMEOUT_MS, "nobody waits for memory");
    HT_CHECK(ht_write_file(group->folder, group->limit, MORE), "no more memory: errno %d", errno);
    finish(child, "paused");
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1) {
        return strcmp(arguments[1], "refused") == 0 ? be_refused()
               : strcmp(arguments[1], "fits") == 0  ? fit_the_group()
                                                    : be_paused();
    }
    const struct ht_group group = ht_make_group(LIMIT);
    setenv("HAKMEM_LIMIT_GROUP", "refuse", 1);
    finish(start(&group, "fits"), "fits");
    setenv("HAKMEM_LIMIT_HARD", LIMIT_HARD, 1);
    finish(start(&group, "refused"), "refused");
    unsetenv("HAKMEM_LIMIT_HARD");
    unsetenv("HAKMEM_LIMIT_GROUP");
    if (ht_write_file(group.folder, "memory.oom_control", "1")) {
        pause_and_go_on(&group);
    }
    ht_remove_group(&group);
    return 0;
}
