// within.c -- see within.h. The thread's recorder has the latest such block, a table has the others.
#include "within.h"

#include <stdint.h>

#define SLOTS_LOG2 12
#define PROBES     8

_Atomic(bool) hak_within_any;
static _Atomic(uintptr_t) slots[1 << SLOTS_LOG2]; // 0: free

static _Atomic(uintptr_t) *slot_of(const void *block, unsigned probe)
{
    const uint64_t hash = (uint64_t)(uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15);
    return &slots[((hash >> (64 - SLOTS_LOG2)) + probe) % (1 << SLOTS_LOG2)];
}

static void add(const void *block)
{
    hak_store_relaxed(&hak_within_any, true);
    for (unsigned probe = 0; probe < PROBES; probe++) {
        uintptr_t expected = 0;
        if (hak_cas_relaxed(slot_of(block, probe), &expected, (uintptr_t)block)) {
            return;
        }
    }
}

bool hak_within_drop(const void *block)
{
    for (unsigned probe = 0; probe < PROBES; probe++) {
        uintptr_t expected = (uintptr_t)block;
        if (hak_load_relaxed(slot_of(block, probe)) == expected &&
            hak_cas_relaxed(slot_of(block, probe), &expected, 0)) {
            return true;
        }
    }
    return false;
}

static bool is_in_call(const struct recorder *self)
{
    return self->state == RECORDER_BUSY || self->state == RECORDER_IN_NEW;
}

void hak_within_note(const void *block, size_t bytes)
{
    struct recorder *self = &hak_recorder;
    if (block == NULL || !is_in_call(self)) {
        return;
    }
    if (self->inner != NULL) {
        add(self->inner);
    }
    self->inner = block;
    self->inner_bytes = bytes;
}

void hak_within_forget(const void *block)
{
    if (block == hak_recorder.inner) {
        hak_recorder.inner = NULL;
    } else {
        (void)hak_within_ends(block);
    }
}

void hak_within_keep(const void *result)
{
    struct recorder *self = &hak_recorder;
    if (self->inner != result) {
        add(self->inner);
        (void)hak_within_drop(result);
    }
    self->inner = NULL;
}
