// service_day.c -- a service's day: how much memory does it take, compared with what it needs?
//
// Workers answer requests, more of them by day than at night, and sleep in between. A request's pieces are freed when as
// many others are under way; in a burst that takes longer. Some requests leave a session, which ends when another one happens
// to overwrite it, or in the evening; others leave an entry in a cache, whose oldest one goes. A log grows by realloc. Visitors are
// threads that come, answer a few requests and end; the workers free what they leave. Three times a day a new release is deployed:
// a thread builds its data, frees the old release's, and ends. In the afternoon blocks are larger than in the morning.
//
// Resident memory is compared with what the program holds the whole time: the bytes that it has requested, all of whose
// pages it has written to. Memory from before its first malloc does not count. With `points`, a line is printed for each
// reading: seconds, live MiB, resident MiB.
// Answer: the mixed sum of all blocks as they are freed.
#include "support/args.h"
#include "support/block.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define USAGE                                                                                \
    "service_day [requests of the busiest worker's slice] [milliseconds of an hour] [seed] " \
    "[points]"

enum {
    HOURS = 24,
    SLICES = 10, // of an hour
    WORKERS = 2,
    BUSIEST = 180, // the hours' loads are in 180ths of this
    PIECES = 12,   // of a request
    UNDER_WAY = 64,
    UNDER_WAY_MAX = 4096, // in a burst
    BURST_SLICE = 3,
    SESSION_ONE_IN = 4,
    SESSIONS_MAX = 60000,
    ENTRY_ONE_IN = 8,
    ENTRIES_MAX = 40000,
    LOG_STEP = 4 << 10,
    LOG_MAX = 2 << 20,
    VISITORS = 8, // in an hour
    VISITOR_REQUESTS = 500,
    VISITOR_LEAVES = 3000, // blocks
    MAIL_MAX = 1 << 16,
    RELEASE_BLOCKS = 120000,
    PAGE = 4096,
    LOOK_MS = 20,
};

static const uint32_t load_of_hour[HOURS] = {4,   4,   4,   4,   4,   4,   20,  60,
                                             120, 160, 180, 160, 120, 140, 160, 150,
                                             140, 130, 120, 110, 80,  40,  15,  6};
static const bool deploys_in_hour[HOURS] = {[7] = true, [13] = true, [19] = true};

// The work of one thread. Others read the live bytes.
struct tally {
    _Alignas(128) _Atomic(int64_t) live;
    uint64_t operations;
    uint64_t answer;
};

struct request {
    struct block pieces[PIECES];
};

struct worker {
    struct tally tally;
    struct prng prng;
    struct request *requests; // those under way: a ring
    struct block *sessions;
    struct block *entries; // a ring
    uint64_t begun;
    uint64_t ended;
    uint64_t entries_begun;
    uint64_t entries_ended;
    struct block log;
};

static struct {
    uint64_t begin_ns;
    uint64_t hour_ns;
    uint64_t busiest; // requests
    uint64_t seed;
    struct worker workers[WORKERS];
    struct tally desk; // of the thread that deploys or visits; there is one at a time
    struct block *releases[2];
    pthread_mutex_t mail_lock;
    struct block *mail; // blocks that visitors leave
    unsigned mail_count;
    atomic_int at_work; // threads
} day;

static void count_live(struct tally *tally, int64_t bytes)
{
    const int64_t live = atomic_load_explicit(&tally->live, memory_order_relaxed);
    atomic_store_explicit(&tally->live, live + bytes, memory_order_relaxed);
    tally->operations++;
}

// The stamp is mixed from the size, so that any thread that frees the block knows it.
static uint64_t stamp_of(size_t size)
{
    return prng_mix(size);
}

static void take(struct tally *tally, struct block *block, size_t size)
{
    const uint64_t stamp = stamp_of(size);
    block_take(block, size, stamp);
    for (size_t at = PAGE; at + sizeof stamp < size; at += PAGE) {
        block->bytes[at] = 1;
    }
    count_live(tally, (int64_t)size);
}

