// soak in: aarch64
// args: 2000 20 1
//
// Random programs of heap operations against a model. One that fails is shrunk
// to the fewest and smallest operations that still fail, and printed as an
// array to paste into a test of its own, which calls ht_run_program on it.
//
// Arguments: <operations each> <programs> <seed>; seed 0 takes one from the clock.
#include "program.h"

enum { TIMEOUT_S = 60 };

// In a child, as a program may corrupt anything.
static bool fails(const struct ht_operation *operations, size_t count, bool quiet)
{
    fflush(stdout);
    pid_t child = fork();
    HT_CHECK(child >= 0, "no child: errno %d", errno);
    if (child == 0) {
        if (quiet) {
            close(STDERR_FILENO);
        }
        alarm(TIMEOUT_S);
        ht_run_program(operations, count);
        _exit(0);
    }
    int status = 0;
    HT_CHECK(waitpid(child, &status, 0) == child, "waitpid: errno %d", errno);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

// Remove as many operations as possible: first large parts, then single ones.
static size_t leave_out(struct ht_operation *operations, size_t count)
{
    static struct ht_operation shorter[HT_MOST_OPERATIONS];
    for (size_t part = count / 2; part > 0; part = part == 1 ? 0 : (part + 1) / 2) {
        for (size_t start = 0; start + part <= count;) {
            memcpy(shorter, operations, start * sizeof *shorter);
            memcpy(shorter + start,
                   operations + start + part,
                   (count - start - part) * sizeof *shorter);
            if (fails(shorter, count - part, true)) {
                count -= part;
                memcpy(operations, shorter, count * sizeof *shorter);
            } else {
                start += part;
            }
        }
    }
    return count;
}

static bool keep_if_failing(struct ht_operation *operations,
                            size_t count,
                            struct ht_operation *changed,
                            struct ht_operation smaller)
{
    struct ht_operation before = *changed;
    *changed = smaller;
    if (fails(operations, count, true)) {
        return true;
    }
    *changed = before;
    return false;
}

// Make each operation simpler: the first thread, plain malloc, half the size.
static void make_plainer(struct ht_operation *operations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct ht_operation *operation = &operations[i];
        struct ht_operation plainer = *operation;
        plainer.thread = 0;
        keep_if_failing(operations, count, operation, plainer);
        if (operation->kind < HT_REALLOC) {
            plainer = *operation;
            plainer.kind = HT_MALLOC;
            keep_if_failing(operations, count, operation, plainer);
        }
        do {
            plainer = *operation;
            plainer.size /= 2;
        } while (plainer.size > 0 && keep_if_failing(operations, count, operation, plainer));
    }
}

static void make_program(struct ht_operation *operations, size_t count, struct ht_random *random)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t number = ht_random_next(random);
        uint8_t bytes[sizeof number];
        memcpy(bytes, &number, sizeof number);
        operations[i] = ht_decode(bytes);
    }
}

int main(int count, char **arguments)
{
    static struct ht_operation operations[HT_MOST_OPERATIONS];
    size_t length = count > 1 ? strtoul(arguments[1], NULL, 10) : 1000;
    size_t programs = count > 2 ? strtoul(arguments[2], NULL, 10) : 100;
    uint64_t seed = count > 3 ? strtoull(arguments[3], NULL, 10) : 1;
    ht_start();
    HT_CHECK(length <= HT_MOST_OPERATIONS, "at most %d operations", HT_MOST_OPERATIONS);
    seed = seed == 0 ? (uint64_t)ht_now_ms() : seed;
    printf(
        "%zu programs of %zu operations, seed %llu\n", programs, length, (unsigned long long)seed);
    for (size_t i = 0; i < programs; i++) {
        struct ht_random random = {seed + i};
        make_program(operations, length, &random);
        if (!fails(operations, length, false)) {
            continue;
        }
        printf("seed %llu fails; shrinking\n", (unsigned long long)(seed + i));
        size_t left = leave_out(operations, length);
        make_plainer(operations, left);
        left = leave_out(operations, left);
        ht_print_program(stdout, operations, left);
        fails(operations, left, false); // once more, for its message
        return HT_BROKEN;
    }
    return 0;
}
