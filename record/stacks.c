// stacks.c -- walking the stack, and finding it among those seen before.
#include "stacks.h"

#include <execinfo.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "stacks/code.h"

#define STACKS_LOG2 16
#define SLOTS       (UINT64_C(2) << STACKS_LOG2)
#define OWN_FRAMES  6 // at most so many lie between the program's call and backtrace()

// A hash table of stacks with open addressing; a slot is written once. A stack's number is its slot's.
static _Atomic(uint64_t) *slots;
static _Atomic(uint32_t) stack_count;
static unsigned frames_wanted;
static uintptr_t own_first, own_end; // addresses of this library

static int note_own_addresses(struct dl_phdr_info *info, size_t size, void *inside)
{
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        const uintptr_t end = first + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0 &&
            (uintptr_t)inside >= first && (uintptr_t)inside < end) {
            own_first = first;
            own_end = end;
            return 1;
        }
    }
    return 0;
}

bool hak_stacks_start(unsigned frames)
{
    frames_wanted = frames + 1 < HAK_STACK_FRAMES_MAX ? frames + 1 : HAK_STACK_FRAMES_MAX;
    void *memory = mmap(NULL,
                        SLOTS * sizeof *slots,
                        PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                        -1,
                        0);
    if (memory == MAP_FAILED) {
        return false;
    }
    slots = memory;
    dl_iterate_phdr(note_own_addresses, (void *)(uintptr_t)&hak_stacks_start);
    void *first_use[1];
    backtrace(first_use, 1); // loads the unwinder, which allocates
    return true;
}

void hak_stacks_reset(void)
{
    if (hak_load_relaxed(&stack_count) != 0) {
        madvise((void *)slots, SLOTS * sizeof *slots, MADV_DONTNEED);
        hak_store_relaxed(&stack_count, 0);
    }
}

static uint64_t hash_of(const uintptr_t *frames, unsigned count)
{
    uint64_t hash = count;
    for (unsigned i = 0; i < count; i++) {
        hash = (hash ^ frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash | 1; // 0 is an empty slot
}

uint32_t hak_stack_number(uintptr_t *frames, unsigned *frame_count, bool *is_new)
{
    void *walked[HAK_STACK_FRAMES_MAX + OWN_FRAMES];
    const int found = backtrace(walked, (int)frames_wanted + OWN_FRAMES);
    int first = 0;
    while (first < found && (uintptr_t)walked[first] - own_first < own_end - own_first) {
        first++;
    }
    unsigned count = 0;
    struct hak_code_hint hint = {0};
    for (int i = first; i < found && count < frames_wanted; i++) {
        frames[count++] = hak_code_place(HAK_PLACE_ADDRESS(walked[i]), &hint);
    }
    *frame_count = count;
    const uint64_t hash = hash_of(frames, count);
    for (uint64_t i = hash >> 7;; i++) {
        const uint64_t slot = i % SLOTS;
        uint64_t there = hak_load_relaxed(&slots[slot]);
        if (there == hash) {
            return (uint32_t)slot + 1;
        }
        if (there != 0) {
            continue;
        }
        if (hak_load_relaxed(&stack_count) >= SLOTS / 2) {
            return 0;
        }
        if (hak_cas_release(&slots[slot], &there, hash)) { // pairs with: nobody; the number is all
            hak_add_relaxed(&stack_count, 1);
            *is_new = true;
            return (uint32_t)slot + 1;
        }
        i--; // another thread was quicker: look again
    }
}
