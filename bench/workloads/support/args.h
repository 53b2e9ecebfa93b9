// args.h -- reads a workload's command line.
//
// Owns      the place in the list of arguments.
// Threads   one.
// Fails     a wrong argument prints one line and the usage, and ends the program with code 2.
//
// Arguments are numbers and words in a fixed order; those that are left out take their default.
#ifndef WORKLOADS_ARGS_H
#define WORKLOADS_ARGS_H

#include <stdint.h>

struct args {
    int count;
    char **values;
    const char *usage;
    int next; // index of the argument that is read next
};

// Start reading; `--help` prints the usage and ends the program with code 0.
struct args args_begin(int argc, char **argv, const char *usage);

// The next argument as a number in low … high, or `fallback` when there are no more.
uint64_t args_number(
    struct args *args, const char *name, uint64_t fallback, uint64_t low, uint64_t high);

// As args_number, but the argument must be there.
uint64_t args_required(struct args *args, const char *name, uint64_t low, uint64_t high);

// The next argument as an index into `words`, a list that NULL ends; 0 when there are no more.
unsigned args_word(struct args *args, const char *name, const char *const *words);

// The next argument as it stands, or NULL.
const char *args_text(struct args *args);

// Read `text` as a number in low … high.
uint64_t args_parse(
    const struct args *args, const char *name, const char *text, uint64_t low, uint64_t high);

// There must be no more arguments.
void args_end(const struct args *args);

// Stop: say what is wrong with the argument `name`, and print the usage.
_Noreturn void args_reject(const struct args *args, const char *name, const char *why);

#endif
