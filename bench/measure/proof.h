// proof.h -- which library a stopped process really gets its memory from.
//
// That a library is mapped proves nothing: it may be there and never be called
// (a program with its own malloc), or be another than its name says. So the proof
// asks what the dynamic linker did, in two independent ways, for each function of
// the malloc family:
//
//   order   the first object in lookup order that defines the function;
//   slots   the addresses that stand in the loaded objects' own import slots.
//
// Both are reported together as `owners`. A run proves its allocator when the only
// owner is the library that was asked for, and something other than libc calls it.
#ifndef MEASURE_PROOF_H
#define MEASURE_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct string_set {
    char **texts;
    size_t count;
};

struct proof {
    struct string_set owners;    // files that own a function of the family
    struct string_set importers; // files whose calls go to an owner other than themselves
    size_t bound_slots;          // import slots seen bound
    bool is_static;              // no dynamic linker: nothing can be preloaded
    bool has_private_malloc;     // the program has a malloc that others cannot see
    const char *error;           // why there is no proof; NULL when there is one
};

// Examine process `pid`, which must be stopped under our trace.
void proof_collect(struct proof *proof, pid_t pid);
void proof_free(struct proof *proof);

void proof_print(const struct proof *proof, FILE *stream);

#endif
