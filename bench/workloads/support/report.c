// report.c -- the answer and timing lines, and the ways to stop without them.
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

// The second number of the file, in pages.
uint64_t report_resident_kib(void)
{
    char text[64] = "";
    const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    const char *second = length > 0 ? strchr(text, ' ') : NULL;
    if (second == NULL) {
        report_exhausted("/proc/self/statm");
    }
    close(file);
    return strtoull(second, NULL, 10) * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
}

uint64_t report_private_kib(void)
{
    char text[2048] = "";
    const int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    const char *line = length > 0 ? strstr(text, "Private_Dirty:") : NULL;
    if (line == NULL) {
        report_exhausted("/proc/self/smaps_rollup");
    }
    close(file);
    return strtoull(strchr(line, ':') + 1, NULL, 10);
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
