// text.c -- see text.h.
#include "python/text.h"

#include <string.h>

#include "python/interpreter.h"

// The form of a str: bytes for a character, whether the text lies behind the head, and whether it is ASCII.
struct shape {
    unsigned width;
    bool is_compact;
    bool is_ascii;
};

static struct shape shape_of(uint64_t state)
{
    state >>= hak_interpreter.kind_shift;
    return (struct shape){
        .width = state & 7, .is_compact = (state >> 3 & 1) != 0, .is_ascii = (state >> 4 & 1) != 0};
}

static size_t put(char *text, uint32_t letter)
{
    if (letter < 0x80) {
        text[0] = (char)letter;
        return 1;
    }
    const unsigned more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
    static const uint8_t begin[] = {0, 0xC0, 0xE0, 0xF0};
    text[0] = (char)(begin[more] | (letter >> (6 * more) & 0x3F));
    for (unsigned i = 1; i <= more; i++) {
        text[i] = (char)(0x80 | (letter >> (6 * (more - i)) & 0x3F));
    }
    return more + 1;
}

size_t hak_text_read(struct hak_pages *pages, uintptr_t str, char *text, size_t room)
{
    const uint16_t *at = hak_interpreter.at;
    const struct shape shape = shape_of(hak_pages_number(pages, str + at[HAK_PYTHON_STATE], 4));
    const uint64_t length = hak_interpreter_word(pages, str, HAK_PYTHON_LENGTH);
    if (!shape.is_compact || (shape.width != 1 && shape.width != 2 && shape.width != 4)) {
        return 0;
    }
    // The most bytes that a character becomes.
    const size_t widest = shape.is_ascii ? 1 : shape.width < 4 ? shape.width + 1 : 4;
    const uint64_t kept = length < room / widest ? length : room / widest;
    const uintptr_t start =
        str + at[HAK_PYTHON_TEXT] + (shape.is_ascii ? 0 : hak_interpreter.wide_bytes);
    const uintptr_t from = start + (length - kept) * shape.width;
    if (length > UINT32_MAX || !hak_pages_are_readable(pages, from, kept * shape.width)) {
        return 0;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < kept; i++) {
        uint32_t letter = 0;
        memcpy(&letter, (const char *)from + i * shape.width, shape.width);
        bytes += put(text + bytes, letter & 0x1FFFFF);
    }
    return bytes;
}
