// give_back.c -- how long does one call take at worst while a gigabyte goes back to the system?
//
// A heap of blocks of four sizes is filled, freed in random order, and then used lightly for as
// long as allocators take to give the rest back. Every call is timed on its own, and so is the
// first write into each block, which waits if another thread holds the lock of the address space.
// Prints the longest of each, in nanoseconds, the cost of reading the clock left in; `idle` is the
// longest pause in a loop that calls nothing, which is what the machine itself adds. Then what is
// resident. Answer: the mixed sum of the stamps of the heap's blocks.
#include "support/args.h"
#include "support/block.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

enum { SIZES = 4, LIGHT_BLOCKS = 512, IDLE_NS = 300000000 };

static const uint32_t sizes[SIZES] = {64, 1000, 20000, 300000};

// The longest of each kind of pause.
struct longest {
    uint64_t malloc_ns;
    uint64_t write_ns;
    uint64_t free_ns;
};

static uint64_t calls;

static uint64_t note(uint64_t *longest_ns, uint64_t begin_ns)
{
    uint64_t now = report_clock_ns();
    *longest_ns = now - begin_ns > *longest_ns ? now - begin_ns : *longest_ns;
    return now;
}

static void timed_take(struct longest *longest, struct block *slot, size_t size, uint64_t stamp)
{
    uint64_t begin = report_clock_ns();
    slot->bytes = malloc(size);
    begin = note(&longest->malloc_ns, begin);
    slot->size = size;
    memset(block_require(slot->bytes), 1, size);
    block_stamp(slot->bytes, size, stamp);
    note(&longest->write_ns, begin);
    calls++;
}

static uint64_t timed_give(struct longest *longest, struct block *slot, uint64_t stamp)
{
    block_verify(slot->bytes, slot->size, stamp);
    uint64_t begin = report_clock_ns();
    free(slot->bytes);
    note(&longest->free_ns, begin);
    calls++;
    return prng_mix(stamp + slot->size);
}

static uint64_t longest_idle_ns(void)
{
    uint64_t longest = 0;
    const uint64_t begin = report_clock_ns();
    for (uint64_t last = begin; last < begin + IDLE_NS;) {
        last = note(&longest, last);
    }
    return longest;
}

// Fill, and free in random order. Returns the answer.
static uint64_t fill_and_free(uint64_t bytes, struct longest *longest, struct prng *prng)
{
    size_t count = 0;
    for (unsigned i = 0; i < SIZES; i++) {
        count += bytes / SIZES / sizes[i];
    }
    struct block *heap = report_table(count, sizeof *heap);
    uint32_t *order = report_table(count, sizeof *order);
    memset(heap, 0, count * sizeof *heap); // page faults on this table are not to be timed
    size_t filled = 0;
    for (unsigned i = 0; i < SIZES; i++) {
        for (size_t left = bytes / SIZES / sizes[i]; left > 0; left--) {
            order[filled] = (uint32_t)filled;
            timed_take(longest, &heap[filled], sizes[i], filled);
            filled++;
        }
    }
    uint64_t answer = 0;
    for (size_t left = count; left > 0; left--) {
        const uint32_t victim = prng_below(prng, (uint32_t)left);
        const uint32_t slot = order[victim];
        order[victim] = order[left - 1];
        answer += timed_give(longest, &heap[slot], slot);
    }
    munmap(heap, count * sizeof *heap); // only the allocator's memory is to be resident
    munmap(order, count * sizeof *order);
    return answer;
}

static void use_lightly(uint64_t until_ns, struct longest *longest, struct prng *prng)
{
    static struct block light[LIGHT_BLOCKS];
    while (report_clock_ns() < until_ns) {
        const uint32_t slot = prng_below(prng, LIGHT_BLOCKS);
        if (light[slot].bytes != NULL) {
            timed_give(longest, &light[slot], slot);
        }
        timed_take(longest, &light[slot], sizes[prng_below(prng, 3)], slot);
    }
    for (uint32_t slot = 0; slot < LIGHT_BLOCKS; slot++) {
        if (light[slot].bytes != NULL) {
            timed_give(longest, &light[slot], slot);
        }
    }
}

static void print_longest(const char *when, const struct longest *longest)
{
    printf("malloc %s %10" PRIu64 " ns\n", when, longest->malloc_ns);
    printf("write %s  %10" PRIu64 " ns\n", when, longest->write_ns);
    printf("free %s   %10" PRIu64 " ns\n", when, longest->free_ns);
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "give_back [mib] [milliseconds afterwards] [seed]");
    uint64_t mib = args_number(&args, "mib", 1024, 1, 65536);
    uint64_t after_ms = args_number(&args, "milliseconds", 2500, 0, 1000000);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    struct longest before = {0, 0, 0};
    struct longest after = {0, 0, 0};
    const uint64_t begin_ns = report_clock_ns();
    const uint64_t answer = fill_and_free(mib << 20, &before, &prng);
    const uint64_t freed_ns = report_clock_ns();
    use_lightly(freed_ns + after_ms * 1000000, &after, &prng);
    const uint64_t resident = report_resident_kib();
    printf("idle          %10" PRIu64 " ns\n", longest_idle_ns());
    print_longest("before", &before);
    print_longest("after ", &after);
    printf("resident KiB afterwards: %" PRIu64 "\n", resident);
    report_answer(answer, calls, freed_ns - begin_ns);
    return 0;
}
