// measure.c -- runs one command and reports, as one line of JSON, what it cost and
// which allocator it really used.
//
//     measure --output run.json --env LD_PRELOAD=build/libhakmem.so -- larson 0 8 1024 …
//
// Preload by --env, never in measure's own environment: it must not run on the
// allocator that it measures. Exit code: 0 measured (whatever the command's own end,
// which is in the report), 1 cannot measure, 2 wrong usage.

#include "json.h"
#include "launch.h"
#include "warm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: measure [--output FILE] [--env NAME=VALUE]... [--unset NAME]... [--timeout SECONDS]\n"
    "               [--warm-mib MIB] [--trace-threads] -- COMMAND [ARGUMENT]...\n";

struct options {
    const char *output;
    size_t warm_mib;
    struct launch_request request;
};

static bool take_number(const char *text, unsigned long most, unsigned long *number)
{
    char *end = NULL;
    *number = strtoul(text, &end, 10);
    return *text != '\0' && *end == '\0' && *number <= most;
}

// One option with a value; returns false when the name is not known.
static bool take_option(struct options *options, const char *name, char *value)
{
    if (strcmp(name, "--output") == 0) {
        options->output = value;
    } else if (strcmp(name, "--env") == 0 && strchr(value, '=') != NULL) {
        putenv(value);
    } else if (strcmp(name, "--unset") == 0) {
        unsetenv(value);
    } else if (strcmp(name, "--timeout") == 0) {
        unsigned long seconds = 0;
        bool is_right = take_number(value, 86400, &seconds); // a day
        options->request.timeout_s = (unsigned)seconds;
        return is_right;
    } else if (strcmp(name, "--warm-mib") == 0) {
        return take_number(value, 1 << 20, &options->warm_mib); // a TiB
    } else {
        return false;
    }
    return true;
}

static bool parse(struct options *options, char **arguments)
{
    char **at = arguments + 1;
    while (*at != NULL && strcmp(*at, "--") != 0) {
        if (strcmp(*at, "--trace-threads") == 0) {
            options->request.trace_threads = true;
            at++;
        } else if (at[1] != NULL && take_option(options, at[0], at[1])) {
            at += 2;
        } else {
            return false;
        }
    }
    if (*at == NULL || at[1] == NULL) {
        return false;
    }
    options->request.command = at + 1;
    return true;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static void print_report(const struct options *options,
                         const struct launch_result *result,
                         FILE *stream)
{
    const struct rusage *usage = &result->usage;
    size_t count = 0;
    while (options->request.command[count] != NULL) {
        count++;
    }
    fputs("{\"command\":", stream);
    json_strings(stream, options->request.command, count);
    fprintf(stream,
            ",\"exit_code\":%d,\"signal\":%d,\"timed_out\":%s,\"examined\":%s,\"left_running\":%zu",
            WIFEXITED(result->status) ? WEXITSTATUS(result->status) : -1,
            WIFSIGNALED(result->status) ? WTERMSIG(result->status) : 0,
            result->timed_out ? "true" : "false",
            result->was_examined ? "true" : "false",
            result->left_running);
    fprintf(stream,
            ",\"wall_s\":%.6f,\"user_s\":%.6f,\"sys_s\":%.6f,\"stopped_s\":%.6f",
            result->wall_s,
            seconds_of(usage->ru_utime),
            seconds_of(usage->ru_stime),
            result->stopped_s);
    fprintf(stream,
            ",\"minor_faults\":%ld,\"major_faults\":%ld,\"voluntary_switches\":%ld,"
            "\"involuntary_switches\":%ld",
            usage->ru_minflt,
            usage->ru_majflt,
            usage->ru_nvcsw,
            usage->ru_nivcsw);
    fprintf(stream,
            ",\"peak_kib\":%lu,\"tree_peak_kib\":%lu,\"processes\":",
            tracee_list_peak(&result->tracees),
            tracee_list_tree_peak(&result->tracees));
    tracee_list_print(&result->tracees, stream);
    fputs("}\n", stream);
}

int main(int argument_count, char **arguments)
{
    struct options options = {0};
    struct launch_result result;
    if (argument_count < 2 || !parse(&options, arguments)) {
        fputs(usage_text, stderr);
        return 2;
    }
    FILE *stream = options.output == NULL ? stderr : fopen(options.output, "we");
    if (stream == NULL) {
        fprintf(stderr, "measure: cannot write %s: %s\n", options.output, strerror(errno));
        return 1;
    }
    options.request.environment = environ;
    warm_memory(options.warm_mib);
    if (!launch(&options.request, &result)) {
        return 1;
    }
    if (result.start_error != 0) {
        fprintf(stderr,
                "measure: cannot run %s: %s\n",
                options.request.command[0],
                strerror(result.start_error));
        return 1;
    }
    print_report(&options, &result, stream);
    tracee_list_free(&result.tracees);
    bool is_written = fflush(stream) == 0 && ferror(stream) == 0;
    return is_written ? 0 : 1;
}
