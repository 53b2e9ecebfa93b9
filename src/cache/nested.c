// nested.c -- see nested.h.
#include "cache/nested.h"

#include "base/bits.h"
#include "cache/fast_path.h"
#include "cache/refuse.h"
#include "os/os.h"

// A piece has 2^log2 bytes. It contains a block behind a header; with a large alignment, both lie further on in it.
enum { GRAIN = 16, PIECE_LOG2_MIN = 5, PIECE_LOG2_MAX = HAK_SUPER_LOG2 - 1 };

struct header {
    size_t bytes;   // of the block; 0: it is free
    uint32_t piece; // in grains from the start of the small heap
    uint32_t log2;  // of the piece's bytes
};
_Static_assert(sizeof(struct header) == GRAIN, "a block behind it is aligned");

// A free piece. `bytes` lies where the header's does, if the header is at the piece's start: it stays 0.
struct link {
    size_t bytes;
    _Atomic(uint32_t) next;
};

struct hak_nested_later {
    struct hak_nested_later *next;
    void *block;
};

HAK_TLS bool hak_is_nested;
_Atomic(uint32_t) hak_nested_state;
_Atomic(struct hak_nested_later *) hak_nested_waiting;

// The first grain of the small heap that was never in a piece. Grain 0 is not used, because 0 ends a list.
static _Atomic(uint32_t) fresh = 1;
// The free pieces of each size, the last one freed first. The lower 32 bits: the first piece, 0: none. The upper ones: how often
// the list has changed, against ABA.
//   pushed by    any thread   piece_give   CAS, release
//   popped by    any thread   piece_take   load, acquire; CAS
static _Atomic(uint64_t) lists[PIECE_LOG2_MAX + 1];

// NULL: the thread is inside already, because a listener may itself make such a call.
void *hak_nested_begin(void)
{
    if (hak_is_nested) {
        return NULL;
    }
    struct hak_cache *cache = hak_cache_self;
    hak_cache_become(&hak_cache_nobody);
    hak_is_nested = true;
    return cache;
}

void hak_nested_end(void *before)
{
    if (before != NULL) {
        hak_is_nested = false;
        hak_cache_become(before);
    }
}

// Map the small heap, which `may_exist`. Returns the new state.
static uint32_t map_it(bool may_exist)
{
    bool is_taken = false;
    const bool is_mapped =
        hak_os_map_at(hak_map.window, HAK_SUPER_BYTES, &is_taken) == (void *)hak_map.window;
    const bool is_there = is_mapped || (may_exist && is_taken);
    const uint32_t state = is_there ? HAK_NESTED_READY : HAK_NESTED_REFUSED;
    hak_store_release(&hak_nested_state, state); // pairs with: is_ready
    return state;
}

// The thread that was mapping the small heap may not exist in the child, and may have mapped it before the fork.
void hak_nested_forked(void)
{
    if (!hak_is_nested && hak_load_relaxed(&hak_nested_state) == HAK_NESTED_BUSY) {
        map_it(true);
    }
}

// Map the small heap, unless another thread has. False: it cannot be mapped.
static bool is_ready(void)
{
    uint32_t state = HAK_NESTED_NONE;
    // pairs with: map_it
    if (hak_cas_acquire(&hak_nested_state, &state, HAK_NESTED_BUSY)) {
        state = map_it(false);
    }
    // Another thread maps it: wait as long as that call may take. A child made without fork's handlers may not have that thread.
    for (unsigned looks = 0; state == HAK_NESTED_BUSY && looks < 100; looks++) {
        hak_os_wait(&hak_nested_state, HAK_NESTED_BUSY, 1);
        state = hak_load_acquire(&hak_nested_state); // pairs with: map_it
    }
    return state == HAK_NESTED_READY;
}

static struct header *header_of(const void *block)
{
    return (struct header *)((uintptr_t)block - sizeof(struct header));
}

static struct link *link_of(uint32_t piece)
{
    return (struct link *)(void *)(hak_map.window + (size_t)piece * GRAIN);
}

static uint64_t changed(uint64_t list, uint32_t first)
{
    return ((list >> 32) + 1) << 32 | first;
}

