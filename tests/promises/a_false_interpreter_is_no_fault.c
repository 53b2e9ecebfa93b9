// soak in: aarch64 mte
// its names for all
// with features
// preload only
// glibc only: it says which object an address is of
// A program may export the names of a Python interpreter with anything behind them: a sample that looks for frames
// there follows no invalid pointer, and is not taken again inside the interpreter's own allocations.
#include <stdint.h>
#include <sys/mman.h>

#include "../support/api.h"
#include "../support/promise.h"

enum { WORDS = 4096, PAGE = 4096, ROUNDS = 300, BLOCKS = 64 };

#define EXPORTED __attribute__((visibility("default"), used))

EXPORTED uint64_t _PyRuntime[128];
EXPORTED unsigned long Py_Version;
EXPORTED uint64_t PyCode_Type[64];
EXPORTED void *PyThreadState_GetUnchecked(void);
EXPORTED void *PyGILState_GetThisThreadState(void);

static uint64_t *objects; // nothing is mapped behind its end
static uint64_t seed;
static void *current;
static void *own;

// The first use of a thread-local variable may allocate.
void *PyThreadState_GetUnchecked(void)
{
    void *volatile block = malloc(24);
    free(block);
    return current;
}

void *PyGILState_GetThisThreadState(void)
{
    return own;
}

static uint64_t draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (seed >> 33) % below;
}

// To one of the objects, to their end, or to nothing.
static uint64_t pointer(void)
{
    switch (draw(32)) {
    case 0:
        return 0;
    case 1:
        return draw(PAGE);
    case 2:
        return UINT64_MAX - draw(PAGE);
    case 3:
        return (uint64_t)1 << draw(64);
    case 4:
        return (uintptr_t)(objects + WORDS) - draw(200);
    case 5:
        return (uintptr_t)(objects + WORDS) + draw(PAGE);
    case 6:
        return (uintptr_t)PyCode_Type;
    case 7:
        return draw(UINT32_MAX) << 32 | draw(UINT32_MAX);
    default:
        return (uintptr_t)(objects + draw(WORDS));
    }
}

static void make_interpreter(void)
{
    static const unsigned long versions[] = {
        0x030B02F0, 0x030C01F0, 0x030D00F0, 0x030E0AF0, 0x030F02F0, 0x031000F0, 0x030A00F0, 0};
    Py_Version = versions[draw(sizeof versions / sizeof *versions)];
    memcpy(_PyRuntime, "xdebugpy", 8);
    _PyRuntime[1] = Py_Version;
    _PyRuntime[2] = draw(2);
    const uint64_t most = draw(4) == 0 ? UINT64_MAX : draw(300) + 1;
    for (size_t i = 3; i < sizeof _PyRuntime / sizeof *_PyRuntime; i++) {
        _PyRuntime[i] = draw(2) == 0 ? draw(12) * 8 : draw(most);
    }
    // Many of them look like code objects and like text, wherever their type is.
    for (size_t i = 0; i < WORDS; i++) {
        objects[i] = draw(5) == 0 ? (uintptr_t)PyCode_Type : pointer();
        objects[i] = draw(4) == 0 ? draw(256) : objects[i];
    }
    current = draw(4) == 0 ? NULL : (void *)(uintptr_t)pointer();
    own = (void *)(uintptr_t)pointer();
}

static void allocate(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (i % 8 == 0) {
            current = draw(4) == 0 ? NULL : (void *)(uintptr_t)pointer();
        }
        void *volatile block = malloc(1 + draw(100000));
        free(block);
    }
}

static void in_child(void)
{
    make_interpreter();
    HT_API(hak_profile_start);
    if (!api_hak_profile_start(1)) {
        _exit(HT_BROKEN);
    }
    allocate();
    _exit(0);
}

int main(void)
{
    ht_start();
    char *memory =
        mmap(NULL, WORDS * 8 + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(memory != MAP_FAILED, "no memory");
    HT_CHECK(mprotect(memory + WORDS * 8, PAGE, PROT_NONE) == 0, "mprotect: %d", errno);
    objects = (uint64_t *)(void *)memory;
    for (unsigned round = 0; round < ROUNDS; round++) {
        seed = round;
        const pid_t child = fork();
        HT_CHECK(child >= 0, "fork: %d", errno);
        if (child == 0) {
            in_child();
        }
        int status;
        HT_CHECK(waitpid(child, &status, 0) == child, "waitpid: %d", errno);
        HT_CHECK(status == 0, "round %u ended with %#x", round, (unsigned)status);
    }
    return 0;
}
