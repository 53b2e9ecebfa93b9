// with features
// args: 8 12000 1
// args in tsan: 4 2500 1
// native only
// tsan
// secure too
// linked too
//
// Threads that come and go do, at random, everything that the library offers: each function that allocates, frees or
// asks, blocks and heaps' blocks passed to other threads, heaps that are destroyed, walks, trims, forks. An exact table of
// live bytes (support/live.h) tells at each allocation whether it overlaps another; support/model.h checks the contents.
//
// Arguments: <threads> <operations of each> <seed>; seed 0 takes one from the clock. What a thread does next depends
// on the seed and on its own progress, never on the others: a run with one thread is the same each time.
// tools/run_random_options.py runs it with random options.
#include "../support/api.h"
#include "../support/stress.h"

#include "../support/live.h"
#include "../support/model.h"

#include <semaphore.h>

// The runtimes of sanitizers do not survive the fork of a program with threads: their own locks may be held.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#    define HT_FORKS 0
#else
#    define HT_FORKS 1
#endif

enum {
    SLOTS = 128,
    HEAP_SLOTS = 64,
    SHELVES = 64,
    BURST = 300,
    CHILD_OPERATIONS = 200,
    LONGEST_LIFE = 3000,
};

// A heap, which must not be destroyed while others use it or hold a block of it.
struct heap {
    struct hak_heap *heap;
    atomic_int owed;
    struct ht_block blocks[HEAP_SLOTS];
};

struct actor {
    size_t index;
    size_t next; // index of the next operation
    struct ht_block blocks[SLOTS];
    struct ht_block burst[BURST];
    struct heap heap;
    bool is_child;
};

static struct actor actors[HT_MOST_THREADS];
static struct ht_stress stress;
static _Atomic(struct ht_block *) shelves[SHELVES];
static sem_t ended;

// The functions needed here besides the C library's.
#define FOR_EACH_FUNCTION(DO)  \
    DO(hak_heap_create)        \
    DO(hak_heap_destroy)       \
    DO(hak_heap_malloc)        \
    DO(hak_heap_calloc)        \
    DO(hak_heap_aligned_alloc) \
    DO(hak_visit_blocks)       \
    DO(hak_stats_read)         \
    DO(hak_stats_json)         \
    DO(hak_describe)           \
    DO(hak_owns)
#define DECLARE(name) static __typeof__(name) *api_##name;
#define FIND(name)    HT_API_FIND(name);
FOR_EACH_FUNCTION(DECLARE)

// ---- blocks for others ----

// What is on a shelf depends on other threads, so this takes no random numbers from the caller's generator.
static void take_shelved(size_t shelf, struct ht_block *instead, struct ht_random random)
{
    struct ht_block *shelved = atomic_exchange(&shelves[shelf], instead);
    if (shelved == NULL) {
        return;
    }
    struct ht_block block = *shelved;
    ht_live_mark(shelved, sizeof *shelved, false);
    free(shelved);
    if (block.owed == NULL && ht_random_below(&random, 4) == 0) {
        ht_block_resize(&block, &random); // a heap's block must not leave the heap
    }
    ht_block_drop(&block, &random);
}

static void shelve(struct ht_block *block, struct ht_random *random)
{
    const size_t shelf = ht_random_below(random, SHELVES);
    if (block->slot.bytes == NULL) {
        return;
    }
    struct ht_block *copy = malloc(sizeof *copy);
    HT_CHECK(copy != NULL, "no memory for a shelved block");
    ht_live_mark(copy, sizeof *copy, true);
    *copy = *block;
    *block = (struct ht_block){.slot = {NULL, 0, 0}};
    take_shelved(shelf, copy, *random);
}

static void burst(struct actor *actor, struct ht_random *random)
{
    const size_t size = ht_random_size(random, 5000);
    const size_t count = 1 + ht_random_below(random, BURST);
    const size_t stride = 2 * ht_random_below(random, 50) + 1;
    const bool is_for_others = ht_random_below(random, 4) == 0;
    for (size_t i = 0; i < count; i++) {
        ht_block_hold(&actor->burst[i], malloc(size), size, 0, i);
    }
    for (size_t i = 0; i < BURST; i++) { // in order or by a stride
        struct ht_block *block = &actor->burst[i * stride % BURST];
        if (is_for_others) {
            shelve(block, random);
        } else {
            ht_block_drop(block, random);
        }
    }
    for (size_t i = 0; i < BURST; i++) { // those that the stride has missed
        ht_block_drop(&actor->burst[i], random);
    }
}

// ---- heaps ----

