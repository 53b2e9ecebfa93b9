// args: 16 6000 1
// args in tsan: 16 800 1
// args in secure: 16 2500 1
// args in mte: 16 800 1
// env: HAKMEM_ARENA_SHARDS=8
// tsan
// secure too
//
// Blocks that grow and shrink all the time, across every border between kinds
// of blocks; other threads have allocated some of them.
#include "../support/stress.h"

#include "../support/model.h"

enum { SLOTS = 48, SHARED = 64 };

static _Atomic(struct ht_slot *) shared[SHARED];

static size_t next_size(struct ht_random *random, size_t size)
{
    static const size_t borders[] = {16, 128, 1024, 32768, 65536, 262144, 2097152};
    switch (ht_random_below(random, 5)) {
    case 0:
        return size + size / 100 + 1;
    case 1:
        return size - size / 3;
    case 2:
        return borders[ht_random_below(random, 6)] + ht_random_below(random, 3) - 1;
    case 3:
        return 1 + ht_random_size(random, 100000);
    default:
        return ht_random_below(random, 40) == 0 ? borders[6] + size : size + 16;
    }
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    struct ht_slot *slots[SLOTS];
    for (size_t i = 0; i < SLOTS; i++) {
        slots[i] = malloc(sizeof *slots[i]);
        HT_CHECK(slots[i] != NULL, "no slot");
        ht_slot_take(slots[i], malloc(i + 1), i + 1, _Alignof(max_align_t), i);
    }
    for (size_t i = 0; i < worker->operations; i++) {
        size_t index = ht_random_below(&worker->random, SLOTS);
        struct ht_slot *slot = slots[index];
        size_t size = next_size(&worker->random, slot->size);
        ht_slot_check(slot, slot->size, "before realloc");
        ht_slot_resize(slot, size > 4 * HT_MIB ? 100 : size);
        if (i % 8 == 0) {
            // Swap with another thread.
            size_t place = ht_random_below(&worker->random, SHARED);
            struct ht_slot *other = atomic_exchange(&shared[place], slot);
            if (other == NULL) {
                other = malloc(sizeof *other);
                HT_CHECK(other != NULL, "no slot");
                ht_slot_take(other, malloc(10), 10, _Alignof(max_align_t), i);
            }
            slots[index] = other;
        }
    }
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(slots[i]);
        free(slots[i]);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    ht_run_rising_threads(&stress, work);
    for (size_t i = 0; i < SHARED; i++) {
        struct ht_slot *slot = atomic_load(&shared[i]);
        if (slot != NULL) {
            ht_slot_free(slot);
            free(slot);
        }
    }
    return 0;
}
