// crew.c -- threads that start together, see crew.h.
#include "crew.h"
#include "report.h"

#include <pthread.h>

struct crew_seat {
    pthread_barrier_t *start;
    void (*work)(void *member);
    void *member;
};

static void *crew_enter(void *argument)
{
    struct crew_seat *seat = argument;
    pthread_barrier_wait(seat->start);
    seat->work(seat->member);
    return NULL;
}

uint64_t crew_run(unsigned count, void (*work)(void *member), void *members, size_t member_bytes)
{
    pthread_t threads[CREW_THREADS_MAX];
    struct crew_seat seats[CREW_THREADS_MAX];
    pthread_barrier_t start;
    if (count > CREW_THREADS_MAX || pthread_barrier_init(&start, NULL, count + 1) != 0) {
        report_exhausted("threads");
    }
    for (unsigned i = 0; i < count; i++) {
        void *member = (unsigned char *)members + i * member_bytes;
        seats[i] = (struct crew_seat){.start = &start, .work = work, .member = member};
        if (pthread_create(&threads[i], NULL, crew_enter, &seats[i]) != 0) {
            report_exhausted("threads");
        }
    }
    uint64_t begin_ns = report_clock_ns();
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    uint64_t end_ns = report_clock_ns();
    pthread_barrier_destroy(&start);
    return end_ns - begin_ns;
}
