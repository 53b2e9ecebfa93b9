// attacks.c -- makes one misuse of memory, chosen by name: attacks NAME
//
// tools/attacks preloads an allocator, and reads stdout: `r`: everything is ready; `d`: the misuse
// was made; and at the end one of `m`: nothing has noticed, and the misuse did its harm; `h`: it
// did no harm; `?`: the allocator has no such function.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SMALL = 64, BLOCKS = 64, LATER = 20000, SECRET = 0x5E };

static void say(const char *word)
{
    (void)!write(STDOUT_FILENO, word, 1);
}

// A value of which the compiler knows nothing.
static char *hide(void *pointer)
{
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

static char *block_of(size_t bytes)
{
    char *block = hide(malloc(bytes));
    memset(block, SECRET, bytes);
    return hide(block);
}

static void free_hidden(void *block)
{
    free(hide(block));
}

// Gives an allocator the occasion for checks that it makes later.
static void later(size_t bytes)
{
    char *held[BLOCKS] = {0};
    for (int i = 0; i < LATER; i++) {
        free(held[i % BLOCKS]);
        held[i % BLOCKS] = hide(malloc(bytes));
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(held[i]);
    }
}

static bool made(void)
{
    say("d");
    return true;
}

static bool double_free(void)
{
    char *block = block_of(SMALL);
    say("r");
    free_hidden(block);
    free_hidden(block);
    return made();
}

static bool delayed_double_free(void)
{
    char *block = block_of(SMALL);
    char *others[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        others[i] = block_of(SMALL);
    }
    say("r");
    free_hidden(block);
    for (int i = 0; i < BLOCKS; i++) {
        free_hidden(others[i]);
    }
    free_hidden(block);
    return made();
}

static bool double_free_large(void)
{
    char *block = block_of(200000);
    say("r");
    free_hidden(block);
    free_hidden(block);
    return made();
}

static bool interior_free(void)
{
    char *block = block_of(SMALL);
    say("r");
    free_hidden(block + 16);
    return made();
}

static bool wild_free(void)
{
    static char somewhere[4096];
    say("r");
    free_hidden(somewhere + 512);
    return made();
}

// A block of another heap, with a header as the C library writes it.
static bool cross_heap_free(void)
{
    uint64_t *heap = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    heap[1] = 0x51;
    heap[11] = 0x51;
    say("r");
    free_hidden(heap + 2);
    return made();
}

static bool overflow(size_t bytes, size_t by)
{
    char *block = block_of(bytes);
    say("r");
    memset(block + bytes, 'A', by);
    made();
    free_hidden(block);
    return true;
}

static bool overflow_by_1(void)
{
    return overflow(24, 1);
}

static bool overflow_by_1_into_slack(void)
{
    return overflow(100, 1);
}

static bool overflow_by_8(void)
{
    return overflow(24, 8);
}

static bool overflow_by_8_large(void)
{
    return overflow(200000, 8);
}

static bool overflow_by_a_page_large(void)
{
    return overflow(200000, 8192);
}

static bool underflow(size_t bytes, size_t by)
{
    char *before = block_of(bytes);
    char *block = block_of(bytes);
    char *behind = block_of(bytes);
    say("r");
    memset(block - by, 'A', by);
    made();
    free_hidden(behind);
    free_hidden(block);
    free_hidden(before);
    return true;
}

static bool underflow_by_8(void)
{
    return underflow(SMALL, 8);
}

static bool underflow_by_8_large(void)
{
    return underflow(200000, 8);
}

static bool read_after_free(void)
{
    char *block = block_of(SMALL);
    say("r");
    free_hidden(block);
    volatile char *stale = hide(block);
    bool is_there = false;
    for (int i = 16; i < SMALL; i++) {
        is_there |= stale[i] == SECRET;
    }
    made();
    return is_there;
}

static bool read_after_free_large(void)
{
    char *block = block_of(200000);
    say("r");
    free_hidden(block);
    volatile char *stale = hide(block);
    const bool is_there = stale[100000] == SECRET;
    made();
    return is_there;
}

static bool write_after_free(void)
{
    char *block = block_of(SMALL);
    say("r");
    free_hidden(block);
    hide(block)[40] = 'A';
    return made();
}

static bool write_after_free_large(void)
{
    char *block = block_of(200000);
    say("r");
    free_hidden(block);
    hide(block)[100000] = 'A';
    return made();
}

static bool uninitialised_read(void)
{
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = block_of(SMALL);
    }
    say("r");
    for (int i = 0; i < BLOCKS; i++) {
        free_hidden(blocks[i]);
    }
    bool is_there = false;
    for (int i = 0; i < BLOCKS; i++) {
        const char *block = hide(malloc(SMALL));
        is_there |= memchr(block + 16, SECRET, SMALL - 16) != NULL;
    }
    made();
    return is_there;
}

