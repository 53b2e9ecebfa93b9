// server_phases.c -- a server before, during and after a rush, whose requests leave a little behind.
//
// A request parses its text into short-lived pieces, works on them, and frees them once as many others have come as
// are under way at a time: a few, in the rush many, then a few again. One in eight
// leaves an entry in a long-lived cache of answers: the oldest one goes when there are too many. Pieces
// and entries have the same sizes, so they share pages, and after the rush the entries hold the pages
// of freed pieces. With a handler, another thread answers the requests, and frees their pieces. With bodies,
// each request also has a large buffer, as in an upload. Prints what is resident after the rush, when all that
// can go back has gone back.
// Answer: the mixed sum of all pieces, bodies and entries as they are freed.
#include "support/args.h"
#include "support/block.h"

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

#define USAGE                                                                  \
    "server_phases [requests in the rush] [rushes] [milliseconds afterwards] " \
    "[passes over a piece] [handlers] [KiB of a body at most] [seed]"

enum {
    PIECES = 16,       // of a request
    SIZE_MIN = 32,     // of a piece or an entry
    SIZE_MAX_OF = 512, // of a piece or an entry
    BODY_MAX_KIB = 1024,
    ENTRY_ONE_IN = 8, // requests that leave an entry
    UNDER_WAY_MAX = 1 << 15,
    ENTRIES_MAX = 1 << 14,
    PASSES = 24, // over a piece: what a parser and a handler do with it
};

struct request {
    struct block pieces[PIECES];
    struct block body; // if there are bodies
    uint64_t stamp;
};

static uint64_t passes;
static uint32_t body_max_kib; // 0: no bodies

// What one thread has done.
struct tally {
    uint64_t operations;
    uint64_t answer;
};

static uint64_t digest(const struct block *block, uint64_t sum)
{
    for (uint64_t pass = 0; pass < passes; pass++) {
        for (size_t i = 0; i + 8 <= block->size; i += 8) {
            uint64_t word;
            memcpy(&word, block->bytes + i, sizeof word);
            sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        }
    }
    return sum;
}

// Two separate functions, as in a server, so that rules can tell their calls of malloc apart.
__attribute__((noinline)) static void server_take_piece(struct block *piece,
                                                        size_t size,
                                                        uint64_t stamp)
{
    piece->bytes = block_require(malloc(size));
    piece->size = size;
    memset(piece->bytes, (int)(stamp & 0xFF), size);
}

__attribute__((noinline)) static void server_take_entry(struct block *entry,
                                                        size_t size,
                                                        uint64_t stamp)
{
    entry->bytes = block_require(malloc(size));
    entry->size = size;
    memset(entry->bytes, (int)(stamp >> 3 & 0xFF), size);
}

static void give(struct block *block, struct tally *tally)
{
    if (block->bytes != NULL) {
        tally->answer = prng_mix(tally->answer + digest(block, block->size));
        free(block->bytes);
        block->bytes = NULL;
        tally->operations += 2; // allocated and freed
    }
}

static void request_begin(struct request *request, struct prng *prng)
{
    request->stamp = prng_next(prng);
    for (unsigned i = 0; i < PIECES; i++) {
        server_take_piece(
            &request->pieces[i], prng_between(prng, SIZE_MIN, SIZE_MAX_OF), request->stamp + i);
    }
    if (body_max_kib != 0) {
        const uint32_t size = prng_between(prng, 1 << 10, body_max_kib << 10);
        server_take_piece(&request->body, size, request->stamp);
    }
}

static void request_answer(struct request *request, struct tally *tally)
{
    for (unsigned i = 0; i < PIECES; i++) {
        give(&request->pieces[i], tally);
    }
    give(&request->body, tally);
}

struct server {
    struct request *requests; // those under way: a ring
    struct block *entries;    // a ring
    uint64_t begun;
    uint64_t ended;
    uint64_t entry_count;
    struct prng prng;
    struct tally tally;
    // Of the handler, if there is one:
    bool has_handler;
    bool is_over;
    sem_t ended_requests; // requests for it to answer; or all is over
    sem_t free_requests;  // of the ring
    struct tally handler_tally;
};

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) {
    }
}