static void give(struct tally *tally, struct block *block)
{
    if (block->bytes != NULL) {
        const int64_t size = (int64_t)block->size;
        tally->answer += block_give(block, stamp_of(block->size));
        count_live(tally, -size);
    }
}

// Most blocks are small, a few are much larger; all are larger in the afternoon.
static size_t draw_size(struct prng *prng, unsigned hour)
{
    const uint64_t chance = prng_next(prng);
    uint32_t most = 256;
    if (chance % (1 << 14) == 0) {
        most = 512 << 10;
    } else if (chance % 512 == 0) {
        most = 32 << 10;
    } else if (chance % 8 == 0) {
        most = 2 << 10;
    }
    return prng_between(prng, 16, most) * (hour < HOURS / 2 ? 2 : 3) / 2;
}

static uint64_t time_of(unsigned hour, unsigned slice)
{
    return day.begin_ns + day.hour_ns * hour + day.hour_ns * slice / SLICES;
}

static void sleep_until(uint64_t ns)
{
    const struct timespec then = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) != 0) {
    }
}

static void request_end(struct worker *worker)
{
    struct request *request = &worker->requests[worker->ended++ % UNDER_WAY_MAX];
    for (unsigned i = 0; i < PIECES; i++) {
        give(&worker->tally, &request->pieces[i]);
    }
}

static void request_begin(struct worker *worker, unsigned hour)
{
    struct request *request = &worker->requests[worker->begun++ % UNDER_WAY_MAX];
    for (unsigned i = 0; i < PIECES; i++) {
        take(&worker->tally, &request->pieces[i], draw_size(&worker->prng, hour));
    }
}

static void log_write(struct worker *worker)
{
    struct block *log = &worker->log;
    if (log->size == LOG_MAX) {
        give(&worker->tally, log);
        *log = (struct block){0};
    }
    if (log->bytes != NULL) {
        block_verify(log->bytes, log->size, stamp_of(log->size));
    }
    log->size += LOG_STEP;
    log->bytes = block_require(realloc(log->bytes, log->size));
    block_stamp(log->bytes, log->size, stamp_of(log->size));
    count_live(&worker->tally, LOG_STEP);
}

// As many as may stay at that hour; the others are freed.
static void entries_trim(struct worker *worker, uint64_t place)
{
    while (worker->entries_begun - worker->entries_ended > place) {
        give(&worker->tally, &worker->entries[worker->entries_ended++ % ENTRIES_MAX]);
    }
}

static void leave_something(struct worker *worker,
                            unsigned hour,
                            uint32_t sessions,
                            uint64_t entries)
{
    const uint32_t chance = prng_below(&worker->prng, SESSION_ONE_IN * ENTRY_ONE_IN);
    if (chance % SESSION_ONE_IN == 0) {
        struct block *session = &worker->sessions[prng_below(&worker->prng, sessions)];
        give(&worker->tally, session);
        take(&worker->tally, session, draw_size(&worker->prng, hour));
    }
    if (chance % ENTRY_ONE_IN == 1) {
        entries_trim(worker, entries - 1);
        struct block *entry = &worker->entries[worker->entries_begun++ % ENTRIES_MAX];
        take(&worker->tally, entry, draw_size(&worker->prng, hour));
    }
}

static void mail_read(struct worker *worker)
{
    pthread_mutex_lock(&day.mail_lock);
    for (unsigned i = 0; i < day.mail_count; i++) {
        give(&worker->tally, &day.mail[i]);
    }
    day.mail_count = 0;
    pthread_mutex_unlock(&day.mail_lock);
}

