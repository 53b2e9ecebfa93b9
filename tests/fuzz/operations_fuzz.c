// operations_fuzz.c -- libFuzzer's entry: its bytes are a program of operations.
//
// Built by the fuzz preset, with support/hak_names.h. random_programs.c runs
// the same programs without a fuzzer. A program that fails is printed, to be
// pasted into a test of its own, which calls ht_run_program on it.
#define HT_ABORT_WHEN_BROKEN
#include "program.h"

#include <signal.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static struct ht_operation operations[HT_MOST_OPERATIONS];
static size_t count;
static const int ends[] = {SIGABRT, SIGSEGV, SIGBUS};
enum { ENDS = sizeof ends / sizeof *ends };
static struct sigaction fuzzers_own[ENDS]; // they keep the input, and end the process

static void print_and_end(int signal)
{
    ht_print_program(stderr, operations, count);
    for (size_t i = 0; i < ENDS; i++) {
        sigaction(ends[i], &fuzzers_own[i], NULL);
    }
    raise(signal);
}

static void watch(void)
{
    static bool is_watching;
    const struct sigaction action = {.sa_handler = print_and_end};
    for (size_t i = 0; i < ENDS && !is_watching; i++) {
        sigaction(ends[i], &action, &fuzzers_own[i]);
    }
    is_watching = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    watch();
    count = length / HT_OPERATION_BYTES;
    count = count < HT_MOST_OPERATIONS ? count : HT_MOST_OPERATIONS;
    for (size_t i = 0; i < count; i++) {
        operations[i] = ht_decode(bytes + i * HT_OPERATION_BYTES);
    }
    ht_run_program(operations, count);
    return 0;
}
