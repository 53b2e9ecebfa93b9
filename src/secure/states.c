// states.c -- see states.h.
#include "secure/states.h"

#include "slab/misuse.h"

// A block that looks wrong is looked at so many times: the number in its state comes around after 64 changes (with a
// tag, after some 28), and whoever was interrupted in the middle of a look may meet it again.
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

// Whoever looks at one of them finds it as it was handed out.
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

// Its reads alone race with the stores of who has the block in hand: an ordinary block's bytes are not atomic, and no
// order keeps them apart. What it says is believed only when the state stayed the same around it, for which
// states.pml has the proof. ThreadSanitizer cannot know that: it leaves this function out, and hak_canary_request.
static HAK_UNJUDGED bool looks_right(unsigned kind, const char *block, size_t bytes)
{
    if (kind == HAK_STATE_OUT) {
        return !hak_harden.checks.canaries || hak_canary_is_whole(block, bytes);
    }
    return kind == HAK_STATE_BUSY || !hak_harden.checks.zero || hak_canary_is_zero(block, bytes);
}

// Returns what it was.
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
        hak_tags_pass(true); // blocks get and lose theirs meanwhile
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
