// Every form of the frame tables that compilers write is understood, and what no unwinder could follow ends
// the walk. The tables are made here, and so is the dynamic linker's answer.
#include "stacks/frame_table.h"

#include <dlfcn.h>

#include "../unit.h"

#ifdef DLFO_STRUCT_HAS_EH_DBASE

#    if defined(__x86_64__)
enum { POINTER = 6, STACK = 7, RETURN = 16 };
#    else
enum { POINTER = 29, STACK = 31, RETURN = 30 };
#    endif
enum { OTHER = 3, CODE = 4096, CODE_BYTES = 64, OP_POINTER = 0x70 + POINTER, OP_DEREF = 6 };

static _Alignas(16) uint8_t image[CODE + CODE_BYTES];
static size_t end;

int _dl_find_object(void *address, struct dl_find_object *result)
{
    (void)address;
    result->dlfo_eh_frame = image;
    return 0;
}

static void put(uint64_t value, size_t bytes)
{
    memcpy(image + end, &value, bytes);
    end += bytes;
}

static void put_bytes(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        image[end++] = bytes[i];
    }
}

static void end_record(size_t start)
{
    const uint32_t bytes = (uint32_t)(end - start - 4);
    memcpy(image + start, &bytes, sizeof bytes);
}

struct common {
    const char *augmentation;
    uint8_t data[12]; // of the augmentation
    size_t data_bytes;
    uint8_t version;
    uint8_t return_register;
};

static const struct common usual = {"zR", {0x1B}, 1, 1, RETURN};

// A file with one function: the caller's frame ends at stack pointer + 16, the return address is
// below it; then follows what `program` says.
static void make(const struct common *common, const uint8_t *program, size_t bytes)
{
    static const uint8_t begins[] = {0x0C, STACK, 16, 0x80 + RETURN, 1};
    const bool is_relative = common->augmentation[0] == 'z';
    memset(image, 0, sizeof image);
    end = 24;
    const size_t first = end;
    put(0, 4 + 4); // the length is filled in last; 0: the id of what functions have in common
    put(common->version, 1);
    put_bytes((const uint8_t *)common->augmentation, strlen(common->augmentation) + 1);
    put(1, 1);    // the alignment factor of code
    put(0x78, 1); // that of data: -8
    put(common->return_register, 1);
    if (is_relative) {
        put(common->data_bytes, 1);
        put_bytes(common->data, common->data_bytes);
    }
    put_bytes(begins, sizeof begins);
    end_record(first);
    const size_t second = end;
    put(0, 4);
    put(end - first, 4);
    put(is_relative ? CODE - end : (uintptr_t)image + CODE, is_relative ? 4 : 8);
    put(CODE_BYTES, is_relative ? 4 : 8);
    if (is_relative) {
        put(0, 1);
    }
    put_bytes(program, bytes);
    end_record(second);
    const uint32_t head[] = {0x3B031B01, 0, 1, CODE, (uint32_t)second};
    memcpy(image, head, sizeof head);
}

static struct hak_frame_rule rule_at(size_t offset)
{
    return hak_frame_table_rule_of((uintptr_t)image + CODE + offset + 1);
}

static void expect(size_t at, enum hak_frame_kind kind, int offset, int returns, int pointer)
{
    const struct hak_frame_rule rule = rule_at(at);
    UNIT_EQUAL(rule.kind, kind);
    UNIT_EQUAL(rule.offset, offset);
    UNIT_EQUAL(rule.return_offset, returns);
    UNIT_EQUAL(rule.pointer_offset, pointer);
}

#    define MAKE(...) make(&usual, (const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}))
#    define ENDS(...)                                   \
        do {                                            \
            MAKE(__VA_ARGS__);                          \
            UNIT_EQUAL(rule_at(8).kind, HAK_FRAME_END); \
        } while (0)

static void the_rule_follows_the_code(void)
{
    MAKE(0x44, 0x0E, 32, 0x80 + POINTER, 2, 0x02, 4, 0x0D, POINTER, 0x03, 4, 0, 0xC0 + POINTER);
    expect(0, HAK_FRAME_STACK, 16, -8, 0);
    expect(3, HAK_FRAME_STACK, 16, -8, 0);
    expect(4, HAK_FRAME_STACK, 32, -8, -16);
    expect(8, HAK_FRAME_POINTER, 32, -8, -16);
    expect(12, HAK_FRAME_POINTER, 32, -8, 0);
}

static void the_long_forms_say_the_same(void)
{
    MAKE(0x12,
         POINTER,
         0x7C,
         0x05,
         POINTER,
         3,
         0x44,
         0x11,
         RETURN,
         2,
         0x13,
         0x7A,
         0x44,
         0x06,
         RETURN);
    expect(0, HAK_FRAME_POINTER, 32, -8, -24);
    expect(4, HAK_FRAME_POINTER, 48, -16, -24);
    expect(8, HAK_FRAME_POINTER, 48, -8, -24);
}

