// tags only
// preload only
//
// In a heap with memory tags, a touch of the block before or behind one's own, or of a block after it was freed, also if
// it was reused since, faults at once, and a message says where. A pointer to a block that was reused frees nothing.
#include "../support/api.h"
#include "../support/mistake.h"

enum { SIZE = 104, BLOCKS = 2000, TAG_SHIFT = 56 };

static unsigned tag_of(const void *p)
{
    return (unsigned)((uintptr_t)p >> TAG_SHIFT & 15);
}

static uintptr_t address_of(const void *p)
{
    return (uintptr_t)p & ((UINT64_C(1) << TAG_SHIFT) - 1);
}

static char *block(void)
{
    return ht_hide(malloc(SIZE));
}

static void overflow(void)
{
    char *one = block();
    ht_touch(one + malloc_usable_size(one) + 8); // behind the canary
}

static void underflow(void)
{
    ht_touch(block() - 1);
}

static void write_after_free(void)
{
    char *one = block();
    free(one);
    ht_touch(one + 10);
}

static void read_after_free(void)
{
    char *one = block();
    free(one);
    _exit(*(volatile char *)ht_hide(one + 10));
}

// A block that was freed and is used by others now.
static char *block_of_others(void)
{
    char *one = block();
    const char *other = NULL;
    free(one);
    for (int i = 0; i < 1000000 && (other == NULL || address_of(other) != address_of(one)); i++) {
        free((void *)(uintptr_t)other);
        other = block();
    }
    HT_CHECK(address_of(other) == address_of(one), "the block did not come back");
    HT_CHECK(tag_of(other) != tag_of(one), "it came back with its last tag");
    return one;
}

static void write_to_the_block_of_others(void)
{
    ht_touch(block_of_others());
}

static void free_of_the_block_of_others(void)
{
    free(block_of_others());
}

static void realloc_of_the_block_of_others(void)
{
    free(realloc(block_of_others(), SIZE - 1));
}

static void free_with_another_tag(void)
{
    free((void *)((uintptr_t)block() ^ UINT64_C(3) << TAG_SHIFT));
}

// All blocks have a tag, and no two neighbours the same one.
static void neighbours_differ(void)
{
    static char *blocks[BLOCKS];
    unsigned pairs = 0;
    unsigned tags = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = block();
        tags |= 1U << tag_of(blocks[i]);
        HT_CHECK(tag_of(blocks[i]) != 0, "%p has no tag", (void *)blocks[i]);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        for (unsigned j = 0; j < BLOCKS; j++) {
            if (address_of(blocks[j]) - address_of(blocks[i]) == SIZE + 8) {
                HT_CHECK(tag_of(blocks[i]) != tag_of(blocks[j]), "neighbours with one tag");
                pairs++;
            }
        }
    }
    HT_CHECK(pairs > BLOCKS / 2, "%u neighbours among %d blocks", pairs, BLOCKS);
    HT_CHECK(tags == 0xFFFE, "tags that were drawn: %x", tags);
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

static bool has_tag(void *start, size_t bytes, void *wanted)
{
    HT_CHECK(bytes != 0, "a block of no bytes");
    *(unsigned *)wanted += address_of(start) == address_of(*(char **)ht_hide(&start)) &&
                           tag_of(start) != 0 && *(volatile char *)start == 'x';
    return true;
}

// Functions that report blocks report their tags.
static void questions_are_answered_with_tags(void)
{
    HT_API(hak_owns);
    HT_API(hak_describe);
    HT_API(hak_visit_blocks);
    struct hak_block_info info;
    unsigned seen = 0;
    char *one = block();
    memset(one, 'x', SIZE);
    HT_CHECK(
        api_hak_owns(one) && api_hak_owns((void *)address_of(one)), "not ours: %p", (void *)one);
    HT_CHECK(malloc_usable_size(one) == SIZE, "%zu bytes", malloc_usable_size(one));
    HT_CHECK(api_hak_describe((void *)address_of(one + 5), &info) && info.start == one &&
                 !info.is_free,
             "%p is told as %p",
             (void *)one,
             info.start);
    HT_CHECK(api_hak_visit_blocks(NULL, has_tag, &seen) && seen >= 1, "not seen: %p", (void *)one);
    free(one);
}

// Memory that was purged has lost its tags; it gets new ones, all of a block.
static void pages_come_back(void)
{
    enum { LONG = 20000, COUNT = 200 };
    static char *blocks[COUNT];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            blocks[i] = ht_hide(malloc(LONG));
            memset(blocks[i], 'x', LONG);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            free(blocks[(i * 7) % COUNT]);
        }
        malloc_trim(0);
    }
}

// As heap memory must be once the heap was destroyed.
static void heaps_leave_no_tags(void)
{
    HT_API(hak_heap_create);
    HT_API(hak_heap_malloc);
    HT_API(hak_heap_destroy);
    for (unsigned round = 0; round < 20; round++) {
        struct hak_heap *heap = api_hak_heap_create();
        for (unsigned i = 0; i < 500; i++) {
            memset(api_hak_heap_malloc(heap, SIZE), 'x', SIZE);
        }
        api_hak_heap_destroy(heap);
        pages_come_back();
    }
}

int main(void)
{
    ht_start();
    HT_API(hak_option_get);
    uint64_t value = 0;
    HT_CHECK(api_hak_option_get("tagging", &value), "no option tagging");
    if (value == 0) {
        return 77;
    }
    neighbours_differ();
    questions_are_answered_with_tags();
    pages_come_back();
    heaps_leave_no_tags();
    ht_expect_said(ht_said_by(overflow, SIGSEGV), "hakmem: wrong tag: 0x");
    ht_expect_said(ht_said_by(underflow, SIGSEGV), "hakmem: wrong tag: 0x");
    ht_expect_said(ht_said_by(write_after_free, SIGSEGV), "10 bytes after the start of ");
    ht_expect_said(ht_said_by(read_after_free, SIGSEGV), "a block of 112 bytes that is free");
    ht_expect_said(ht_said_by(write_to_the_block_of_others, SIGSEGV), "112 bytes that is in use");
    ht_expect_said(ht_said_by(free_of_the_block_of_others, SIGABRT), "hakmem: double free: 0x");
    ht_expect_said(ht_said_by(realloc_of_the_block_of_others, SIGABRT),
                   "hakmem: invalid realloc: 0x");
    ht_expect_said(ht_said_by(free_with_another_tag, SIGABRT), "hakmem: double free: 0x");
    return 0;
}
