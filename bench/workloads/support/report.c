// report.c -- the lines for answer and time, and the exits without them.
#include "report.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void report_speed(uint64_t operations, uint64_t elapsed_ns)
{
    double seconds = (double)elapsed_ns / 1e9;
    printf("ops/s: %.0f\n", seconds > 0 ? (double)operations / seconds : 0.0);
    printf("seconds: %.6f\n", seconds);
    if (fflush(stdout) != 0) {
        report_exhausted("standard output");
    }
}

void report_answer(uint64_t answer, uint64_t operations, uint64_t elapsed_ns)
{
    printf("answer: %016" PRIx64 "\n", answer);
    report_speed(operations, elapsed_ns);
}

void report_timed(uint64_t operations, uint64_t elapsed_ns)
{
    printf("answer: timed\n");
    report_speed(operations, elapsed_ns);
}

_Noreturn void report_wrong(const char *what)
{
    fprintf(stderr, "wrong: %s\n", what);
    _Exit(1);
}

_Noreturn void report_exhausted(const char *what)
{
    fprintf(stderr, "exhausted: %s\n", what);
    _Exit(1);
}

uint64_t report_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// A short file of /proc about this process, from `mark` on.
static const char *file_from(const char *path, char *text, size_t bytes, const char *mark)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, text, bytes - 1) : 0;
    text[length > 0 ? length : 0] = '\0';
    const char *found = strstr(text, mark);
    if (found == NULL) {
        report_exhausted(path);
    }
    close(file);
    return found + strlen(mark);
}

// The second number of the file, in pages.
uint64_t report_resident_kib(void)
{
    char text[64];
    const char *pages = file_from("/proc/self/statm", text, sizeof text, " ");
    return strtoull(pages, NULL, 10) * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
}

uint64_t report_private_kib(void)
{
    char text[2048];
    return strtoull(
        file_from("/proc/self/smaps_rollup", text, sizeof text, "Private_Dirty:"), NULL, 10);
}

void *report_table(size_t count, size_t entry_bytes)
{
    size_t bytes = count * entry_bytes;
    void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) {
        report_exhausted("a table of the workload");
    }
    return table;
}
