// report.h -- the end of a workload: with an answer, or with the reason why there is none.
//
// Owns      standard output and the exit code.
// Threads   report_answer: one. The others: any thread.
// Fails     the failing calls do not return.
//
// A run without the right answer is no result. So a workload prints its answer, and exits with
// exit code 1 as soon as it finds a block with wrong content.
#ifndef WORKLOADS_REPORT_H
#define WORKLOADS_REPORT_H

#include <stddef.h>
#include <stdint.h>

// Print the answer, the operations a second and the seconds. Every call of malloc, calloc,
// realloc, aligned_alloc, posix_memalign and free counts as one operation.
void report_answer(uint64_t answer, uint64_t operations, uint64_t elapsed_ns);

// The same for a run with a time limit, whose work, and therefore its answer, is not fixed.
void report_timed(uint64_t operations, uint64_t elapsed_ns);

// Stop: the content of a block, or a result, is wrong.
_Noreturn void report_wrong(const char *what);

// Stop: the allocator had no memory, or the system no thread.
_Noreturn void report_exhausted(const char *what);

// Nanoseconds of a clock that never goes back.
uint64_t report_clock_ns(void);

// KiB of the program's memory that are resident now. Calls no malloc.
uint64_t report_resident_kib(void);

// KiB of this process that no other one shares and that were written.
uint64_t report_private_kib(void);

// Zeroed memory for a workload's own tables, straight from the OS: the tables are not part of what
// is measured, and must not depend on the allocator. It stays until the program ends.
void *report_table(size_t count, size_t entry_bytes);

#endif
