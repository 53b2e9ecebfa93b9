// program.h -- a random program of heap operations, and the code that runs it.
//
// A program is an array of operations on numbered slots, spread over some
// threads that take turns, so that it runs the same way every time. Any part of
// a program is a program, too: an operation that does not fit its slot's state
// does what fits, which makes shrinking simple. Every block is checked
// against the model of support/model.h.
#ifndef HAK_TESTS_FUZZ_PROGRAM_H
#define HAK_TESTS_FUZZ_PROGRAM_H

#include "../support/promise.h"

#include "../support/model.h"

#include <pthread.h>

enum {
    HT_SLOTS = 64,
    HT_THREADS = 3,
    HT_MOST_OPERATIONS = 4096,
    HT_OPERATION_BYTES = 6, // one operation is decoded from this many
};

enum ht_kind {
    HT_MALLOC,
    HT_CALLOC,
    HT_ALIGNED,
    HT_REALLOC,
    HT_FREE,
    HT_VERIFY,
    HT_TRIM,
    HT_KINDS
};

static const char *const ht_kind_names[HT_KINDS] = {
    "HT_MALLOC", "HT_CALLOC", "HT_ALIGNED", "HT_REALLOC", "HT_FREE", "HT_VERIFY", "HT_TRIM"};

struct ht_operation {
    enum ht_kind kind;
    unsigned thread;
    unsigned slot;
    size_t size;
    size_t alignment; // of HT_ALIGNED
};

// ---- from bytes, for the fuzzer, and from random numbers ----

// Two bytes give a size: an exponent, and how far it is towards the next one. All
// magnitudes up to 8 MiB are equally frequent, and so are sizes around a power of two.
static inline size_t ht_decode_size(unsigned high, unsigned low)
{
    size_t power = (size_t)1 << (high % 23);
    if (high >= 128 + 64) {
        return power + low % 5 - (power > 2 ? 2 : 0);
    }
    return power + power * low / 256;
}

static inline struct ht_operation ht_decode(const uint8_t *bytes)
{
    // Weights: half of the operations allocate; trims are rare.
    static const enum ht_kind kinds[16] = {
        HT_MALLOC,
        HT_MALLOC,
        HT_MALLOC,
        HT_MALLOC,
        HT_MALLOC,
        HT_CALLOC,
        HT_CALLOC,
        HT_ALIGNED,
        HT_REALLOC,
        HT_REALLOC,
        HT_FREE,
        HT_FREE,
        HT_FREE,
        HT_FREE,
        HT_FREE,
        HT_VERIFY,
    };
    struct ht_operation operation = {
        .kind = kinds[bytes[0] % 16],
        .thread = bytes[0] / 16 % HT_THREADS,
        .slot = bytes[1] % HT_SLOTS,
        .size = ht_decode_size(bytes[2], bytes[3]),
        .alignment = (size_t)1 << (bytes[4] % 17),
    };
    if (operation.kind == HT_VERIFY && bytes[5] % 16 == 0) {
        operation.kind = HT_TRIM;
    }
    return operation;
}

// ---- as text ----

static inline void ht_print_program(FILE *stream,
                                    const struct ht_operation *operations,
                                    size_t count)
{
    fprintf(stream, "static const struct ht_operation program[] = {\n");
    for (size_t i = 0; i < count; i++) {
        const struct ht_operation *operation = &operations[i];
        fprintf(stream,
                "    {%s, %u, %u, %zu, %zu},\n",
                ht_kind_names[operation->kind],
                operation->thread,
                operation->slot,
                operation->size,
                operation->alignment);
    }
    fprintf(stream, "};\n");
}

// ---- running ----

struct ht_machine {
    struct ht_slot slots[HT_SLOTS];
    const struct ht_operation *operations;
    size_t count;
    size_t next; // the next operation, which also decides whose turn it is
    uint64_t tag;
    pthread_mutex_t lock;
    pthread_cond_t turned;
};

static inline void ht_perform(struct ht_machine *machine, const struct ht_operation *operation)
{
    struct ht_slot *slot = &machine->slots[operation->slot];
    size_t size = operation->size;
    uint64_t tag = ++machine->tag;
    if (operation->kind <= HT_ALIGNED) {
        ht_slot_free(slot);
    }
    switch (operation->kind) {
    case HT_MALLOC:
        ht_slot_take(slot, malloc(size), size, _Alignof(max_align_t), tag);
        break;
    case HT_CALLOC: {
        void *block = calloc(1, size);
        HT_CHECK(block != NULL, "calloc(1, %zu) failed", size);
        ht_check_zero(block, size);
        ht_slot_take(slot, block, size, _Alignof(max_align_t), tag);
        break;
    }
    case HT_ALIGNED: {
        void *block = aligned_alloc(operation->alignment, size);
        ht_slot_take(slot, block, size, operation->alignment, tag);
        break;
    }
    case HT_REALLOC:
        if (slot->bytes == NULL) {
            slot->size = 0;
        }
        ht_slot_check(slot, slot->size, "before realloc");
        ht_slot_resize(slot, size == 0 ? 1 : size);
        break;
    case HT_FREE:
        ht_slot_free(slot);
        break;
    case HT_VERIFY:
        for (size_t i = 0; i < HT_SLOTS; i++) {
            if (machine->slots[i].bytes != NULL) {
                ht_slot_check(&machine->slots[i], machine->slots[i].size, "verify");
            }
        }
        break;
    case HT_TRIM:
        malloc_trim(0);
        break;
    case HT_KINDS:
        break;
    }
}

struct ht_turn {
    struct ht_machine *machine;
    unsigned thread;
};

static inline void *ht_take_turns(void *argument)
{
    struct ht_turn *turn = argument;
    struct ht_machine *machine = turn->machine;
    pthread_mutex_lock(&machine->lock);
    while (machine->next < machine->count) {
        const struct ht_operation *operation = &machine->operations[machine->next];
        if (operation->thread != turn->thread) {
            pthread_cond_wait(&machine->turned, &machine->lock);
            continue;
        }
        ht_perform(machine, operation);
        machine->next++;
        bool others = machine->next == machine->count ||
                      machine->operations[machine->next].thread != turn->thread;
        if (others) {
            pthread_cond_broadcast(&machine->turned);
        }
    }
    pthread_mutex_unlock(&machine->lock);
    return NULL;
}

// Run a program and free the blocks that it leaves. Ends the process if the heap is wrong.
static inline void ht_run_program(const struct ht_operation *operations, size_t count)
{
    static struct ht_machine machine;
    memset(&machine, 0, sizeof machine);
    machine.operations = operations;
    machine.count = count;
    pthread_mutex_init(&machine.lock, NULL);
    pthread_cond_init(&machine.turned, NULL);
    pthread_t threads[HT_THREADS];
    struct ht_turn turns[HT_THREADS];
    for (unsigned i = 0; i < HT_THREADS; i++) {
        turns[i] = (struct ht_turn){&machine, i};
        HT_CHECK(pthread_create(&threads[i], NULL, ht_take_turns, &turns[i]) == 0, "no thread");
    }
    for (unsigned i = 0; i < HT_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < HT_SLOTS; i++) {
        ht_slot_free(&machine.slots[i]);
    }
}

#endif
