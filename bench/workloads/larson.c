// larson.c -- a server: threads replace random blocks and pass the others on to their successors.
//
// Each of `threads` lines of threads holds `chunks_per_thread` blocks of `min` … `max` bytes. A
// thread replaces rounds × chunks_per_thread random ones of them, then starts its successor, which
// goes on with the same blocks, and ends. So most blocks are freed by another thread than the one
// that allocated them. With `sleep_s` 0 each line makes `replacements` of them, otherwise it goes on
// until the time is up. Answer: the mixed sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"
#include "support/crew.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static atomic_bool time_is_up;
static sem_t lines_done;

// What one thread passes to the next; only one thread of a line runs at a time.
struct line {
    _Alignas(CREW_APART_BYTES) struct block *blocks;
    uint32_t chunks;
    uint32_t size_min;
    uint32_t size_max;
    uint64_t replacements_per_life;
    uint64_t replacements_left; // UINT64_MAX: until the time is up
    uint64_t replacements_done;
    uint64_t lives;
    uint64_t answer;
    struct prng prng;
    pthread_attr_t *detached;
};

static void line_replace(struct line *line, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t victim = prng_below(&line->prng, line->chunks);
        line->answer += block_give(&line->blocks[victim], victim);
        uint32_t size = prng_between(&line->prng, line->size_min, line->size_max);
        block_take(&line->blocks[victim], size, victim);
    }
    line->replacements_done += count;
}

static void *line_live(void *argument)
{
    struct line *line = argument;
    uint64_t count = line->replacements_per_life;
    bool is_timed = line->replacements_left == UINT64_MAX;
    if (!is_timed && count > line->replacements_left) {
        count = line->replacements_left;
    }
    line_replace(line, count);
    line->lives++;
    if (!is_timed) {
        line->replacements_left -= count;
    }
    bool is_over = is_timed ? atomic_load(&time_is_up) : line->replacements_left == 0;
    pthread_t successor;
    if (is_over) {
        sem_post(&lines_done);
    } else if (pthread_create(&successor, line->detached, line_live, line) != 0) {
        report_exhausted("threads");
    }
    return NULL;
}

static void lines_wait(unsigned count, uint64_t sleep_s)
{
    if (sleep_s > 0) {
        struct timespec span = {.tv_sec = (time_t)sleep_s};
        nanosleep(&span, NULL);
        atomic_store(&time_is_up, true);
    }
    for (unsigned i = 0; i < count; i++) {
        while (sem_wait(&lines_done) != 0) {
            // a signal; wait on
        }
    }
}

static struct line line_read(struct args *args, uint64_t *sleep_s, uint64_t *seed)
{
    struct line line = {0};
    *sleep_s = args_number(args, "sleep_s", 0, 0, 1000000);
    line.size_min = (uint32_t)args_number(args, "min", 8, 1, 1 << 28);
    line.size_max = (uint32_t)args_number(args, "max", 1024, line.size_min, 1 << 28);
    line.chunks = (uint32_t)args_number(args, "chunks_per_thread", 10000, 1, 1 << 28);
    line.replacements_per_life = line.chunks * args_number(args, "rounds", 1, 1, UINT32_MAX);
    *seed = args_number(args, "seed", 12345, 0, UINT64_MAX);
    return line;
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc,
                                  argv,
                                  "larson [sleep_s] [min] [max] [chunks_per_thread] [rounds] "
                                  "[seed] [threads] [replacements]");
    uint64_t sleep_s;
    uint64_t seed;
    struct line first = line_read(&args, &sleep_s, &seed);
    unsigned threads = (unsigned)args_number(&args, "threads", 1, 1, CREW_THREADS_MAX);
    uint64_t replacements = args_number(&args, "replacements", 10000000, 1, UINT64_MAX - 1);
    args_end(&args);
    first.replacements_left = sleep_s > 0 ? UINT64_MAX : replacements;

    pthread_attr_t detached;
    if (pthread_attr_init(&detached) != 0 ||
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED) != 0 ||
        sem_init(&lines_done, 0, 0) != 0) {
        report_exhausted("threads");
    }
    struct line *lines = report_table(threads, sizeof *lines);
    for (unsigned i = 0; i < threads; i++) {
        lines[i] = first;
        lines[i].detached = &detached;
        lines[i].prng = prng_seed(seed, i);
        lines[i].blocks = report_table(first.chunks, sizeof(struct block));
        for (uint32_t chunk = 0; chunk < first.chunks; chunk++) {
            uint32_t size = prng_between(&lines[i].prng, first.size_min, first.size_max);
            block_take(&lines[i].blocks[chunk], size, chunk);
        }
    }

    uint64_t begin_ns = report_clock_ns();
    for (unsigned i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, line_live, &lines[i]) != 0) {
            report_exhausted("threads");
        }
    }
    lines_wait(threads, sleep_s);
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    uint64_t answer = 0;
    uint64_t done = 0;
    uint64_t lives = 0;
    for (unsigned i = 0; i < threads; i++) {
        for (uint32_t chunk = 0; chunk < first.chunks; chunk++) {
            lines[i].answer += block_give(&lines[i].blocks[chunk], chunk);
        }
        answer += lines[i].answer;
        done += lines[i].replacements_done;
        lives += lines[i].lives;
    }
    printf("threads started: %llu\n", (unsigned long long)lives);
    if (sleep_s > 0) {
        report_timed(2 * done, elapsed_ns);
    } else {
        report_answer(answer, 2 * done, elapsed_ns);
    }
    return 0;
}
