// memory.h -- how much memory the process holds, read without malloc.
#ifndef HAK_TESTS_SUPPORT_MEMORY_H
#define HAK_TESTS_SUPPORT_MEMORY_H

#include "promise.h"
#include "random.h"

#include <fcntl.h>
#include <sys/mman.h>

// The kernel rounds VmRSS on each processor; smaps_rollup counts pages and is exact.
#define HT_SMAPS "/proc/self/smaps_rollup"

// The number after "<field>:" in a file of /proc, or -1.
static inline long ht_proc_number(const char *path, const char *field)
{
    static char text[16384];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    size_t length = 0;
    for (;;) {
        ssize_t more = read(fd, text + length, sizeof text - 1 - length);
        if (more <= 0) {
            break;
        }
        length += (size_t)more;
    }
    close(fd);
    text[length] = '\0';
    size_t name = strlen(field);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, field, name) == 0 && line[name] == ':') {
            return strtol(line + name + 1, NULL, 10);
        }
    }
    return -1;
}

static inline long ht_rss_kib(void)
{
    long kib = ht_proc_number(HT_SMAPS, "Rss");
    if (kib < 0) {
        kib = ht_proc_number("/proc/self/status", "VmRSS");
    }
    HT_CHECK(kib >= 0, "cannot read /proc/self");
    return kib;
}

static inline long ht_peak_rss_kib(void)
{
    return ht_proc_number("/proc/self/status", "VmHWM");
}

static inline void ht_need_memory(size_t bytes)
{
    long kib = ht_proc_number("/proc/meminfo", "MemAvailable");
    if (kib >= 0 && (size_t)kib < bytes / HT_KIB) {
        HT_SKIP("needs %zu MiB, available are %ld", bytes / HT_MIB, kib / 1024);
    }
}

// The allocator's own thread ends when nothing is left to do.
static inline void ht_expect_one_thread(long timeout_ms)
{
    const long end = ht_now_ms() + timeout_ms;
    while (ht_proc_number("/proc/self/status", "Threads") > 1 && ht_now_ms() < end) {
        ht_sleep_ms(50);
    }
    HT_CHECK(ht_proc_number("/proc/self/status", "Threads") == 1,
             "a thread of ours is still there");
}

// Resident memory outside the heap, for the program's own records.
static inline void *ht_map(size_t bytes)
{
    void *memory = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        HT_SKIP("no %zu bytes for the program itself", bytes);
    }
    return memory;
}

// Sleep until at most `limit_kib` are resident; the promise is broken after `timeout_ms`.
static inline void ht_expect_rss(long limit_kib, long timeout_ms, const char *what)
{
    long until = ht_now_ms() + timeout_ms;
    long rss = ht_rss_kib();
    while (rss > limit_kib && ht_now_ms() < until) {
        ht_sleep_ms(50);
        rss = ht_rss_kib();
    }
    HT_CHECK(rss <= limit_kib,
             "%s: %ld KiB resident after %ld ms, promised at most %ld",
             what,
             rss,
             timeout_ms,
             limit_kib);
}

// In mode secure blocks wait in quarantine and in stocks, and each keeps its page resident.
static inline long ht_held_back_kib(void)
{
    const char *mode = getenv("HAKMEM_MODE");
    return mode != NULL && strcmp(mode, "secure") == 0 ? 24 * 1024 : 0;
}

// What may stay resident when `live` bytes are in use: 8 MiB more, or a sixteenth more if that is larger.
static inline long ht_fallen_kib(long baseline_kib, size_t live)
{
    const size_t part = live / 16;
    const size_t more = part > 8 * HT_MIB ? part : 8 * HT_MIB;
    return baseline_kib + (long)((live + more) / HT_KIB) + ht_held_back_kib();
}

static inline void ht_fill(void **blocks, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(size);
        HT_CHECK(blocks[i] != NULL, "malloc(%zu) failed", size);
        memset(blocks[i], (int)(i & 0xff), size);
    }
}

static inline void ht_shuffle(void **blocks, size_t count, uint64_t seed)
{
    struct ht_random random = {seed};
    for (size_t i = count; i > 1; i--) {
        size_t j = ht_random_below(&random, i);
        void *block = blocks[i - 1];
        blocks[i - 1] = blocks[j];
        blocks[j] = block;
    }
}

static inline void ht_free_all(void **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

#endif