static void slice_work(struct worker *worker, unsigned hour, unsigned slice)
{
    const uint32_t load = load_of_hour[hour];
    const uint64_t requests = day.busiest * load / BUSIEST;
    const uint32_t sessions = (uint32_t)SESSIONS_MAX * load / BUSIEST;
    const uint64_t entries = (uint64_t)ENTRIES_MAX * (BUSIEST + load) / (2 * BUSIEST);
    const uint64_t under_way = slice == BURST_SLICE ? UNDER_WAY_MAX : UNDER_WAY;
    for (uint32_t i = sessions; i < SESSIONS_MAX; i++) {
        give(&worker->tally, &worker->sessions[i]);
    }
    entries_trim(worker, entries);
    for (uint64_t i = 0; i < requests; i++) {
        request_begin(worker, hour);
        leave_something(worker, hour, sessions, entries);
        // After a burst two end for each that starts.
        for (unsigned k = 0; k < 2 && worker->begun - worker->ended >= under_way; k++) {
            request_end(worker);
        }
        if (i % 64 == 0) {
            log_write(worker);
        }
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (unsigned hour = 0; hour < HOURS; hour++) {
        for (unsigned slice = 0; slice < SLICES; slice++) {
            sleep_until(time_of(hour, slice));
            mail_read(worker);
            slice_work(worker, hour, slice);
        }
    }
    atomic_fetch_sub(&day.at_work, 1);
    return NULL;
}

static void *visit(void *argument)
{
    const unsigned number = *(const unsigned *)argument;
    const unsigned hour = number / VISITORS;
    struct prng prng = prng_seed(day.seed, WORKERS + number);
    for (unsigned i = 0; i < VISITOR_REQUESTS; i++) {
        struct request request;
        for (unsigned k = 0; k < PIECES; k++) {
            take(&day.desk, &request.pieces[k], draw_size(&prng, hour));
        }
        for (unsigned k = 0; k < PIECES; k++) {
            give(&day.desk, &request.pieces[k]);
        }
    }
    for (unsigned i = 0; i < VISITOR_LEAVES; i++) {
        struct block left;
        take(&day.desk, &left, draw_size(&prng, hour));
        pthread_mutex_lock(&day.mail_lock);
        if (day.mail_count < MAIL_MAX) {
            day.mail[day.mail_count++] = left;
        } else {
            give(&day.desk, &left);
        }
        pthread_mutex_unlock(&day.mail_lock);
    }
    return NULL;
}

// Build the new release, then free the old one.
static void *deploy(void *argument)
{
    const unsigned number = *(const unsigned *)argument;
    const unsigned hour = number / VISITORS;
    struct prng prng = prng_seed(day.seed, WORKERS + HOURS * VISITORS + number);
    struct block *old = day.releases[0];
    day.releases[0] = day.releases[1];
    day.releases[1] = old;
    for (unsigned i = 0; i < RELEASE_BLOCKS; i++) {
        take(&day.desk, &day.releases[0][i], draw_size(&prng, hour));
    }
    for (unsigned i = 0; i < RELEASE_BLOCKS; i++) {
        give(&day.desk, &old[i]);
    }
    return NULL;
}

static void run_and_join(void *(*start)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, start, argument) != 0) {
        report_exhausted("no thread");
    }
    pthread_join(thread, NULL);
}

// One thread after another, all day long.
static void *receive(void *unused)
{
    (void)unused;
    for (unsigned number = 0; number < HOURS * VISITORS; number++) {
        const unsigned hour = number / VISITORS;
        const unsigned of_hour = number % VISITORS;
        sleep_until(time_of(hour, 0) + day.hour_ns * of_hour / VISITORS);
        if (number == 0 || (of_hour == 0 && deploys_in_hour[hour])) {
            run_and_join(deploy, &number);
        }
        run_and_join(visit, &number);
    }
    atomic_fetch_sub(&day.at_work, 1);
    return NULL;
}

// What the readings saw.
struct looks {
    uint64_t count;
    double ratios;
    double resident_mib;
    double most_mib;
    FILE *points;
};

