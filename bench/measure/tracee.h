// tracee.h -- one process of the measured command, and the list of all of them.
#ifndef MEASURE_TRACEE_H
#define MEASURE_TRACEE_H

#include "proof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct tracee {
    pid_t pid;
    bool borrows_memory;  // started by vfork and not yet a program of its own
    bool has_own_program; // it has called exec
    bool is_announced;    // its parent's stop has been seen
    bool is_thread;       // a thread of another process: not reported
    bool has_exit_report; // the fields below are filled in
    bool has_ended;
    size_t children;             // that we saw it start
    double start_s;              // since the command started
    double end_s;                // at its exit stop
    unsigned long peak_kib;      // VmHWM at exit
    unsigned long resident_kib;  // VmRSS at exit
    unsigned long anonymous_kib; // RssAnon at exit
    bool has_hidden_children;    // it waited for children that we never saw
    char program[4096];
    struct proof proof;
};

// Keeps its elements in the order in which the processes appeared.
struct tracee_list {
    struct tracee **items;
    size_t count;
};

// The process `pid` that is still running, added when it is new.
struct tracee *tracee_get(struct tracee_list *list, pid_t pid, double now_s);

// The process that a parent's stop tells of. It may be known already, and may even
// have ended, as the stops of two processes arrive in any order.
struct tracee *tracee_announce(struct tracee_list *list, pid_t pid, double now_s);

// At a process's exit stop, when its memory is still there: read all of it.
// `sees_threads` says that no child can have been missed.
void tracee_examine(struct tracee *tracee, double now_s, bool sees_threads);

// The largest peak of one process.
unsigned long tracee_list_peak(const struct tracee_list *list);

// The largest sum of the peaks of processes that lived at the same time: an upper
// bound for the whole tree, as shared pages count for each process.
unsigned long tracee_list_tree_peak(const struct tracee_list *list);

void tracee_list_print(const struct tracee_list *list, FILE *stream);
void tracee_list_free(struct tracee_list *list);

#endif