// 0: the small heap is used up.
static uint32_t piece_take_fresh(size_t bytes)
{
    const size_t grains = bytes / GRAIN;
    uint32_t first = hak_load_relaxed(&fresh);
    do {
        if (first + grains > HAK_SUPER_BYTES / GRAIN) {
            return 0;
        }
    } while (!hak_cas_relaxed(&fresh, &first, first + (uint32_t)grains));
    return first;
}

// Step take of nested.pml.
static uint32_t piece_take(unsigned log2)
{
    for (;;) {
        uint64_t list = hak_load_acquire(&lists[log2]); // pairs with: piece_give
        const uint32_t first = (uint32_t)list;
        if (first == 0) {
            return piece_take_fresh((size_t)1 << log2);
        }
        // The piece may be in use by now, and this any number: then the list has changed, and the CAS fails.
        const uint32_t next = hak_load_relaxed(&link_of(first)->next);
        if (hak_cas_relaxed(&lists[log2], &list, changed(list, next))) {
            return first;
        }
    }
}

// Step give of nested.pml.
static void piece_give(uint32_t piece, unsigned log2)
{
    uint64_t list = hak_load_relaxed(&lists[log2]);
    do {
        hak_store_relaxed(&link_of(piece)->next, (uint32_t)list);
        // pairs with: piece_take
    } while (!hak_cas_release(&lists[log2], &list, changed(list, piece)));
}

static void *alloc_own(size_t bytes, size_t alignment)
{
    const size_t more = alignment > GRAIN ? alignment : 0;
    if (bytes > HAK_SUPER_BYTES || alignment > HAK_SUPER_BYTES || !is_ready()) {
        return NULL;
    }
    unsigned log2 = hak_highest_bit(sizeof(struct header) + bytes + more - 1) + 1;
    log2 = log2 < PIECE_LOG2_MIN ? PIECE_LOG2_MIN : log2;
    const uint32_t piece = log2 <= PIECE_LOG2_MAX ? piece_take(log2) : 0;
    if (piece == 0) {
        return NULL;
    }
    const uintptr_t first = (uintptr_t)link_of(piece) + sizeof(struct header);
    void *block = (void *)(more == 0 ? first : hak_align_up(first, alignment));
    *header_of(block) = (struct header){bytes == 0 ? 1 : bytes, piece, log2};
    return block;
}

// Does not look into the cause of a refusal, because that takes locks.
void *hak_nested_alloc(struct hak_request request)
{
    void *block = alloc_own(request.bytes, request.alignment);
    return block != NULL ? block : hak_refuse(HAK_REFUSE_EXHAUSTION, request);
}

size_t hak_nested_usable(const void *block)
{
    const bool is_block = (uintptr_t)block % GRAIN == 0 && block != hak_map.window;
    return is_block ? header_of(block)->bytes : 0;
}

static void free_own(void *block)
{
    const struct header header = *header_of(block);
    if (hak_nested_usable(block) == 0) {
        hak_slab_die_not_live(block);
    }
    header_of(block)->bytes = 0;
    piece_give(header.piece, header.log2);
}

// If there is no memory to note the block, it stays in use for good.
static void free_later(void *block)
{
    struct hak_nested_later *later = alloc_own(sizeof *later, 1);
    if (later == NULL) {
        return;
    }
    later->block = block;
    later->next = hak_load_relaxed(&hak_nested_waiting);
    // pairs with: hak_nested_free_waiting_slow
    while (!hak_cas_release(&hak_nested_waiting, &later->next, later)) {
    }
}

void hak_nested_free(void *block)
{
    if (hak_nested_owns(block)) {
        free_own(block);
    } else if (block != NULL) {
        free_later(block);
    }
}

void hak_nested_free_waiting_slow(void)
{
    // pairs with: free_later
    struct hak_nested_later *later = hak_swap_acquire(&hak_nested_waiting, NULL);
    while (later != NULL) {
        struct hak_nested_later *next = later->next;
        void *block = later->block;
        free_own(later);
        hak_cache_free(hak_cache_self, block);
        later = next;
    }
}
