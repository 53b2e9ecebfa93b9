// args: 8 4000 1
// secure too
//
// Signals arrive at all threads of the process all the time, the allocator's own
// among them; a handler that interrupts its thread outside the allocator allocates
// and frees, also other threads' blocks.
#include "../support/stress.h"

#include "../support/model.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>

enum { SLOTS = 60, LARGEST = 30000, SHARED = 64 };

static _Thread_local volatile sig_atomic_t inside; // the allocator, or the random numbers
static _Thread_local volatile sig_atomic_t handled;
static _Thread_local struct ht_random handler_random;
static _Atomic(struct ht_slot *) shared[SHARED];
static atomic_size_t handlers_that_allocated;
static atomic_bool is_over;

static void handle(int signal_number)
{
    (void)signal_number;
    handled++;
    if (inside) {
        return;
    }
    int saved = errno;
    struct ht_slot *slot = malloc(sizeof *slot);
    HT_CHECK(slot != NULL, "no slot in a handler");
    size_t size = 1 + ht_random_size(&handler_random, LARGEST);
    ht_slot_take(slot, malloc(size), size, _Alignof(max_align_t), size);
    slot = atomic_exchange(&shared[ht_random_below(&handler_random, SHARED)], slot);
    if (slot != NULL) {
        ht_slot_free(slot);
        free(slot);
    }
    atomic_fetch_add(&handlers_that_allocated, 1);
    errno = saved;
}

static volatile double sum;

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    struct ht_slot slots[SLOTS] = {{NULL, 0, 0}};
    handler_random.state = worker->random.state + 1;
    for (size_t i = 0; i < worker->operations; i++) {
        inside = 1;
        ht_slot_step(&slots[ht_random_below(&worker->random, SLOTS)], &worker->random, LARGEST);
        inside = 0;
        for (int j = 1; j < 500; j++) {
            sum += 1.0 / j;
        }
    }
    inside = 1;
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(&slots[i]);
    }
    return NULL; // inside: the end of the thread frees
}

// The timer's signals go to threads that run, which the sweeper hardly ever does.
static void *signal_every_task(void *nothing)
{
    inside = 1; // for opendir
    while (!atomic_load(&is_over)) {
        DIR *tasks = opendir("/proc/self/task");
        HT_CHECK(tasks != NULL, "no list of tasks");
        struct dirent *task;
        while ((task = readdir(tasks)) != NULL) {
            pid_t number = (pid_t)strtol(task->d_name, NULL, 10);
            if (number > 0) {
                syscall(SYS_tgkill, getpid(), number, SIGPROF); // the task may have ended
            }
        }
        closedir(tasks);
        ht_sleep_ms(1);
    }
    return nothing;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    inside = 1; // main starts and joins threads, which allocates
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    HT_CHECK(timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0, "no timer");
    struct itimerspec often = {{0, 200000}, {0, 200000}};
    timer_settime(timer, 0, &often, NULL);
    pthread_t rain;
    HT_CHECK(pthread_create(&rain, NULL, signal_every_task, NULL) == 0, "no thread");
    ht_run_rising_threads(&stress, work);
    atomic_store(&is_over, true);
    pthread_join(rain, NULL);
    timer_delete(timer);
    printf("%zu handlers allocated\n", atomic_load(&handlers_that_allocated));
    return 0;
}
