// server_phases.c -- a server before, in and after a rush, whose requests leave a little behind.
//
// A request parses its text into short-lived pieces, works on them, and frees them when it is answered, as
// many requests later as are under way at a time: a few, in the rush many, then a few again. One in eight
// leaves an entry in a cache of answers, which lives on and on: the oldest goes when there are too many. Pieces
// and entries have the same sizes, so they meet in the same pages, and after the rush the entries hold the
// pages that the pieces have left. Prints what is resident after the rush, when what can go has gone.
// Answer: the mixed sum of all pieces and entries as they are freed.
#include "support/args.h"
#include "support/block.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
    PIECES = 16,       // of a request
    SIZE_MIN = 32,     // of a piece or an entry
    SIZE_MAX_OF = 512, // likewise
    ENTRY_ONE_IN = 8,  // requests that leave an entry
    UNDER_WAY_MAX = 1 << 15,
    ENTRIES_MAX = 1 << 14,
    WORK = 24, // passes over a piece: what a parser and a handler do with it
};

struct request {
    struct block pieces[PIECES];
    uint64_t stamp;
};

static uint64_t operations;
static uint64_t answer;

static uint64_t digest(const struct block *block, uint64_t sum)
{
    for (unsigned pass = 0; pass < WORK; pass++) {
        for (size_t i = 0; i + 8 <= block->size; i += 8) {
            uint64_t word;
            memcpy(&word, block->bytes + i, sizeof word);
            sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        }
    }
    return sum;
}

// Two functions of their own, as in a server: their calls of malloc are what rules can tell apart.
__attribute__((noinline)) static void server_take_piece(struct block *piece,
                                                        size_t size,
                                                        uint64_t stamp)
{
    piece->bytes = block_require(malloc(size));
    piece->size = size;
    memset(piece->bytes, (int)(stamp & 0xFF), size);
    operations++;
}

__attribute__((noinline)) static void server_take_entry(struct block *entry,
                                                        size_t size,
                                                        uint64_t stamp)
{
    entry->bytes = block_require(malloc(size));
    entry->size = size;
    memset(entry->bytes, (int)(stamp >> 3 & 0xFF), size);
    operations++;
}

static void give(struct block *block)
{
    if (block->bytes != NULL) {
        answer = prng_mix(answer + digest(block, block->size));
        free(block->bytes);
        block->bytes = NULL;
        operations++;
    }
}

static void request_begin(struct request *request, struct prng *prng)
{
    request->stamp = prng_next(prng);
    for (unsigned i = 0; i < PIECES; i++) {
        server_take_piece(
            &request->pieces[i], prng_between(prng, SIZE_MIN, SIZE_MAX_OF), request->stamp + i);
    }
}

static void request_end(struct request *request)
{
    for (unsigned i = 0; i < PIECES; i++) {
        give(&request->pieces[i]);
    }
}

struct server {
    struct request *requests; // those under way: a ring
    struct block *entries;    // likewise
    uint64_t begun;
    uint64_t ended;
    uint64_t entry_count;
    struct prng prng;
};

// Serve that many requests, with `under_way` of them at a time in the end.
static void serve(struct server *server, uint64_t count, uint64_t under_way)
{
    for (; count > 0; count--) {
        request_begin(&server->requests[server->begun++ % UNDER_WAY_MAX], &server->prng);
        if (prng_below(&server->prng, ENTRY_ONE_IN) == 0) {
            struct block *entry = &server->entries[server->entry_count++ % ENTRIES_MAX];
            give(entry);
            server_take_entry(
                entry, prng_between(&server->prng, SIZE_MIN, SIZE_MAX_OF), server->begun);
        }
        // In and after a rush the number changes little by little: two end for each that begins, or none.
        for (unsigned i = 0; i < 2 && server->begun - server->ended > under_way; i++) {
            request_end(&server->requests[server->ended++ % UNDER_WAY_MAX]);
        }
    }
}

int main(int argc, char **argv)
{
    struct args args = args_begin(
        argc,
        argv,
        "server_phases [requests in the rush] [rushes] [milliseconds afterwards] [seed]");
    uint64_t rush = args_number(&args, "requests", 20000, 100, UNDER_WAY_MAX);
    uint64_t rushes = args_number(&args, "rushes", 3, 1, 1000);
    uint64_t after_ms = args_number(&args, "milliseconds", 2500, 0, 1000000);
    struct server server = {.prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0)};
    args_end(&args);

    server.requests = report_table(UNDER_WAY_MAX, sizeof *server.requests);
    server.entries = report_table(ENTRIES_MAX, sizeof *server.entries);
    uint64_t begin_ns = report_clock_ns();
    for (uint64_t i = 0; i < rushes; i++) {
        serve(&server, rush, 200);
        serve(&server, 2 * rush, rush);
        serve(&server, 2 * rush, 200);
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;
    const struct timespec pause = {(time_t)(after_ms / 1000), (long)(after_ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
    printf("resident KiB afterwards: %" PRIu64 "\n", report_resident_kib());
    for (uint64_t i = server.ended; i < server.begun; i++) {
        request_end(&server.requests[i % UNDER_WAY_MAX]);
    }
    for (unsigned i = 0; i < ENTRIES_MAX; i++) {
        give(&server.entries[i]);
    }
    report_answer(answer, operations, elapsed_ns);
    return 0;
}
