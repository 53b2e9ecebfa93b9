// scale.h -- what the programs of bench/scale share: one process measures one point.
//
// Owns      standard output: a line of JSON that names the malloc in use, then one for each figure.
// Threads   scale_point, scale_require: any. The others: one.
// Fails     without memory or a thread it ends the program with code 1, for wrong arguments with 2.
#ifndef SCALE_SCALE_H
#define SCALE_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a program can measure, and by what: bytes, blocks or threads.
struct scale_subject {
    const char *name;
    void (*run)(size_t x);
};

// Each program has its own; the last one has no name.
extern const struct scale_subject scale_subjects[];

// Print one figure of this point.
void scale_point(const char *operation, double value);

// Processor time of the process, its allocator's own threads included; and of the calling thread.
uint64_t scale_cpu_ns(void);
uint64_t scale_thread_ns(void);

static inline double scale_each(uint64_t ns, size_t count)
{
    return (double)ns / (double)count;
}

// Does this function of the malloc family come from the same library as malloc? An allocator may leave it
// to the C library, which then answers for an unused heap.
bool scale_owns(const char *function);

// malloc of a block, which is written to, so that it is resident.
void *scale_block(size_t bytes);

// No huge pages in this process, whatever the machine's setting: where one page of each 2 MiB is
// touched, they would make all of them resident.
void scale_small_pages(void);

void scale_sleep_ms(unsigned ms);

// A thread with a small stack for each of `count` members of `bytes` each; and wait for them to end.
struct scale_crew;
struct scale_crew *scale_start(size_t count, void *(*work)(void *), void *members, size_t bytes);
void scale_join(struct scale_crew *crew);

#endif