static void end_heap(struct heap *heap, struct ht_random random)
{
    if (heap->heap == NULL) {
        return;
    }
    while (atomic_load(&heap->owed) != 0) { // blocks on their way may be on a shelf
        for (size_t i = 0; i < SHELVES; i++) {
            take_shelved(i, NULL, random);
        }
        sched_yield();
    }
    for (size_t i = 0; i < HEAP_SLOTS; i++) {
        struct ht_block *block = &heap->blocks[i];
        if (block->slot.bytes != NULL) {
            ht_slot_check(&block->slot, block->slot.size, "before the heap ends");
            ht_live_mark(block->slot.bytes, block->live, false);
            block->slot.bytes = NULL;
        }
    }
    api_hak_heap_destroy(heap->heap);
    heap->heap = NULL;
}

static void take_from_heap(struct ht_block *block, struct hak_heap *heap, struct ht_random *random)
{
    const size_t size = ht_block_size(random);
    const uint64_t tag = ht_random_next(random);
    const size_t alignment = (size_t)16 << ht_random_below(random, 9);
    switch (ht_random_below(random, 4)) {
    case 0:
        ht_block_take_zeros(block, api_hak_heap_calloc(heap, 1, size), size, tag);
        break;
    case 1:
        ht_block_hold(
            block, api_hak_heap_aligned_alloc(heap, alignment, size), size, alignment, tag);
        break;
    default:
        ht_block_hold(block, api_hak_heap_malloc(heap, size), size, 0, tag);
        break;
    }
}

static void use_heap(struct actor *actor, struct ht_random *random)
{
    struct heap *heap = &actor->heap;
    if (heap->heap == NULL) {
        heap->heap = api_hak_heap_create();
        HT_CHECK(heap->heap != NULL, "no heap");
    }
    for (size_t i = 0; i < 30; i++) {
        struct ht_block *block = &heap->blocks[ht_random_below(random, HEAP_SLOTS)];
        if (block->slot.bytes == NULL) {
            take_from_heap(block, heap->heap, random);
        } else if (ht_random_below(random, 3) == 0) {
            block->owed = &heap->owed;
            atomic_fetch_add(&heap->owed, 1);
            shelve(block, random);
        } else {
            ht_block_drop(block, random);
        }
    }
    if (ht_random_below(random, 4) == 0) {
        end_heap(heap, *random);
    }
}

// ---- questions ----

struct seen {
    const struct ht_block *blocks;
    size_t count;
    unsigned times[SLOTS];
};

static bool see(void *start, size_t bytes, void *argument)
{
    struct seen *seen = argument;
    for (size_t i = 0; i < seen->count; i++) {
        const struct ht_slot *slot = &seen->blocks[i].slot;
        if (slot->bytes == start) {
            seen->times[i] += bytes >= slot->size ? 1 : 1000;
        }
    }
    return true;
}

// Blocks that only this thread frees are visited once each.
static void walk(const struct ht_block *blocks, size_t count, struct hak_heap *heap)
{
    struct seen seen = {blocks, count, {0}};
    HT_CHECK(api_hak_visit_blocks(heap, see, &seen), "not all were visited");
    for (size_t i = 0; i < count; i++) {
        const struct ht_slot *slot = &blocks[i].slot;
        HT_CHECK(seen.times[i] == (slot->bytes != NULL),
                 "the block of %zu at %p was visited %u times",
                 slot->size,
                 (void *)slot->bytes,
                 seen.times[i]);
    }
}

static void describe(const struct ht_slot *slot, struct ht_random *random)
{
    const size_t offset = ht_random_below(random, slot->size + 1);
    struct hak_block_info info;
    if (slot->bytes == NULL || offset == slot->size) {
        return;
    }
    HT_CHECK(api_hak_owns(slot->bytes + offset), "a block's byte is not owned");
    HT_CHECK(api_hak_describe(slot->bytes + offset, &info), "a block is not known");
    HT_CHECK(info.start == slot->bytes && info.bytes >= slot->size && !info.is_free,
             "block of %zu at %p: described as %zu at %p, %s",
             slot->size,
             (void *)slot->bytes,
             info.bytes,
             info.start,
             info.is_free ? "free" : "live");
}

static void read_figures(const struct actor *actor)
{
    static _Thread_local char text[32768];
    struct hak_stats stats;
    size_t count = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        const struct ht_slot *slot = &actor->blocks[i].slot;
        count += slot->bytes != NULL;
        bytes += slot->bytes != NULL ? slot->size : 0;
    }
    api_hak_stats_read(&stats);
    HT_CHECK(stats.live_blocks >= count && stats.live_bytes >= bytes,
             "%zu blocks of %zu bytes are counted, %zu of %zu held",
             stats.live_blocks,
             stats.live_bytes,
             count,
             bytes);
    HT_CHECK(api_hak_stats_json(text, sizeof text) < sizeof text, "the figures are cut");
}

