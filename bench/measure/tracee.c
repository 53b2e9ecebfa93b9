#include "tracee.h"

#include "json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tracee *tracee_get(struct tracee_list *list, pid_t pid, double now_s)
{
    for (size_t index = list->count; index > 0; index--) {
        struct tracee *known = list->items[index - 1];
        if (known->pid == pid && !known->has_ended) {
            return known;
        }
    }
    struct tracee **items = realloc(list->items, (list->count + 1) * sizeof(*items));
    struct tracee *added = calloc(1, sizeof(*added));
    if (items == NULL || added == NULL) {
        fputs("measure: out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    added->pid = pid;
    added->start_s = now_s;
    items[list->count++] = added;
    list->items = items;
    return added;
}

struct tracee *tracee_announce(struct tracee_list *list, pid_t pid, double now_s)
{
    struct tracee *child = NULL;
    for (size_t index = list->count; index > 0 && child == NULL; index--) {
        if (list->items[index - 1]->pid == pid && !list->items[index - 1]->is_announced) {
            child = list->items[index - 1];
        }
    }
    child = child == NULL ? tracee_get(list, pid, now_s) : child;
    child->is_announced = true;
    return child;
}

static void read_status(struct tracee *tracee)
{
    char path[64];
    char line[256];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)tracee->pid);
    FILE *stream = fopen(path, "re");
    if (stream == NULL) {
        return;
    }
    unsigned long number = 0;
    while (fgets(line, sizeof(line), stream) != NULL) {
        if (sscanf(line, "VmHWM: %lu", &number) == 1) {
            tracee->peak_kib = number;
            tracee->has_exit_report = true;
        } else if (sscanf(line, "VmRSS: %lu", &number) == 1) {
            tracee->resident_kib = number;
        } else if (sscanf(line, "RssAnon: %lu", &number) == 1) {
            tracee->anonymous_kib = number;
        } else if (sscanf(line, "Tgid: %lu", &number) == 1) {
            tracee->is_thread = number != (unsigned long)tracee->pid;
        }
    }
    fclose(stream);
}

// Page faults of waited-for children, where no child was seen, betray a child
// that was started by a thread which is not traced.
static void find_hidden_children(struct tracee *tracee)
{
    char path[64];
    char line[1024] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)tracee->pid);
    FILE *stream = fopen(path, "re");
    if (stream == NULL) {
        return;
    }
    const char *name_end = fgets(line, sizeof(line), stream) != NULL ? strrchr(line, ')') : NULL;
    unsigned long child_faults = 0;
    if (name_end != NULL &&
        sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %lu", &child_faults) == 1) {
        tracee->has_hidden_children = child_faults > 0 && tracee->children == 0;
    }
    fclose(stream);
}

static void read_program(struct tracee *tracee)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)tracee->pid);
    ssize_t bytes = readlink(path, tracee->program, sizeof(tracee->program) - 1);
    tracee->program[bytes > 0 ? bytes : 0] = '\0';
}

void tracee_examine(struct tracee *tracee, double now_s, bool sees_threads)
{
    tracee->end_s = now_s;
    read_status(tracee);
    if (tracee->is_thread || tracee->borrows_memory) {
        return;
    }
    read_program(tracee);
    if (!sees_threads) {
        find_hidden_children(tracee);
    }
    proof_collect(&tracee->proof, tracee->pid);
}

static bool is_reported(const struct tracee *tracee)
{
    return tracee->has_exit_report && !tracee->is_thread && !tracee->borrows_memory;
}

unsigned long tracee_list_peak(const struct tracee_list *list)
{
    unsigned long peak = 0;
    for (size_t index = 0; index < list->count; index++) {
        const struct tracee *tracee = list->items[index];
        if (is_reported(tracee) && tracee->peak_kib > peak) {
            peak = tracee->peak_kib;
        }
    }
    return peak;
}

unsigned long tracee_list_tree_peak(const struct tracee_list *list)
{
    unsigned long peak = 0;
    // A sum can only be largest at a moment when some process has just started.
    for (size_t moment = 0; moment < list->count; moment++) {
        double now_s = list->items[moment]->start_s;
        unsigned long sum = 0;
        for (size_t index = 0; index < list->count; index++) {
            const struct tracee *tracee = list->items[index];
            if (is_reported(tracee) && tracee->start_s <= now_s && now_s <= tracee->end_s) {
                sum += tracee->peak_kib;
            }
        }
        peak = sum > peak ? sum : peak;
    }
    return peak;
}

void tracee_list_print(const struct tracee_list *list, FILE *stream)
{
    const char *separator = "";
    fputc('[', stream);
    for (size_t index = 0; index < list->count; index++) {
        const struct tracee *tracee = list->items[index];
        if (!is_reported(tracee)) {
            continue;
        }
        fprintf(stream, "%s{\"pid\":%d,\"program\":", separator, (int)tracee->pid);
        json_string(stream, tracee->program);
        fprintf(stream,
                ",\"start_s\":%.6f,\"end_s\":%.6f,\"peak_kib\":%lu,\"exit_resident_kib\":%lu,"
                "\"exit_anonymous_kib\":%lu,\"hidden_children\":%s,\"proof\":",
                tracee->start_s,
                tracee->end_s,
                tracee->peak_kib,
                tracee->resident_kib,
                tracee->anonymous_kib,
                tracee->has_hidden_children ? "true" : "false");
        proof_print(&tracee->proof, stream);
        fputc('}', stream);
        separator = ",";
    }
    fputc(']', stream);
}

void tracee_list_free(struct tracee_list *list)
{
    for (size_t index = 0; index < list->count; index++) {
        proof_free(&list->items[index]->proof);
        free(list->items[index]);
    }
    free(list->items);
    *list = (struct tracee_list){0};
}
