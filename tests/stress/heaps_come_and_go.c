// args: 8 1000 1
// args in tsan: 8 150 1
// args in mte: 8 150 1
// tsan
// secure too
//
// Every thread makes heaps, allocates from them and from malloc, lets other threads free some of the
// blocks, and destroys each heap with the rest of its blocks. No other block may change.
#include "../support/api.h"
#include "../support/stress.h"

#include <sched.h>

#include "../support/model.h"

enum { SLOTS = 120, SHELVES = 16, LARGEST = 3000 };

// A block on its way to the thread that frees it. Its heap must not be destroyed before.
struct gift {
    struct ht_slot slot;
    atomic_int *open_gifts;
};

static __typeof__(hak_heap_create) *api_hak_heap_create;
static __typeof__(hak_heap_destroy) *api_hak_heap_destroy;
static __typeof__(hak_heap_malloc) *api_hak_heap_malloc;
static __typeof__(hak_heap_calloc) *api_hak_heap_calloc;
static __typeof__(hak_heap_aligned_alloc) *api_hak_heap_aligned_alloc;
static _Atomic(struct gift *) shelves[SHELVES];

static void accept_gift(struct gift *gift)
{
    if (gift != NULL) {
        ht_slot_free(&gift->slot);
        atomic_fetch_sub(gift->open_gifts, 1);
        free(gift);
    }
}

static void give_away(struct ht_slot *slot, atomic_int *open_gifts, struct ht_random *random)
{
    struct gift *gift = malloc(sizeof *gift);
    HT_CHECK(gift != NULL, "no gift");
    *gift = (struct gift){*slot, open_gifts};
    slot->bytes = NULL;
    atomic_fetch_add(open_gifts, 1);
    accept_gift(atomic_exchange(&shelves[ht_random_below(random, SHELVES)], gift));
}

static void take_from_heap(struct ht_slot *slot, struct hak_heap *heap, struct ht_random *random)
{
    size_t large = ht_random_below(random, 40) == 0 ? 100 * LARGEST : LARGEST;
    size_t size = 1 + ht_random_size(random, large);
    uint64_t tag = ht_random_next(random);
    size_t alignment = _Alignof(max_align_t);
    void *block = NULL;
    switch (tag % 4) {
    case 0:
        block = api_hak_heap_calloc(heap, 1, size);
        HT_CHECK(block != NULL, "no zeros");
        ht_check_zero(block, size);
        break;
    case 1:
        alignment = (size_t)16 << ht_random_below(random, 9);
        block = api_hak_heap_aligned_alloc(heap, alignment, size);
        break;
    default:
        block = api_hak_heap_malloc(heap, size);
        break;
    }
    ht_slot_take(slot, block, size, alignment, tag);
}

static void live_with_a_heap(struct ht_random *random,
                             struct ht_slot *others,
                             atomic_int *open_gifts)
{
    struct ht_slot slots[SLOTS] = {{NULL, 0, 0}};
    struct hak_heap *heap = api_hak_heap_create();
    HT_CHECK(heap != NULL, "no heap");
    for (int i = 0; i < 400; i++) {
        struct ht_slot *slot = &slots[ht_random_below(random, SLOTS)];
        if (slot->bytes == NULL) {
            take_from_heap(slot, heap, random);
        } else if (ht_random_below(random, 3) == 0) {
            give_away(slot, open_gifts, random);
        } else {
            ht_slot_free(slot);
        }
        ht_slot_step(&others[ht_random_below(random, SLOTS)], random, LARGEST);
    }
    for (size_t i = 0; i < SHELVES; i++) { // ours among them, and others' as well
        accept_gift(atomic_exchange(&shelves[i], NULL));
    }
    while (atomic_load(open_gifts) != 0) {
        sched_yield();
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i].bytes != NULL) {
            ht_slot_check(&slots[i], slots[i].size, "before the heap ends");
        }
    }
    api_hak_heap_destroy(heap);
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    struct ht_slot others[SLOTS] = {{NULL, 0, 0}};
    atomic_int open_gifts = 0;
    for (size_t i = 0; i < worker->operations; i += 10) {
        live_with_a_heap(&worker->random, others, &open_gifts);
        if (i % 100 == 0) {
            malloc_trim(0);
        }
    }
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(&others[i]);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    HT_API_FIND(hak_heap_create);
    HT_API_FIND(hak_heap_destroy);
    HT_API_FIND(hak_heap_malloc);
    HT_API_FIND(hak_heap_calloc);
    HT_API_FIND(hak_heap_aligned_alloc);
    ht_run_rising_threads(&stress, work);
    return 0;
}
