// stack.c -- see stack.h.
#include "stacks/stack.h"

#include <string.h>

#include "base/atomic.h"
#include "meta/table.h"
#include "os/os.h"
#include "stacks/code.h"
#include "stacks/frame_table.h"

// The state of a walk: it is in the frame of a function that made a call and continues at `next`, a place.
struct walk {
    uintptr_t next;
    uintptr_t stack;
    uintptr_t pointer;
    uintptr_t readable;  // the page that was probed last
    bool has_switched;   // it has moved to another stack
    struct known *known; // NULL: there is no memory for it
    struct hak_code_hint code;
};

// A stack that is walked for the second time needs no table: the rule of each place is cached in
// one word, beside another one that tells the place. If two threads write a slot at the same time,
// the words may not match, and the slot reads as empty.
enum { KNOWN_LOG2 = 12 };
struct known {
    _Atomic(uint64_t) rule;
    _Atomic(uint64_t) check; // rule ^ place
};
enum { KNOWN_BYTES = sizeof(struct known) << KNOWN_LOG2 };
static _Atomic(void *) all_known;

// 3 bits kind, 21 bits offset, 20 bits each of the others; a rule that does not fit is not kept.
#define FIELD(value, bits, shift) (((uint64_t)(uint32_t)(value) & ((1U << (bits)) - 1)) << (shift))
#define VALUE(word, bits, shift) \
    ((int32_t)((int64_t)((word) << (64 - (bits) - (shift))) >> (64 - (bits))))

static uint64_t rule_pack(struct hak_frame_rule rule)
{
    return FIELD(rule.kind, 3, 0) | FIELD(rule.offset, 21, 3) | FIELD(rule.return_offset, 20, 24) |
           FIELD(rule.pointer_offset, 20, 44);
}

static struct hak_frame_rule rule_unpack(uint64_t word)
{
    return (struct hak_frame_rule){
        .kind = (enum hak_frame_kind)(word & 7),
        .offset = VALUE(word, 21, 3),
        .return_offset = VALUE(word, 20, 24),
        .pointer_offset = VALUE(word, 20, 44),
    };
}

static struct hak_frame_rule rule_of(uintptr_t place, struct known *known)
{
    if (known == NULL) {
        return hak_frame_table_rule_of(HAK_PLACE_ADDRESS(place));
    }
    struct known *slot = &known[(place * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - KNOWN_LOG2)];
    const uint64_t word = hak_load_relaxed(&slot->rule);
    if ((hak_load_relaxed(&slot->check) ^ word) == place) {
        return rule_unpack(word);
    }
    const struct hak_frame_rule rule = hak_frame_table_rule_of(HAK_PLACE_ADDRESS(place));
    const uint64_t packed = rule_pack(rule);
    const struct hak_frame_rule same = rule_unpack(packed);
    if (same.offset == rule.offset && same.return_offset == rule.return_offset &&
        same.pointer_offset == rule.pointer_offset) {
        hak_store_relaxed(&slot->rule, packed);
        hak_store_relaxed(&slot->check, packed ^ place);
    }
    return rule;
}

#define PAGE_MASK (~(uintptr_t)4095) // of the smallest pages there are

static bool read_word(struct walk *walk, uintptr_t address, uintptr_t *word)
{
    const uintptr_t page = address & PAGE_MASK;
    if (address % sizeof *word != 0 || (page != walk->readable && !hak_os_can_read((void *)page))) {
        return false;
    }
    walk->readable = page;
    *word = *(const uintptr_t *)address;
    return true;
}

// The rule without a table: the frame pointer points at the caller's, and above that lies the return address.
static const struct hak_frame_rule by_pointer = {
    .kind = HAK_FRAME_POINTER,
    .offset = 2 * sizeof(uintptr_t),
    .return_offset = -(int32_t)sizeof(uintptr_t),
    .pointer_offset = -2 * (int32_t)sizeof(uintptr_t),
};

// No frame is longer; a longer one is not taken for a frame.
#define FRAME_MAX (UINT64_C(1) << 30)