static void look(struct looks *looks, double at_start_mib)
{
    int64_t live = atomic_load_explicit(&day.desk.live, memory_order_relaxed);
    for (unsigned i = 0; i < WORKERS; i++) {
        live += atomic_load_explicit(&day.workers[i].tally.live, memory_order_relaxed);
    }
    const double live_mib = (double)live / (1 << 20);
    const double resident_mib = (double)report_resident_kib() / 1024 - at_start_mib;
    const double seconds = (double)(report_clock_ns() - day.begin_ns) / 1e9;
    if (looks->points != NULL) {
        fprintf(looks->points, "%.3f %.3f %.3f\n", seconds, live_mib, resident_mib);
    }
    if (seconds * 1e9 < (double)day.hour_ns) {
        return; // the service is starting
    }
    looks->count++;
    looks->ratios += resident_mib / live_mib;
    looks->resident_mib += resident_mib;
    looks->most_mib = resident_mib > looks->most_mib ? resident_mib : looks->most_mib;
}

static void *touched_table(size_t count, size_t entry_bytes)
{
    return memset(report_table(count, entry_bytes), 0, count * entry_bytes);
}

static void prepare(void)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &day.workers[i];
        worker->prng = prng_seed(day.seed, i);
        worker->requests = touched_table(UNDER_WAY_MAX, sizeof *worker->requests);
        worker->sessions = touched_table(SESSIONS_MAX, sizeof *worker->sessions);
        worker->entries = touched_table(ENTRIES_MAX, sizeof *worker->entries);
    }
    for (unsigned i = 0; i < 2; i++) {
        day.releases[i] = touched_table(RELEASE_BLOCKS, sizeof *day.releases[i]);
    }
    day.mail = touched_table(MAIL_MAX, sizeof *day.mail);
}

// Frees all that is left. Returns the whole answer.
static struct tally end_of_day(void)
{
    struct tally sum = {.operations = day.desk.operations, .answer = day.desk.answer};
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &day.workers[i];
        mail_read(worker);
        while (worker->ended < worker->begun) {
            request_end(worker);
        }
        entries_trim(worker, 0);
        for (unsigned k = 0; k < SESSIONS_MAX; k++) {
            give(&worker->tally, &worker->sessions[k]);
        }
        give(&worker->tally, &worker->log);
        for (unsigned k = 0; k < RELEASE_BLOCKS; k++) {
            give(&worker->tally, &day.releases[i][k]);
        }
        sum.operations += worker->tally.operations;
        sum.answer += worker->tally.answer;
    }
    return sum;
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, USAGE);
    day.busiest = args_number(&args, "requests", 190000, 1000, 10000000);
    day.hour_ns = args_number(&args, "milliseconds", 3000, 10, 3600000) * 1000000;
    day.seed = args_number(&args, "seed", 1, 0, UINT64_MAX);
    const char *points = args_text(&args);
    args_end(&args);

    struct looks looks = {.points = points != NULL ? fopen(points, "w") : NULL};
    if (points != NULL && looks.points == NULL) {
        args_reject(&args, "points", "cannot be written");
    }
    pthread_mutex_init(&day.mail_lock, NULL);
    prepare();
    const double at_start_mib = (double)report_resident_kib() / 1024;
    day.begin_ns = report_clock_ns();
    pthread_t threads[WORKERS + 1];
    atomic_store(&day.at_work, WORKERS + 1);
    for (unsigned i = 0; i <= WORKERS; i++) {
        void *(*start)(void *) = i < WORKERS ? work : receive;
        if (pthread_create(&threads[i], NULL, start, &day.workers[i % WORKERS]) != 0) {
            report_exhausted("no thread");
        }
    }
    while (atomic_load(&day.at_work) > 0) {
        look(&looks, at_start_mib);
        sleep_until(report_clock_ns() + LOOK_MS * 1000000);
    }
    const uint64_t elapsed_ns = report_clock_ns() - day.begin_ns;
    for (unsigned i = 0; i <= WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    const double count = looks.count > 0 ? (double)looks.count : 1;
    printf("resident over live: %.3f\n", looks.ratios / count);
    printf("resident MiB: %.1f\n", looks.resident_mib / count);
    printf("most resident MiB: %.1f\n", looks.most_mib);
    const struct tally sum = end_of_day();
    report_answer(sum.answer, sum.operations, elapsed_ns);
    return 0;
}
