// states.c -- see states.h.
#include "secure/states.h"

#include "slab/misuse.h"

// A block that looks damaged is checked so many times. The number in its state comes around after 64 changes (with a
// tag, after some 28), so a thread that was interrupted in the middle of a check may read the same number again.
enum { LOOKS = 4 };

void *hak_states_die_twice(const void *block, size_t bytes)
{
    hak_misuse_double_free(block, bytes);
}

void *hak_states_die_written(const char *block, size_t bytes)
{
    hak_canary_die_written(block, bytes);
}

void hak_states_die_overflow(const char *block, size_t bytes)
{
    hak_canary_die_overflow(block, bytes);
}

// Step look of states.pml.
static uint8_t state_before(const hak_state *state)
{
    return hak_load_acquire(state); // pairs with: hak_state_end
}

// A thread that reads one of these blocks finds it as it was handed out.
uint64_t hak_states_out(const struct hak_run *slab, unsigned word)
{
    const unsigned blocks = hak_classes[slab->size_class].blocks;
    const hak_state *states = hak_states_of(slab);
    uint64_t out = 0;
    for (unsigned index = word * 64; index < blocks && index < (word + 1) * 64; index++) {
        const bool is_out = hak_state_kind(state_before(&states[index])) == HAK_STATE_OUT;
        out |= (uint64_t)is_out << (index % 64);
    }
    return out;
}

// Step look_again of states.pml.
static bool has_changed(const hak_state *state, uint8_t before)
{
    hak_fence_loads();
    return hak_load_relaxed(state) != before;
}

// Only these reads race with the stores of the thread that has the block in hand: the bytes are not atomic, and nothing
// orders the two. The result counts only if the state is the same before and after, which states.pml proves to suffice.
// ThreadSanitizer cannot know that: it leaves out this function and hak_canary_request.
static HAK_UNJUDGED bool looks_right(unsigned kind, const char *block, size_t bytes)
{
    if (kind == HAK_STATE_OUT) {
        return !hak_harden.checks.canaries || hak_canary_is_whole(block, bytes);
    }
    return kind == HAK_STATE_BUSY || !hak_harden.checks.zero || hak_canary_is_zero(block, bytes);
}

// Dies if the block is damaged. Returns the kind of state that it was in.
static unsigned check_block(const hak_state *state, const char *block, size_t bytes)
{
    bool is_right = false;
    uint8_t before = 0;
    for (unsigned looks = 0; looks < LOOKS && !is_right; looks++) {
        do {
            before = state_before(state);
            is_right = looks_right(hak_state_kind(before), block, bytes);
        } while (!is_right && has_changed(state, before));
    }
    if (HAK_UNLIKELY(!is_right && hak_state_kind(before) == HAK_STATE_OUT)) {
        hak_canary_die_overflow(block, bytes);
    } else if (HAK_UNLIKELY(!is_right)) {
        hak_canary_die_written(block, bytes);
    }
    return hak_state_kind(before);
}

bool hak_states_check(const struct hak_run *slab)
{
    if (!hak_harden.checks.zero && !hak_harden.checks.canaries) {
        return false;
    }
    const struct hak_class *info = &hak_classes[slab->size_class];
    const hak_state *states = hak_states_of(slab);
    if (hak_harden_has_tags()) {
        hak_tags_pass(true); // blocks get and lose tags meanwhile
    }
    bool are_zeros = hak_harden.checks.zero;
    for (size_t index = 0; index < info->blocks; index++) {
        are_zeros &= check_block(&states[index], slab->base + index * info->bytes, info->bytes) ==
                     HAK_STATE_FREE;
    }
    if (hak_harden_has_tags()) {
        hak_tags_pass(false);
    }
    return are_zeros;
}
