// A walk finds the real return addresses, with and without frame pointers and through aligned frames,
// as the C library's unwinder does.
#include "stacks/stack.h"

#include <execinfo.h>
#include <stdint.h>
#include <string.h>

#include "../unit.h"
#include "stacks/code.h"

enum { MOST = 64 };

static uintptr_t walked[MOST];
static unsigned walked_count;
static void *unwound[MOST];
static int unwound_count;

__attribute__((noinline)) static int look(void)
{
    walked_count = hak_stack_walk(walked, MOST, false);
    for (unsigned i = 0; i < walked_count; i++) {
        walked[i] = HAK_PLACE_ADDRESS(walked[i]);
    }
    unwound_count = backtrace(unwound, MOST);
    return 1;
}

// Clang has no such attribute for one function: there both are compiled like the rest of the program.
#ifdef __clang__
#    define FRAME_POINTER(how)
#else
#    define FRAME_POINTER(how) __attribute__((optimize(how)))
#endif

// `volatile`: no call is the last thing in a function, so none becomes a jump.
FRAME_POINTER("omit-frame-pointer") __attribute__((noinline)) static int without_pointer(int depth)
{
    volatile int result = depth == 0 ? look() : without_pointer(depth - 1);
    return result + 1;
}

FRAME_POINTER("no-omit-frame-pointer") __attribute__((noinline)) static int with_pointer(int depth)
{
    volatile int result = depth == 0 ? without_pointer(3) : with_pointer(depth - 1);
    return result + 1;
}

// An unknown size moves the stack pointer, and an alignment makes the frame's address depend on another register.
__attribute__((noinline)) static int with_odd_frame(size_t bytes)
{
    _Alignas(128) volatile char aligned[128];
    char moving[bytes];
    memset(moving, 1, bytes);
    aligned[0] = moving[bytes - 1];
    volatile int result = with_pointer(3);
    return result + aligned[0];
}

// hak_stack_walk starts with the caller of the function that calls it; backtrace starts with that function, after a
// sanitizer's own one, if there is one.
static void check_same(void)
{
    int first = 0;
    while (first < unwound_count && walked[0] != (uintptr_t)unwound[first]) {
        first++;
    }
    UNIT_CHECK(first <= 2 && unwound_count > 3);
    UNIT_CHECK((int)walked_count >= unwound_count - first - 1);
    for (unsigned i = 0; (int)i < unwound_count - first && i < walked_count; i++) {
        UNIT_EQUAL(walked[i], (uintptr_t)unwound[first + (int)i]);
    }
}

int main(void)
{
    with_odd_frame(100);
    check_same();
    UNIT_CHECK(walked_count > 9);
    with_odd_frame(5000); // from what is cached by now
    check_same();
    UNIT_EQUAL(hak_stack_walk(walked, 0, false), 0);
    return 0;
}
