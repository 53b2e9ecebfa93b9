// launch.h -- runs one command under a trace that stops it only where it must.
//
// The command's processes stop when they start a process, change their program,
// receive a signal, or exit; never for a system call, a page fault or (unless asked
// for) a thread. At the exit stop the memory is still there, so its peak and its
// allocator are read from the process itself.
#ifndef MEASURE_LAUNCH_H
#define MEASURE_LAUNCH_H

#include "tracee.h"

#include <stdbool.h>
#include <sys/resource.h>

struct launch_request {
    char *const *command;     // ends with NULL
    char *const *environment; // ends with NULL
    unsigned timeout_s;       // 0: none
    bool trace_threads;       // also see processes that threads start
};

struct launch_result {
    int start_error; // errno of a failed start; 0 when it ran
    int status;      // as from waitpid
    bool timed_out;
    bool was_examined;   // the command's own process was seen at its exit
    size_t left_running; // processes that outlived the command
    double wall_s;       // without the time that we kept processes stopped
    double stopped_s;    // that time
    struct rusage usage; // of the command and the children it waited for
    struct tracee_list tracees;
};

// Run the command to its end. False, with a message printed, when tracing fails.
bool launch(const struct launch_request *request, struct launch_result *result);

#endif
