// ring.c -- random slots of 4,096, each replaced by a block of 16 to 1,040 bytes.
#include "idle.h"
#include "loop.h"

enum { SLOTS = 4096, SIZE_MIN = 16, SIZE_SPAN = 1025 };

static void *slots[SLOTS];

// A linear congruence, whose high bits are random enough for slots and sizes.
LOOP_INLINE uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 32;
}

LOOP_INLINE void turn(size_t n, void *(*take)(size_t), void (*give)(void *))
{
    uint64_t state = 1;
    for (size_t i = 0; i < n + SLOTS; i++) {
        uint64_t random = draw(&state);
        // The first turn fills the ring, so that every later step frees a block.
        size_t place = i < SLOTS ? i : random % SLOTS;
        size_t bytes = SIZE_MIN + ((random >> 12) * SIZE_SPAN >> 20);
        give(slots[place]);
        unsigned char *block = loop_require(take(bytes));
        *block = 1;
        slots[place] = block;
    }
}

int main(int argc, char **argv)
{
    static const char usage[] = "ring <n>";
    size_t n = loop_number(argc, argv, 1, usage);
    if (loop_is_idle(argc, argv, 2, usage)) {
        turn(n, idle_take, idle_give);
    } else {
        turn(n, malloc, free);
    }
    return 0;
}
