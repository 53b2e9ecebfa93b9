// calloc_heavy.c -- zeroed blocks that are often used only in part.
//
// Random slots are replaced by calloc'ed blocks, most of them structures of up to 1 KiB, some
// tables of up to 64 KiB, a few of up to 4 MiB of which only every 16th KiB is touched. Small ones
// are read in full before they are written, the others in steps; all must be zero. Answer: the
// mixed sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"

enum {
    SLOTS = 2000,
    SMALL_BYTES_MAX = 1024,
    TABLE_BYTES_MAX = 64 << 10,
    SPARSE_BYTES_MAX = 4 << 20,
    TABLE_STEP_BYTES = 256,
    SPARSE_STEP_BYTES = 16 << 10,
    // This many slots hold sparse blocks, which would else take all of the memory.
    SPARSE_SLOTS = 8,
};

static void zero_require(const unsigned char *bytes, size_t size, size_t step)
{
    uint64_t found = 0;
    for (size_t i = 0; i + sizeof found <= size; i += step) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        found |= word;
    }
    uint64_t last;
    memcpy(&last, bytes + size - sizeof last, sizeof last);
    if ((found | last) != 0) {
        report_wrong("calloc gave memory that is not zero");
    }
}

// Writes to every checked place, so that a block that is reused without being cleared
// is found.
static void dirty(unsigned char *bytes, size_t size, size_t step)
{
    for (size_t i = 0; i + sizeof(uint64_t) <= size; i += step) {
        uint64_t word = i + 1;
        memcpy(bytes + i, &word, sizeof word);
    }
}

static void slot_take(struct block *slot, struct prng *prng, uint32_t index)
{
    uint32_t low = 16;
    uint32_t high = SMALL_BYTES_MAX;
    size_t step = sizeof(uint64_t);
    if (index < SPARSE_SLOTS) {
        low = TABLE_BYTES_MAX;
        high = SPARSE_BYTES_MAX;
        step = SPARSE_STEP_BYTES;
    } else if (prng_below(prng, 64) == 0) {
        low = SMALL_BYTES_MAX;
        high = TABLE_BYTES_MAX;
        step = TABLE_STEP_BYTES;
    }
    // As programs do, with a count and an entry size; the count rounds the size down to a multiple.
    size_t count = prng_between(prng, low, high) / sizeof(uint64_t);
    slot->size = count * sizeof(uint64_t);
    slot->bytes = block_require(calloc(count, sizeof(uint64_t)));
    zero_require(slot->bytes, slot->size, step);
    dirty(slot->bytes, slot->size, step);
    block_stamp(slot->bytes, slot->size, index);
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "calloc_heavy [replacements] [seed]");
    uint64_t replacements = args_number(&args, "replacements", 1200000, 1, UINT32_MAX);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    struct block *slots = report_table(SLOTS, sizeof *slots);
    uint64_t answer = 0;
    uint64_t begin_ns = report_clock_ns();
    for (uint32_t i = 0; i < SLOTS; i++) {
        slot_take(&slots[i], &prng, i);
    }
    for (uint64_t i = 0; i < replacements; i++) {
        uint32_t victim = prng_below(&prng, SLOTS);
        answer += block_give(&slots[victim], victim);
        slot_take(&slots[victim], &prng, victim);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        answer += block_give(&slots[i], i);
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    report_answer(answer, 2 * (replacements + SLOTS), elapsed_ns);
    return 0;
}
