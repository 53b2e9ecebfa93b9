// args: 4 200000 1
// args in aarch64: 4 60000 1
// env: HAKMEM_CHECK=1
// with features
//
// Threads ask about addresses of blocks that others are freeing at that moment, and whose memory is used for
// something else: any answer is right, but there must be one, and the others' blocks stay intact.
// (With option check every free reaches its slab, so that slabs end all the time.)
#include "../support/api.h"
#include "../support/stress.h"

#include "../support/model.h"

enum { SLOTS = 16, KNOWN = 64, LARGEST = 100000 };

static __typeof__(hak_describe) *api_hak_describe;
static _Atomic(unsigned char *) known[KNOWN];

static void ask(struct ht_random *random)
{
    const unsigned char *address = atomic_load(&known[ht_random_below(random, KNOWN)]);
    struct hak_block_info info;
    if (address == NULL) {
        return;
    }
    address += ht_random_below(random, 2 * HT_KIB);
    if (api_hak_describe(address, &info)) {
        HT_CHECK(
            info.kind != HAK_BLOCK_FOREIGN, "%p: known, but of no kind", (const void *)address);
        HT_CHECK((const unsigned char *)info.start <= address,
                 "%p: starts at %p",
                 (const void *)address,
                 info.start);
    }
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    struct ht_slot slots[SLOTS] = {{NULL, 0, 0}};
    for (size_t i = 0; i < worker->operations; i++) {
        struct ht_slot *slot = &slots[ht_random_below(&worker->random, SLOTS)];
        ht_slot_step(slot, &worker->random, LARGEST);
        if (slot->bytes != NULL) {
            atomic_store(&known[ht_random_below(&worker->random, KNOWN)], slot->bytes);
        }
        for (int asked = 0; asked < 4; asked++) {
            ask(&worker->random);
        }
    }
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(&slots[i]);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    HT_API_FIND(hak_describe);
    ht_run_rising_threads(&stress, work);
    return 0;
}