static void what_does_not_matter_is_passed_over(void)
{
    MAKE(0x00, 0x08, OTHER, 0x09, OTHER, 1, 0x16, OTHER, 1, 0, 0x10, OTHER, 1, 0, 0x2D, 0x2E, 8);
    expect(8, HAK_FRAME_STACK, 16, -8, 0);
    MAKE(0x07, OTHER, 0x80 + OTHER, 4, 0xC0 + OTHER, 0x0E, 0x80, 0x01);
    expect(8, HAK_FRAME_STACK, 128, -8, 0);
}

static void states_are_remembered(void)
{
    MAKE(0x0A, 0x0E, 64, 0x44, 0x0B);
    expect(0, HAK_FRAME_STACK, 64, -8, 0);
    expect(4, HAK_FRAME_STACK, 16, -8, 0);
    ENDS(0x0B);
    ENDS(0x0A, 0x0A, 0x0A, 0x0A, 0x0A);
}

static void aligned_frames_are_found_by_their_pointer(void)
{
    MAKE(0x0F, 3, OP_POINTER, 0x78, OP_DEREF, 0x10, POINTER, 2, OP_POINTER, 0);
    expect(8, HAK_FRAME_SAVED, -8, -8, HAK_FRAME_AT_POINTER);
    ENDS(0x0F, 2, OP_POINTER, 0x78);
    ENDS(0x0F, 3, OP_POINTER + 1, 0x78, OP_DEREF);
    ENDS(0x0F, 4, OP_POINTER, 0x78, OP_DEREF, 0);
    ENDS(0x10, POINTER, 2, OP_POINTER, 8);
    ENDS(0x10, RETURN, 2, OP_POINTER, 0);
}

static void what_no_rule_can_say_ends_the_walk(void)
{
    ENDS(0x07, RETURN);
    ENDS(0x09, RETURN, OTHER);
    ENDS(0x16, POINTER, 1, 0);
    ENDS(0x80 + STACK, 2);
    ENDS(0x0C, OTHER, 8);
    ENDS(0x3F);
    ENDS(0x0F, 100, OP_POINTER); // an expression that is longer than its record
}

static void what_functions_share_comes_in_many_forms(void)
{
    const struct common with_more = {"zPLR", {0x9B, 1, 2, 3, 4, 0x1B, 0x1B}, 7, 1, RETURN};
    const struct common by_pointer = {"zPR", {0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0x1B}, 10, 1, RETURN};
    const struct common newer = {"zR", {0x1B}, 1, 3, RETURN};
    const struct common absolute = {"", {0}, 0, 1, RETURN};
    const struct common of_signal = {"zRS", {0x1B}, 1, 1, RETURN};
    const struct common of_others = {"zR", {0x1B}, 1, 1, OTHER};
    const struct common *const known[] = {&with_more, &by_pointer, &newer, &absolute};
    const struct common *const odd[] = {&of_signal, &of_others};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        make(known[i], NULL, 0);
        expect(8, HAK_FRAME_STACK, 16, -8, 0);
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        make(odd[i], NULL, 0);
        UNIT_EQUAL(rule_at(8).kind, HAK_FRAME_END);
    }
}

static void what_is_in_no_table_is_unknown(void)
{
    MAKE(0x00);
    UNIT_EQUAL(rule_at(CODE_BYTES - 1).kind, HAK_FRAME_STACK);
    UNIT_EQUAL(rule_at(CODE_BYTES).kind, HAK_FRAME_UNKNOWN);
    UNIT_EQUAL(rule_at((size_t)-1).kind, HAK_FRAME_UNKNOWN); // before the first function
    for (size_t i = 0; i < 4; i++) {
        MAKE(0x00);
        image[i] ^= 0x40; // another version, or an encoding that linkers do not write
        UNIT_EQUAL(rule_at(8).kind, HAK_FRAME_UNKNOWN);
    }
}

static void a_record_that_says_too_much_of_itself_is_read_to_its_end(void)
{
    const struct common damaged = {"zR", {0x1B}, 1, 1, RETURN};
    make(&damaged, NULL, 0);
    image[24 + 4 + 4 + 1 + 3 + 3] = 0x7F; // the length of the augmentation data
    UNIT_EQUAL(rule_at(8).kind, HAK_FRAME_END);
}

int main(void)
{
    the_rule_follows_the_code();
    the_long_forms_say_the_same();
    what_does_not_matter_is_passed_over();
    states_are_remembered();
    aligned_frames_are_found_by_their_pointer();
    what_no_rule_can_say_ends_the_walk();
    what_functions_share_comes_in_many_forms();
    what_is_in_no_table_is_unknown();
    a_record_that_says_too_much_of_itself_is_read_to_its_end();
    return 0;
}

#else

int main(void)
{
    return 77; // a C library that has no way to find these tables
}

#endif