static void *handle(void *argument)
{
    struct server *server = argument;
    for (uint64_t i = 0;; i++) {
        wait_for(&server->ended_requests);
        if (server->is_over) {
            return NULL;
        }
        request_answer(&server->requests[i % UNDER_WAY_MAX], &server->handler_tally);
        sem_post(&server->free_requests);
    }
}

static void request_end(struct server *server)
{
    struct request *request = &server->requests[server->ended++ % UNDER_WAY_MAX];
    if (server->has_handler) {
        sem_post(&server->ended_requests);
    } else {
        request_answer(request, &server->tally);
    }
}

// Serve `count` requests, with `under_way` of them at a time in the end.
static void serve(struct server *server, uint64_t count, uint64_t under_way)
{
    for (; count > 0; count--) {
        if (server->has_handler) {
            wait_for(&server->free_requests);
        }
        request_begin(&server->requests[server->begun++ % UNDER_WAY_MAX], &server->prng);
        if (prng_below(&server->prng, ENTRY_ONE_IN) == 0) {
            struct block *entry = &server->entries[server->entry_count++ % ENTRIES_MAX];
            give(entry, &server->tally);
            server_take_entry(
                entry, prng_between(&server->prng, SIZE_MIN, SIZE_MAX_OF), server->begun);
        }
        // Before and after a rush the number changes gradually: two end for each that starts, or none.
        for (unsigned i = 0; i < 2 && server->begun - server->ended > under_way; i++) {
            request_end(server);
        }
    }
}

static pthread_t handler_start(struct server *server)
{
    pthread_t handler = pthread_self();
    if (server->has_handler && (sem_init(&server->ended_requests, 0, 0) != 0 ||
                                sem_init(&server->free_requests, 0, UNDER_WAY_MAX) != 0 ||
                                pthread_create(&handler, NULL, handle, server) != 0)) {
        report_exhausted("no thread for the handler");
    }
    return handler;
}

// All requests have ended; when this returns, the handler has answered them.
static void handler_end(struct server *server, pthread_t handler)
{
    if (server->has_handler) {
        for (unsigned i = 0; i < UNDER_WAY_MAX; i++) {
            wait_for(&server->free_requests);
        }
        server->is_over = true;
        sem_post(&server->ended_requests);
        pthread_join(handler, NULL);
    }
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, USAGE);
    uint64_t rush = args_number(&args, "requests", 20000, 100, UNDER_WAY_MAX);
    uint64_t rushes = args_number(&args, "rushes", 3, 1, 1000);
    uint64_t after_ms = args_number(&args, "milliseconds", 2500, 0, 1000000);
    passes = args_number(&args, "passes", PASSES, 0, 1000);
    struct server server = {.has_handler = args_number(&args, "handlers", 0, 0, 1) != 0};
    body_max_kib = (uint32_t)args_number(&args, "KiB of a body", 0, 0, BODY_MAX_KIB);
    server.prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    server.requests = report_table(UNDER_WAY_MAX, sizeof *server.requests);
    server.entries = report_table(ENTRIES_MAX, sizeof *server.entries);
    uint64_t begin_ns = report_clock_ns();
    pthread_t handler = handler_start(&server);
    for (uint64_t i = 0; i < rushes; i++) {
        serve(&server, rush, 200);
        serve(&server, 2 * rush, rush);
        serve(&server, 2 * rush, 200);
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;
    const struct timespec pause = {(time_t)(after_ms / 1000), (long)(after_ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
    printf("resident KiB afterwards: %" PRIu64 "\n", report_resident_kib());
    while (server.ended < server.begun) {
        request_end(&server);
    }
    handler_end(&server, handler);
    for (unsigned i = 0; i < ENTRIES_MAX; i++) {
        give(&server.entries[i], &server.tally);
    }
    const struct tally *other = &server.handler_tally;
    report_answer(server.tally.answer + other->answer,
                  server.tally.operations + other->operations,
                  elapsed_ns);
    return 0;
}
