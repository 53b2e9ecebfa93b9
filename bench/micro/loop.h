// loop.h -- the command line that the loops for counting instructions share.
//
// Owns      nothing.
// Threads   one.
// Fails     wrong arguments print the usage and end the program with code 2.
//
// Each program runs its loop `n` times around malloc and free or, with `idle` as last argument,
// around calls that do nothing. Counted at n and 2n, the difference is the loop without the
// program's start.
#ifndef MICRO_LOOP_H
#define MICRO_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The loops are written once and expanded for each kind of call, so that every call is direct.
#define LOOP_INLINE static inline __attribute__((always_inline))

static inline _Noreturn void loop_reject(const char *usage)
{
    fprintf(stderr, "usage: %s [idle]\n", usage);
    exit(2);
}

// A number above 0 from argument `index`.
static inline size_t loop_number(int argc, char **argv, int index, const char *usage)
{
    char *end = NULL;
    unsigned long value = index < argc ? strtoul(argv[index], &end, 10) : 0;
    if (value == 0 || *end != '\0' || argv[index][0] == '-') {
        loop_reject(usage);
    }
    return value;
}

// True if the argument after the numbers is `idle`; anything else is rejected.
static inline bool loop_is_idle(int argc, char **argv, int index, const char *usage)
{
    if (index == argc) {
        return false;
    }
    if (index + 1 != argc || strcmp(argv[index], "idle") != 0) {
        loop_reject(usage);
    }
    return true;
}

// Ends the program if memory is exhausted; the test is part of the loop's own cost.
LOOP_INLINE void *loop_require(void *block)
{
    if (block == NULL) {
        abort();
    }
    return block;
}

#endif
