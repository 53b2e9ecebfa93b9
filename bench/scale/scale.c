// scale.c -- see scale.h.
#include "scale.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "support/report.h"

enum { STACK_BYTES = 64 << 10 };

static size_t point;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t scale_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t scale_thread_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void scale_point(const char *operation, double value)
{
    printf("{\"operation\": \"%s\", \"x\": %zu, \"value\": %.9g}\n", operation, point, value);
    fflush(stdout);
}

// The file with the function that the dynamic linker bound to this name.
static const char *owner_of(const char *function)
{
    void *address = dlsym(RTLD_DEFAULT, function);
    Dl_info info;
    return address != NULL && dladdr(address, &info) != 0 ? info.dli_fname : "";
}

bool scale_owns(const char *function)
{
    return strcmp(owner_of(function), owner_of("malloc")) == 0;
}

void *scale_block(size_t bytes)
{
    char *block = malloc(bytes);
    if (block == NULL) {
        report_exhausted("malloc returned NULL");
    }
    *block = 1;
    return block;
}

void scale_small_pages(void)
{
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
        report_exhausted("huge pages cannot be switched off");
    }
}

void scale_sleep_ms(unsigned ms)
{
    const struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

struct scale_crew {
    size_t count;
    pthread_t *threads;
};

// The crew's tables are the system's, not the allocator's.
struct scale_crew *scale_start(size_t count, void *(*work)(void *), void *members, size_t bytes)
{
    struct scale_crew *crew = report_table(1, sizeof *crew);
    crew->count = count;
    crew->threads = report_table(count, sizeof *crew->threads);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (size_t i = 0; i < count; i++) {
        if (pthread_create(&crew->threads[i], &attributes, work, (char *)members + i * bytes) !=
            0) {
            report_exhausted("a thread could not be started");
        }
    }
    pthread_attr_destroy(&attributes);
    return crew;
}

void scale_join(struct scale_crew *crew)
{
    for (size_t i = 0; i < crew->count; i++) {
        pthread_join(crew->threads[i], NULL);
    }
}

// The driver compares it with the library that it has preloaded.
static void print_owner(void)
{
    static const char *const core[] = {"free", "calloc", "realloc", "posix_memalign"};
    for (size_t i = 0; i < sizeof core / sizeof *core; i++) {
        if (!scale_owns(core[i])) {
            report_wrong("malloc, free and their kin belong to several allocators");
        }
    }
    printf("{\"malloc\": \"%s\"}\n", owner_of("malloc"));
    fflush(stdout);
}

// The driver makes that much memory ready before it measures the point again.
static void print_peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    scale_point("peak-kib", (double)usage.ru_maxrss);
}

int main(int argc, char **argv)
{
    const struct scale_subject *subject = scale_subjects;
    while (subject->name != NULL && (argc != 3 || strcmp(subject->name, argv[1]) != 0)) {
        subject++;
    }
    char *end = NULL;
    point = subject->name != NULL ? strtoumax(argv[2], &end, 10) : 0;
    if (point == 0 || *end != '\0') {
        fprintf(stderr, "usage: %s SUBJECT NUMBER; subjects:", argv[0]);
        for (subject = scale_subjects; subject->name != NULL; subject++) {
            fprintf(stderr, " %s", subject->name);
        }
        fputs("\n", stderr);
        return 2;
    }
    free(scale_block(1)); // the allocator has started, and is known
    print_owner();
    subject->run(point);
    print_peak();
    return 0;
}
