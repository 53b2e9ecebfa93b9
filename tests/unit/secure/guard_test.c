// A guard slot serves one block after another, also if the kernel refuses what is asked of it.
#include "secure/guard.h"

#include "../census.h"

enum { BYTES = 100, ROUNDS = 2, CLASS = 6 };

static char *blocks[HAK_GUARD_SLOTS];

static char *take(void)
{
    const struct hak_request request = {BYTES, 1, HAK_SITE};
    char *block = hak_guard_take(request, CLASS);
    for (int i = 0; block != NULL && i < BYTES; i++) {
        UNIT_EQUAL(block[i], 0);
        block[i] = 0x5a;
    }
    return block;
}

static void give_back(void *block)
{
    hak_guard_put(block, HAK_SITE);
}

static size_t take_all(void)
{
    size_t count = 0;
    while (count < HAK_GUARD_SLOTS && (blocks[count] = take()) != NULL) {
        count++;
    }
    return count;
}

static void give_all(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        give_back(blocks[i]);
    }
}

// As with locked memory.
static void pages_that_are_not_given_back_are_zeros_again(void)
{
    hak_fake.refuse_purge = true;
    for (int i = 0; i < ROUNDS; i++) {
        UNIT_EQUAL(take_all(), HAK_GUARD_SLOTS);
        give_all(HAK_GUARD_SLOTS);
    }
    hak_fake.refuse_purge = false;
    UNIT_EQUAL(take_all(), HAK_GUARD_SLOTS);
    give_all(HAK_GUARD_SLOTS);
}

static void a_refusal_costs_no_slot(void)
{
    UNIT_EQUAL(take_all(), HAK_GUARD_SLOTS);
    hak_fake.refuse_guard = true;
    give_all(HAK_GUARD_SLOTS);
    UNIT_EQUAL(take_all(), HAK_GUARD_SLOTS);
    hak_fake.refuse_guard = false;
    give_all(HAK_GUARD_SLOTS);
    UNIT_EQUAL(take_all(), HAK_GUARD_SLOTS);
    give_all(HAK_GUARD_SLOTS);
}

struct seen {
    const char *start;
    size_t bytes;
    size_t count;
};

static bool see(void *start, size_t bytes, void *argument)
{
    struct seen *seen = argument;
    seen->start = start;
    seen->bytes = bytes;
    return ++seen->count < 2;
}

static size_t count_seen(struct seen *seen)
{
    seen->count = 0;
    hak_lock_take(&hak_arena.lock);
    hak_guard_visit(see, seen);
    hak_lock_drop(&hak_arena.lock);
    return seen->count;
}

static void those_in_use_are_visited(void)
{
    struct seen seen;
    UNIT_EQUAL(count_seen(&seen), 0);
    char *block = take();
    UNIT_EQUAL(count_seen(&seen), 1);
    UNIT_CHECK(seen.start == block && seen.bytes == BYTES);
    UNIT_EQUAL(take_all(), HAK_GUARD_SLOTS - 1);
    UNIT_EQUAL(count_seen(&seen), 2); // the visitor wants no more
    give_all(HAK_GUARD_SLOTS - 1);
    give_back(block);
    UNIT_EQUAL(count_seen(&seen), 0);
}

// The class has an alignment of 16; a rule for the site may ask for more.
static void a_block_is_aligned_as_its_request_says(void)
{
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        const struct hak_request request = {BYTES, alignment, HAK_SITE};
        char *block = hak_guard_take(request, CLASS);
        UNIT_CHECK(block != NULL && (uintptr_t)block % (alignment > 16 ? alignment : 16) == 0);
        give_back(block);
    }
}

// Such a write does not fault: it is found when the slot's turn comes.
static void a_write_to_a_freed_block_that_is_not_guarded_is_found(void)
{
    char *block = take();
    hak_fake.refuse_guard = true;
    give_back(block);
    block[7] = 1;
    UNIT_DIES(take_all(), "hakmem: use after free: ");
}

// Then the request gets an ordinary block; no guarded one is there to be visited.
static void without_memory_for_the_slots_there_is_none(void)
{
    struct seen seen;
    hak_fake.refuse_asks = true;
    UNIT_CHECK(take() == NULL);
    UNIT_CHECK(!hak_guard_owns(&seen));
    UNIT_EQUAL(count_seen(&seen), 0);
    hak_fake.refuse_asks = false;
}

int main(void)
{
    new_thread();
    without_memory_for_the_slots_there_is_none();
    pages_that_are_not_given_back_are_zeros_again();
    a_refusal_costs_no_slot();
    those_in_use_are_visited();
    a_block_is_aligned_as_its_request_says();
    a_write_to_a_freed_block_that_is_not_guarded_is_found();
    return 0;
}
