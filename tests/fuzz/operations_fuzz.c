// operations_fuzz.c -- libFuzzer's entry: its bytes are a program of operations.
//
// Built by the fuzz preset, with support/hak_names.h. random_programs.c runs
// the same programs without a fuzzer.
#define HT_ABORT_WHEN_BROKEN
#include "program.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct ht_operation operations[HT_MOST_OPERATIONS];
    size_t count = length / HT_OPERATION_BYTES;
    count = count < HT_MOST_OPERATIONS ? count : HT_MOST_OPERATIONS;
    for (size_t i = 0; i < count; i++) {
        operations[i] = ht_decode(bytes + i * HT_OPERATION_BYTES);
    }
    ht_run_program(operations, count);
    return 0;
}