// From one block over the next one, which is free: does malloc return an address written there?
static bool metadata_overwrite(void)
{
    static uint64_t target[64] __attribute__((aligned(64)));
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = block_of(SMALL);
    }
    char *low = NULL;
    char *high = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        for (int j = 0; j < BLOCKS; j++) {
            const ptrdiff_t gap = blocks[j] - blocks[i];
            if (gap > 0 && gap <= 4 * SMALL) {
                low = blocks[i];
                high = blocks[j];
            }
        }
    }
    say("r");
    if (low == NULL) {
        made();
        return false; // no two blocks are neighbours
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i] != low && blocks[i] != high) {
            free_hidden(blocks[i]);
        }
    }
    free_hidden(high);
    for (char *word = low + SMALL; word < high + 16; word += 8) {
        const uint64_t *address = target;
        memcpy(word, &address, sizeof address);
    }
    made();
    bool is_ours = false;
    for (int i = 0; i < 2 * BLOCKS; i++) {
        const char *block = hide(malloc(SMALL));
        is_ours |= block >= (char *)target && block < (char *)(target + 64);
    }
    return is_ours;
}

static bool size_mismatch(void)
{
    void (*sized)(void *, size_t);
    *(void **)&sized = dlsym(RTLD_DEFAULT, "free_sized");
    if (sized == NULL) {
        *(void **)&sized = dlsym(RTLD_DEFAULT, "_ZdlPvm");
    }
    if (sized == NULL) {
        say("?");
        _exit(0);
    }
    char *block = block_of(SMALL);
    say("r");
    sized(hide(block), 1000);
    return made();
}

static const struct {
    const char *name;
    bool (*make)(void); // did it do harm?
} attacks[] = {
    {"double_free", double_free},
    {"delayed_double_free", delayed_double_free},
    {"double_free_large", double_free_large},
    {"interior_free", interior_free},
    {"wild_free", wild_free},
    {"cross_heap_free", cross_heap_free},
    {"size_mismatch", size_mismatch},
    {"overflow_by_1", overflow_by_1},
    {"overflow_by_1_into_slack", overflow_by_1_into_slack},
    {"overflow_by_8", overflow_by_8},
    {"overflow_by_8_large", overflow_by_8_large},
    {"overflow_by_a_page_large", overflow_by_a_page_large},
    {"underflow_by_8", underflow_by_8},
    {"underflow_by_8_large", underflow_by_8_large},
    {"read_after_free", read_after_free},
    {"read_after_free_large", read_after_free_large},
    {"write_after_free", write_after_free},
    {"write_after_free_large", write_after_free_large},
    {"uninitialised_read", uninitialised_read},
    {"metadata_overwrite", metadata_overwrite},
};

int main(int count, char **arguments)
{
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
        if (count < 2) {
            puts(attacks[i].name);
        } else if (strcmp(arguments[1], attacks[i].name) == 0) {
            const bool has_done_harm = attacks[i].make();
            later(SMALL);
            later(24);
            later(100);
            for (int j = 0; j < 100; j++) {
                free(hide(malloc(200000)));
            }
            say(has_done_harm ? "m" : "h");
            return 0;
        }
    }
    return count < 2 ? 0 : 2;
}