// Go calls C on a system stack, and its own code has frame pointers but no table. There the frame pointer leads to
// another stack, at any address. It is believed if two frames in a row there have code of the same file.
static bool goes_on_elsewhere(struct walk *walk)
{
    const uintptr_t file = walk->next >> HAK_CODE_SHIFT;
    uintptr_t frame = walk->pointer;
    if (walk->has_switched || file == HAK_CODE_UNTOLD || file >= HAK_CODE_OF_NONE) {
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        uintptr_t next;
        uintptr_t above;
        if (!read_word(walk, frame, &above) || !read_word(walk, frame + sizeof frame, &next) ||
            above <= frame || above - frame > FRAME_MAX ||
            hak_code_place(HAK_PLACE_ADDRESS(next), &walk->code) >> HAK_CODE_SHIFT != file) {
            return false;
        }
        frame = above;
    }
    walk->has_switched = true;
    return true;
}

static bool walk_up(struct walk *walk)
{
    struct hak_frame_rule rule = rule_of(walk->next, walk->known);
    const bool has_table = rule.kind != HAK_FRAME_UNKNOWN;
    rule = has_table ? rule : by_pointer;
    uintptr_t base = rule.kind == HAK_FRAME_STACK ? walk->stack : walk->pointer;
    if (rule.kind == HAK_FRAME_END) {
        return false;
    }
    uintptr_t end = base + (uintptr_t)(intptr_t)rule.offset;
    if (rule.kind == HAK_FRAME_SAVED && !read_word(walk, end, &end)) {
        return false;
    }
    // Stacks grow towards lower addresses only.
    const bool is_above = end > walk->stack && end - walk->stack <= FRAME_MAX;
    if (!is_above && (has_table || !goes_on_elsewhere(walk))) {
        return false;
    }
    uintptr_t next;
    uintptr_t pointer = walk->pointer;
    const uintptr_t saved = rule.pointer_offset == HAK_FRAME_AT_POINTER
                                ? walk->pointer
                                : end + (uintptr_t)(intptr_t)rule.pointer_offset;
    if (!read_word(walk, end + (uintptr_t)(intptr_t)rule.return_offset, &next) ||
        (rule.pointer_offset != 0 && !read_word(walk, saved, &pointer))) {
        return false;
    }
    // Processors that sign return addresses do so in the bits that no address of a program has.
    next = HAK_PLACE_ADDRESS(next);
    walk->next = next != 0 ? hak_code_place(next, &walk->code) : 0;
    walk->stack = end;
    walk->pointer = pointer;
    return next != 0;
}

// Never inlined: it needs a frame of its own, where the caller's frame pointer is saved.
HAK_NOINLINE unsigned hak_stack_walk(uintptr_t *frames, unsigned most, bool is_quiet)
{
    const uintptr_t *own = __builtin_frame_address(0);
    struct walk walk = {
        .next = HAK_PLACE_ADDRESS(__builtin_return_address(0)),
        .stack = (uintptr_t)__builtin_dwarf_cfa(),
        .pointer = *own,
        .readable = (uintptr_t)own & PAGE_MASK,
        .known = hak_table_take(&all_known, KNOWN_BYTES),
        .code = {.is_quiet = is_quiet},
    };
    walk.next = hak_code_place(walk.next, &walk.code);
    unsigned count = 0;
    while (count < most && walk_up(&walk)) {
        frames[count++] = walk.next;
    }
    return count;
}

unsigned hak_stack_walk_from(const void *site, uintptr_t *frames, unsigned most, bool is_quiet)
{
    enum { OWN_MAX = 12 };
    uintptr_t walked[HAK_STACK_MOST + OWN_MAX];
    const unsigned count = hak_stack_walk(walked, most + OWN_MAX, is_quiet);
    unsigned own = 0;
    while (own < count && HAK_PLACE_ADDRESS(walked[own]) != (uintptr_t)site) {
        own++;
    }
    if (own == count) {
        struct hak_code_hint hint = {.is_quiet = is_quiet};
        frames[0] = hak_code_place((uintptr_t)site, &hint);
        return 1;
    }
    const unsigned rest = count - own;
    const unsigned kept = rest < most ? rest : most;
    memcpy(frames, walked + own, kept * sizeof *frames);
    return kept;
}
