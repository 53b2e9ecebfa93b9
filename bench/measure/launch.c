#include "launch.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

// Written by the alarm's handler: which process to end, and that it was ended.
static volatile sig_atomic_t timeout_pid;
static volatile sig_atomic_t timeout_hit;

struct run {
    const struct launch_request *request;
    pid_t root;
    bool root_ended;
    double started_s;
    double root_ended_s;
    struct launch_result *result;
};

static void on_alarm(int signal_number)
{
    (void)signal_number;
    timeout_hit = 1;
    if (timeout_pid != 0) {
        kill((pid_t)timeout_pid, SIGKILL);
    }
}

// The timer repeats: an alarm that arrives just before the wait begins must not be
// the last one. No SA_RESTART, as the wait has to return.
static void arm_timer(unsigned seconds)
{
    struct sigaction action = {.sa_handler = on_alarm};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{1, 0}, {(time_t)seconds, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

// In the child: wait until traced, then become the command.
static _Noreturn void become(const struct launch_request *request, int gate, int report)
{
    char byte;
    while (read(gate, &byte, 1) < 0 && errno == EINTR) {
    }
    execvpe(request->command[0], request->command, request->environment);
    int error = errno;
    ssize_t written = write(report, &error, sizeof(error));
    _exit(written == (ssize_t)sizeof(error) ? 127 : 126);
}

static int trace_options(const struct launch_request *request)
{
    int options = PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK |
                  PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    return request->trace_threads ? options | PTRACE_O_TRACECLONE : options;
}

// Start the command's process and let it go at the moment the clock is read.
static bool start(struct run *run, int *report)
{
    const struct launch_request *request = run->request;
    int gate[2];
    int errors[2];
    if (pipe2(gate, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0) {
        perror("measure: pipe");
        return false;
    }
    run->root = fork();
    if (run->root < 0) {
        perror("measure: fork");
        return false;
    }
    if (run->root == 0) {
        close(gate[1]); // or the child would hold its own gate shut
        become(request, gate[0], errors[1]);
    }
    close(gate[0]);
    close(errors[1]);
    *report = errors[0];
    if (ptrace(PTRACE_SEIZE, run->root, NULL, (void *)(intptr_t)trace_options(request)) != 0) {
        perror("measure: ptrace is not permitted here");
        kill(run->root, SIGKILL);
        return false;
    }
    timeout_pid = run->root;
    arm_timer(request->timeout_s);
    run->started_s = clock_seconds();
    close(gate[1]);
    return true;
}

static void note_child(struct run *run, struct tracee *parent, int event)
{
    unsigned long child_pid = 0;
    double now_s = clock_seconds() - run->started_s;
    if (ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &child_pid) != 0) {
        return;
    }
    struct tracee *child = tracee_announce(&run->result->tracees, (pid_t)child_pid, now_s);
    // The child may have become another program before its parent's stop is seen.
    child->borrows_memory = event == PTRACE_EVENT_VFORK && !child->has_own_program;
    if (event != PTRACE_EVENT_CLONE) {
        parent->children++;
    }
}

// Deal with a stop, and let the process go on in the way that this stop needs.
static void on_stop(struct run *run, pid_t pid, int status)
{
    int event = status >> 16;
    int signal_number = WSTOPSIG(status);
    double stopped_s = clock_seconds();
    struct tracee *tracee = tracee_get(&run->result->tracees, pid, stopped_s - run->started_s);
    switch (event) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
        note_child(run, tracee, event);
        break;
    case PTRACE_EVENT_EXEC:
        tracee->has_own_program = true;
        tracee->borrows_memory = false;
        break;
    case PTRACE_EVENT_EXIT:
        tracee_examine(tracee, stopped_s - run->started_s, run->request->trace_threads);
        run->result->stopped_s += clock_seconds() - stopped_s;
        break;
    case PTRACE_EVENT_STOP:
        if (signal_number != SIGTRAP) {
            ptrace(PTRACE_LISTEN, pid, NULL, NULL); // stopped by job control: stay so
            return;
        }
        break;
    default:
        ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signal_number);
        return;
    }
    ptrace(PTRACE_CONT, pid, NULL, NULL);
}

static void on_end(struct run *run, pid_t pid, int status, const struct rusage *usage)
{
    double now_s = clock_seconds();
    struct tracee *tracee = tracee_get(&run->result->tracees, pid, now_s - run->started_s);
    tracee->has_ended = true;
    if (pid == run->root) {
        run->root_ended = true;
        run->root_ended_s = now_s;
        run->result->status = status;
        run->result->usage = *usage;
        run->result->was_examined = tracee->has_exit_report;
    }
}

static size_t count_running(const struct tracee_list *list)
{
    size_t running = 0;
    for (size_t index = 0; index < list->count; index++) {
        running += !list->items[index]->has_ended && !list->items[index]->is_thread;
    }
    return running;
}

// Until the command has ended, and for a moment longer what it left behind.
static void follow(struct run *run)
{
    enum { GRACE_S = 3 };
    for (;;) {
        int status = 0;
        struct rusage usage;
        bool was_running = !run->root_ended;
        pid_t pid = wait4(-1, &status, __WALL, &usage);
        if (pid < 0) {
            if (errno == EINTR && !run->root_ended) {
                continue; // the timeout has killed the command: its end comes next
            }
            break; // nothing left to wait for, or it takes too long
        }
        if (WIFSTOPPED(status)) {
            on_stop(run, pid, status);
        } else {
            on_end(run, pid, status, &usage);
        }
        if (was_running && run->root_ended) {
            run->result->timed_out = timeout_hit != 0;
            timeout_pid = 0; // from now on an alarm only ends the wait
            arm_timer(GRACE_S);
        }
        if (run->root_ended && count_running(&run->result->tracees) == 0) {
            break;
        }
    }
    arm_timer(0);
}

bool launch(const struct launch_request *request, struct launch_result *result)
{
    memset(result, 0, sizeof(*result));
    struct run run = {.request = request, .result = result};
    int report = -1;
    timeout_hit = 0;
    if (!start(&run, &report)) {
        return false;
    }
    follow(&run);
    if (read(report, &result->start_error, sizeof(result->start_error)) < 0) {
        result->start_error = 0;
    }
    close(report);
    result->wall_s = run.root_ended_s - run.started_s - result->stopped_s;
    result->left_running = count_running(&result->tracees);
    return true;
}
