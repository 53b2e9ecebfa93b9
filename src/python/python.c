// python.c -- see python.h.
#include "python/python.h"

#include "python/functions.h"
#include "python/interpreter.h"

enum {
    TAG_BITS = 7, // of a pointer in a frame: from 3.14 on they say how references are counted
    UNIT_BYTES = 2,
};

// No address of a program is this high.
#define NOWHERE ((uintptr_t)1 << 63)

// Without a global lock each thread has a copy of the instructions. Returns the start of the copy that the frame runs.
static HAK_NOINLINE uintptr_t start_of_copy(struct hak_pages *pages,
                                            uintptr_t frame,
                                            uintptr_t code)
{
    const uint64_t index = hak_interpreter_half(frame, HAK_PYTHON_COPY);
    const uintptr_t copies = (uintptr_t)hak_pages_number(
        pages, code + hak_interpreter.at[HAK_PYTHON_COPIES], sizeof copies);
    const uint64_t count = hak_pages_number(pages, copies, sizeof count);
    const uintptr_t copy = copies + (index + 1) * sizeof count;
    return index < count ? (uintptr_t)hak_pages_number(pages, copy, sizeof count) : NOWHERE;
}

// How many code units of `code` the frame has passed. `code` may still be any address.
static uint64_t unit_of(struct hak_pages *pages, uintptr_t frame, uintptr_t code)
{
    uintptr_t start = code + hak_interpreter.at[HAK_PYTHON_START];
    if (HAK_UNLIKELY(hak_interpreter.has_copies)) {
        start = start_of_copy(pages, frame, code);
    }
    const uintptr_t now = hak_interpreter_whole(frame, HAK_PYTHON_INSTRUCTION);
    return HAK_LIKELY(now >= start) ? (now - start) / UNIT_BYTES : HAK_FUNCTION_NOT_BEGUN;
}

// The place of a frame; 0: it has no code.
static uintptr_t place_of(struct hak_pages *pages, uintptr_t frame)
{
    const uintptr_t code = hak_interpreter_whole(frame, HAK_PYTHON_CODE) & ~(uintptr_t)TAG_BITS;
    return hak_function_place(pages, code, unit_of(pages, frame, code));
}

static unsigned byte_of(uintptr_t frame, enum hak_interpreter_field field)
{
    return *(const unsigned char *)(frame + hak_interpreter.at[field]);
}

static bool is_entry(uintptr_t frame)
{
    return hak_interpreter.at[HAK_PYTHON_IS_ENTRY] != 0 && byte_of(frame, HAK_PYTHON_IS_ENTRY) != 0;
}

// Fill in the places of `frame` and its callers. Where C has called the interpreter, a frame without code lies between them.
static unsigned walk(uintptr_t frame, uintptr_t *places, uint64_t now_ns)
{
    struct hak_pages frames = hak_pages_at(now_ns);
    struct hak_pages codes = frames;
    const uintptr_t called = (uintptr_t)1 << HAK_PYTHON_CALLED_BIT;
    unsigned count = 0;
    for (unsigned steps = 0; steps < 2 * HAK_PYTHON_FRAMES; steps++) {
        if (!hak_pages_are_readable(&frames, frame, hak_interpreter.frame_bytes)) {
            break;
        }
        const bool is_nobodys = byte_of(frame, HAK_PYTHON_OWNER) >= HAK_PYTHON_OWNER_NONE;
        if (count > 0 && is_nobodys) {
            places[count - 1] |= called;
        } else if (count == HAK_PYTHON_FRAMES) {
            places[count - 1] |= (uintptr_t)1 << HAK_PYTHON_CUT_BIT;
            break;
        } else if (!is_nobodys) {
            const uintptr_t place = place_of(&codes, frame);
            if (place == 0) {
                break;
            }
            places[count++] = is_entry(frame) ? place | called : place;
        }
        frame = hak_interpreter_whole(frame, HAK_PYTHON_PREVIOUS);
    }
    return count;
}

// The interpreter's functions read a thread-local variable. Its first use in a thread may allocate if the interpreter was
// loaded by dlopen; that allocation may be a sample, too.
static HAK_TLS bool is_looking;

unsigned hak_python_add(uintptr_t *places, unsigned count, uint64_t now_ns)
{
    if (HAK_LIKELY(!hak_interpreter_is_on(places, count)) || is_looking) {
        return 0;
    }
    is_looking = true;
    struct hak_pages pages = hak_pages_at(now_ns);
    const unsigned added = walk(hak_interpreter_frame(&pages), places + count, now_ns);
    is_looking = false;
    return added;
}
