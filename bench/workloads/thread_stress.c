// thread_stress.c -- many short-lived threads that leave objects to each other.
//
// Waves of threads come and go. Each allocates objects, some of them large, keeps a part for a
// while, and swaps others with objects in a shared exchange, where threads of this and later
// waves find and free them. Every object is full of words made from its seed, and the thread that
// frees it checks it. Answer: the sum of the seeds of all objects, which is equal for those made and
// those freed.
#include "support/args.h"
#include "support/block.h"
#include "support/crew.h"

#include <stdatomic.h>

enum {
    EXCHANGE_SLOTS = 1000,
    KEPT_OBJECTS = 200,
    // Words of an object: mostly a few, one in 50 a few hundred, one in 2,000 many pages.
    SMALL_WORDS_MAX = 24,
    MEDIUM_WORDS_MAX = 400,
    LARGE_WORDS_MAX = 20000,
};

// words[i] == seed ^ (i + 1), so that any thread can check an object without knowing it.
struct object {
    uint64_t seed;
    uint32_t count;
    uint64_t words[];
};

struct member {
    uint64_t objects;
    uint64_t made;
    uint64_t freed;
    struct prng prng;
    struct object *kept[KEPT_OBJECTS];
};

static _Atomic(struct object *) exchange[EXCHANGE_SLOTS];

static struct object *object_make(struct member *member)
{
    uint64_t seed = prng_next(&member->prng);
    uint32_t kind = prng_below(&member->prng, 2000);
    uint32_t words_max = kind == 0   ? LARGE_WORDS_MAX
                         : kind < 40 ? MEDIUM_WORDS_MAX
                                     : SMALL_WORDS_MAX;
    uint32_t count = prng_between(&member->prng, 1, words_max);
    struct object *object = block_require(malloc(sizeof *object + count * sizeof(uint64_t)));
    object->seed = seed;
    object->count = count;
    for (uint32_t i = 0; i < count; i++) {
        object->words[i] = seed ^ (i + 1);
    }
    member->made += prng_mix(seed);
    return object;
}

static void object_free(struct member *member, struct object *object)
{
    if (object == NULL) {
        return;
    }
    uint64_t difference = 0;
    for (uint32_t i = 0; i < object->count; i++) {
        difference |= object->words[i] ^ object->seed ^ (i + 1);
    }
    if (difference != 0) {
        report_wrong("an object has changed on its way");
    }
    member->freed += prng_mix(object->seed);
    free(object);
}

static void member_work(void *argument)
{
    struct member *member = argument;
    for (uint64_t i = 0; i < member->objects; i++) {
        struct object *object = object_make(member);
        uint32_t fate = prng_below(&member->prng, 8);
        if (fate < 4) {
            object_free(member, object);
        } else if (fate < 7) {
            struct object **kept = &member->kept[prng_below(&member->prng, KEPT_OBJECTS)];
            object_free(member, *kept);
            *kept = object;
        } else {
            uint32_t slot = prng_below(&member->prng, EXCHANGE_SLOTS);
            object_free(member, atomic_exchange(&exchange[slot], object));
        }
    }
    // Half of the kept objects are freed with the thread, the other half goes on to later threads.
    for (uint32_t i = 0; i < KEPT_OBJECTS; i++) {
        struct object *object = member->kept[i];
        if (i % 2 == 0) {
            uint32_t slot = prng_below(&member->prng, EXCHANGE_SLOTS);
            object = atomic_exchange(&exchange[slot], object);
        }
        object_free(member, object);
        member->kept[i] = NULL;
    }
}

int main(int argc, char **argv)
{
    struct args args =
        args_begin(argc, argv, "thread_stress [threads] [waves] [objects_per_thread] [seed]");
    unsigned threads = (unsigned)args_number(&args, "threads", 8, 1, CREW_THREADS_MAX);
    uint64_t waves = args_number(&args, "waves", 100, 1, UINT32_MAX);
    uint64_t objects = args_number(&args, "objects_per_thread", 20000, 1, UINT32_MAX);
    uint64_t seed = args_number(&args, "seed", 1, 0, UINT64_MAX);
    args_end(&args);

    struct member *members = report_table(threads, sizeof *members);
    for (unsigned i = 0; i < threads; i++) {
        members[i].objects = objects;
        members[i].prng = prng_seed(seed, i);
    }
    uint64_t elapsed_ns = 0;
    for (uint64_t wave = 0; wave < waves; wave++) {
        elapsed_ns += crew_run(threads, member_work, members, sizeof *members);
    }
    for (unsigned i = 0; i < EXCHANGE_SLOTS; i++) {
        object_free(&members[0], atomic_exchange(&exchange[i], NULL));
    }

    uint64_t made = 0;
    uint64_t freed = 0;
    for (unsigned i = 0; i < threads; i++) {
        made += members[i].made;
        freed += members[i].freed;
    }
    if (made != freed) {
        report_wrong("other objects were freed than were made");
    }
    report_answer(made, 2 * threads * waves * objects, elapsed_ns);
    return 0;
}
