// same_size_batches.c -- batches of blocks of one size, freed in several orders.
//
// Each thread allocates a batch of one size, keeps every eighth block for the next pass, and frees
// the rest: oldest first, newest first, every other one, or from both ends to the middle. The size
// goes up and down between 8 and 1,000 bytes. In mode `handed` a thread frees the batch that its
// neighbour allocated in the pass before. Answer: the mixed sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"
#include "support/crew.h"

#include <pthread.h>

enum {
    BATCH = 2000,
    KEEP_EVERY = 8,
    KEPT = BATCH / KEEP_EVERY,
    ORDERS = 4,
};

static const uint32_t sizes[] = {8, 24, 64, 160, 400, 1000, 640, 256, 100, 40, 16};

struct team {
    pthread_barrier_t pass_done;
    uint32_t passes;
    unsigned threads;
    bool is_handed;
    struct member *members;
};

struct member {
    struct team *team;
    struct block batch[BATCH];
    struct block kept[KEPT]; // of the pass before; bytes NULL before the first pass
    uint64_t answer;
    unsigned index;
};

// The n-th block to free in each of the orders.
static uint32_t place_in_order(uint32_t order, uint32_t n)
{
    switch (order) {
    case 0:
        return n;
    case 1:
        return BATCH - 1 - n;
    case 2:
        return n < BATCH / 2 ? 2 * n : 2 * (n - BATCH / 2) + 1;
    default:
        return n % 2 == 0 ? n / 2 : BATCH - 1 - n / 2;
    }
}

static void member_take(struct member *member, uint32_t pass)
{
    size_t size = sizes[pass % (sizeof sizes / sizeof *sizes)];
    for (uint32_t i = 0; i < BATCH; i++) {
        block_take(&member->batch[i], size, i);
    }
}

// Frees `from`'s batch, except the blocks that stay for one more pass, and the blocks kept in the last pass.
static void member_give(struct member *member, struct member *from, uint32_t pass)
{
    for (uint32_t n = 0; n < BATCH; n++) {
        uint32_t place = place_in_order(pass % ORDERS, n);
        if (place % KEEP_EVERY != 0) {
            member->answer += block_give(&from->batch[place], place);
            continue;
        }
        struct block *kept = &from->kept[place / KEEP_EVERY];
        if (kept->bytes != NULL) {
            member->answer += block_give(kept, place);
        }
        *kept = from->batch[place];
    }
}

static void member_work(void *argument)
{
    struct member *member = argument;
    struct team *team = member->team;
    struct member *from = member;
    if (team->is_handed) {
        from = &team->members[(member->index + 1) % team->threads];
    }
    for (uint32_t pass = 0; pass < team->passes; pass++) {
        member_take(member, pass);
        if (team->is_handed) {
            pthread_barrier_wait(&team->pass_done);
        }
        member_give(member, from, pass);
        if (team->is_handed) {
            pthread_barrier_wait(&team->pass_done);
        }
    }
    for (uint32_t i = 0; i < KEPT; i++) {
        member->answer += block_give(&from->kept[i], i * KEEP_EVERY);
    }
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"own", "handed", NULL};
    struct args args =
        args_begin(argc, argv, "same_size_batches [passes] [threads] [own | handed]");
    struct team team = {0};
    team.passes = (uint32_t)args_number(&args, "passes", 12000, 1, UINT32_MAX);
    team.threads = (unsigned)args_number(&args, "threads", 1, 1, CREW_THREADS_MAX);
    team.is_handed = args_word(&args, "mode", modes) == 1;
    args_end(&args);

    if (pthread_barrier_init(&team.pass_done, NULL, team.threads) != 0) {
        report_exhausted("threads");
    }
    team.members = report_table(team.threads, sizeof *team.members);
    for (unsigned i = 0; i < team.threads; i++) {
        team.members[i].team = &team;
        team.members[i].index = i;
    }
    uint64_t elapsed_ns = crew_run(team.threads, member_work, team.members, sizeof *team.members);

    uint64_t answer = 0;
    for (unsigned i = 0; i < team.threads; i++) {
        answer += team.members[i].answer;
    }
    report_answer(answer, 2ull * team.passes * team.threads * BATCH, elapsed_ns);
    return 0;
}
