// args.c -- reads a workload's command line, see args.h.
#include "args.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void args_reject(const struct args *args, const char *name, const char *why)
{
    fprintf(stderr, "%s: %s\nusage: %s\n", name, why, args->usage);
    exit(2);
}

struct args args_begin(int argc, char **argv, const char *usage)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            printf("usage: %s\n", usage);
            exit(0);
        }
    }
    return (struct args){.count = argc, .values = argv, .usage = usage, .next = 1};
}

const char *args_text(struct args *args)
{
    return args->next < args->count ? args->values[args->next++] : NULL;
}

uint64_t args_parse(
    const struct args *args, const char *name, const char *text, uint64_t low, uint64_t high)
{
    char *end;
    errno = 0;
    uintmax_t value = strtoumax(text, &end, 10);
    // strtoumax takes a sign and leading blanks; a count has neither.
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
        args_reject(args, name, "is not a number");
    }
    if (value < low || value > high) {
        char why[96];
        snprintf(why, sizeof why, "must be %" PRIu64 " to %" PRIu64, low, high);
        args_reject(args, name, why);
    }
    return value;
}

uint64_t args_number(
    struct args *args, const char *name, uint64_t fallback, uint64_t low, uint64_t high)
{
    const char *text = args_text(args);
    return text == NULL ? fallback : args_parse(args, name, text, low, high);
}

uint64_t args_required(struct args *args, const char *name, uint64_t low, uint64_t high)
{
    const char *text = args_text(args);
    if (text == NULL) {
        args_reject(args, name, "is missing");
    }
    return args_parse(args, name, text, low, high);
}

unsigned args_word(struct args *args, const char *name, const char *const *words)
{
    const char *text = args_text(args);
    if (text == NULL) {
        return 0;
    }
    for (unsigned i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    args_reject(args, name, "is none of the words that the usage lists");
}

void args_end(const struct args *args)
{
    if (args->next < args->count) {
        args_reject(args, args->values[args->next], "is one argument too many");
    }
}
