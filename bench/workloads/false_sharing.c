// false_sharing.c -- do two threads end up writing to the same cache line?
//
// Passive: the main thread allocates small blocks for all threads in turn, so that those of
// different threads lie side by side; each thread rewrites its share, frees it and goes on with
// blocks of its own, which must not be the same lines again. Active: the threads use blocks of their
// own from the start. Both write a set of blocks many times over, then replace it. Answer: the mixed
// sum of what is read back from the blocks.
#include "support/args.h"
#include "support/block.h"
#include "support/crew.h"

enum { SET = 32 };

struct member {
    _Alignas(CREW_APART_BYTES) unsigned char *set[SET]; // passive: at first the main thread's
    bool is_given;
    uint64_t sets;
    uint64_t writes;
    size_t size;
    uint64_t answer;
};

// Adds to the first word of each block in turn, `writes` times each. volatile: each write must reach
// the cache line.
static void set_rewrite(struct member *member)
{
    for (unsigned i = 0; i < SET; i++) {
        block_stamp(member->set[i], member->size, i);
    }
    for (uint64_t n = 0; n < member->writes; n++) {
        for (unsigned i = 0; i < SET; i++) {
            volatile uint64_t *word = (uint64_t *)(void *)member->set[i];
            word[0] += n;
        }
    }
    for (unsigned i = 0; i < SET; i++) {
        uint64_t word;
        memcpy(&word, member->set[i], sizeof word);
        member->answer += prng_mix(word + i);
    }
}

static void member_work(void *argument)
{
    struct member *member = argument;
    for (uint64_t n = 0; n < member->sets; n++) {
        for (unsigned i = 0; i < SET && !(n == 0 && member->is_given); i++) {
            member->set[i] = block_require(malloc(member->size));
        }
        set_rewrite(member);
        for (unsigned i = 0; i < SET; i++) {
            free(member->set[i]);
        }
    }
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"passive", "active", NULL};
    struct args args = args_begin(
        argc, argv, "false_sharing [passive | active] [threads] [sets] [writes] [bytes]");
    bool is_active = args_word(&args, "mode", modes) == 1;
    unsigned threads = (unsigned)args_number(&args, "threads", 2, 1, CREW_THREADS_MAX);
    struct member first = {0};
    first.is_given = !is_active;
    first.sets = args_number(&args, "sets", 2500, 1, UINT32_MAX);
    first.writes = args_number(&args, "writes", 4000, 1, UINT32_MAX);
    first.size = args_number(&args, "bytes", 8, sizeof(uint64_t), 4096);
    args_end(&args);

    struct member *members = report_table(threads, sizeof *members);
    for (unsigned i = 0; i < threads; i++) {
        members[i] = first;
    }
    for (unsigned n = 0; n < SET && first.is_given; n++) {
        for (unsigned i = 0; i < threads; i++) {
            members[i].set[n] = block_require(malloc(first.size));
        }
    }
    uint64_t elapsed_ns = crew_run(threads, member_work, members, sizeof *members);

    uint64_t answer = 0;
    for (unsigned i = 0; i < threads; i++) {
        answer += members[i].answer;
    }
    report_answer(answer, 2 * threads * first.sets * SET, elapsed_ns);
    return 0;
}