// ---- lives ----

static void operate(struct actor *actor);

static void *live_in_child(void *argument)
{
    struct actor *actor = argument;
    for (size_t i = 0; i < CHILD_OPERATIONS / 2; i++) {
        operate(actor);
    }
    return NULL;
}

static void fork_child(struct actor *actor)
{
    const pid_t child = fork();
    HT_CHECK(child >= 0, "no child: errno %d", errno);
    if (child == 0) {
        actor->is_child = true; // without the threads that hold its heaps' blocks
        pthread_t thread;
        live_in_child(actor);
        HT_CHECK(pthread_create(&thread, NULL, live_in_child, actor) == 0, "no thread");
        pthread_join(thread, NULL);
        for (size_t i = 0; i < SLOTS; i++) {
            struct ht_random random = {i};
            ht_block_drop(&actor->blocks[i], &random);
        }
        _exit(0);
    }
    ht_wait_child(child, "a forked child");
}

static void ask_or_trim(struct actor *actor, struct ht_random *random)
{
    const size_t slot = ht_random_below(random, SLOTS);
    switch (ht_random_below(random, 16)) {
    case 0:
        malloc_trim(0);
        break;
    case 1:
        read_figures(actor);
        break;
    case 2:
        walk(actor->blocks, SLOTS, NULL);
        break;
    case 3:
        if (actor->heap.heap != NULL) {
            walk(actor->heap.blocks, HEAP_SLOTS, actor->heap.heap);
        }
        break;
    case 4:
        if (!actor->is_child && HT_FORKS) {
            fork_child(actor);
        }
        break;
    default:
        describe(&actor->blocks[slot].slot, random);
        break;
    }
}

static void operate(struct actor *actor)
{
    struct ht_random random = {stress.seed * 1000003 + actor->index};
    random.state = ht_random_next(&random) + actor->next++;
    struct ht_block *block = &actor->blocks[ht_random_below(&random, SLOTS)];
    const size_t kind = ht_random_below(&random, 1000);
    if (kind < 700) {
        if (block->slot.bytes == NULL) {
            ht_block_take(block, &random);
        } else if (ht_random_below(&random, 3) == 0) {
            ht_block_resize(block, &random);
        } else {
            ht_block_drop(block, &random);
        }
    } else if (kind < 850) {
        shelve(block, &random);
    } else if (kind < 950) {
        take_shelved(ht_random_below(&random, SHELVES), NULL, random);
    } else if (kind < 970) {
        burst(actor, &random);
    } else if (kind < 985) {
        if (!actor->is_child) {
            use_heap(actor, &random);
        }
    } else {
        ask_or_trim(actor, &random);
    }
}

// One life of an actor. The next one starts before this one ends.
static void *live(void *argument)
{
    struct actor *actor = argument;
    struct ht_random random = {stress.seed + actor->index * 1000 + actor->next};
    for (size_t left = 1 + ht_random_size(&random, LONGEST_LIFE); left > 0; left--) {
        if (actor->next >= stress.operations) {
            sem_post(&ended);
            return NULL;
        }
        operate(actor);
    }
    pthread_t next;
    const int error = pthread_create(&next, NULL, live, actor);
    HT_CHECK(error == 0, "no thread: error %d", error);
    pthread_detach(next);
    return NULL;
}

static void end_all(void)
{
    struct ht_random random = {stress.seed};
    for (size_t i = 0; i < SHELVES; i++) {
        take_shelved(i, NULL, random);
    }
    for (size_t i = 0; i < stress.threads; i++) {
        end_heap(&actors[i].heap, random);
        for (size_t k = 0; k < SLOTS; k++) {
            ht_block_drop(&actors[i].blocks[k], &random);
        }
    }
    HT_CHECK(atomic_load(&ht_live_grains) == 0, "the table of live blocks is not empty");
}

int main(int count, char **arguments)
{
    stress = ht_stress_start(count, arguments);
    HT_CHECK(stress.threads <= HT_MOST_THREADS, "at most %d threads", HT_MOST_THREADS);
    FOR_EACH_FUNCTION(FIND)
    HT_API_FIND(hak_free_sized);
    HT_API_FIND(hak_free_aligned_sized);
    sem_init(&ended, 0, 0);
    for (size_t i = 0; i < stress.threads; i++) {
        pthread_t thread;
        actors[i].index = i;
        HT_CHECK(pthread_create(&thread, NULL, live, &actors[i]) == 0, "no thread");
        pthread_detach(thread);
    }
    for (size_t i = 0; i < stress.threads; i++) {
        while (sem_wait(&ended) != 0) {
        }
    }
    end_all();
    return 0;
}
