// listener.h -- a program that wants to hear when memory of its buffers goes back, and the check that it does.
//
// A test includes this, makes munmap, madvise and mremap lead to the functions here, and calls lt_check().
#ifndef HAK_TESTS_SUPPORT_LISTENER_H
#define HAK_TESTS_SUPPORT_LISTENER_H

#include "promise.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum { LT_EVENTS = 400000, LT_LARGE = 8, LT_SMALL = 20000, LT_SMALL_BYTES = 2000 };
#define LT_LARGE_BYTES (24 * HT_MIB)

static struct {
    uintptr_t from, to;
} lt_events[LT_EVENTS];
static _Atomic(unsigned) lt_count;
static void (*volatile lt_also)(void); // what else a test does in each call

static void lt_note(void *start, size_t bytes)
{
    const unsigned i = lt_count++;
    HT_CHECK(i < LT_EVENTS, "more than %d events", LT_EVENTS);
    lt_events[i].from = (uintptr_t)start;
    lt_events[i].to = (uintptr_t)start + bytes;
    if (lt_also != NULL) {
        lt_also();
    }
    errno = EIO; // the listener's own business
}

static int lt_munmap(void *start, size_t bytes)
{
    lt_note(start, bytes);
    return (int)syscall(SYS_munmap, start, bytes);
}

static int lt_madvise(void *start, size_t bytes, int advice)
{
    if (advice == MADV_DONTNEED || advice == MADV_FREE) {
        lt_note(start, bytes);
    }
    return (int)syscall(SYS_madvise, start, bytes, advice);
}

static void *lt_mremap(void *start, size_t old_bytes, size_t bytes, int flags, void *target)
{
    lt_note(start, old_bytes);
    return (void *)syscall(SYS_mremap, start, old_bytes, bytes, flags, target);
}

static uintptr_t lt_large[LT_LARGE];
static uintptr_t lt_small[LT_SMALL];

// Has the page at that address gone back, and was that heard?
static bool lt_is_gone(uintptr_t address)
{
    const uintptr_t page = address & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
    unsigned char resident = 0;
    if (mincore((void *)page, 1, &resident) == 0 && (resident & 1) != 0) {
        return false;
    }
    bool is_heard = false;
    for (unsigned i = lt_count; i-- > 0 && !is_heard;) {
        is_heard = lt_events[i].from <= page && page < lt_events[i].to;
    }
    HT_CHECK(is_heard, "the page at %p went without a word", (void *)page);
    return true;
}

static void lt_fill_and_free(void)
{
    void *blocks[LT_LARGE];
    for (unsigned i = 0; i < LT_LARGE; i++) {
        blocks[i] = memset(malloc(LT_LARGE_BYTES), 1, LT_LARGE_BYTES);
        lt_large[i] = (uintptr_t)blocks[i] + LT_LARGE_BYTES / 2;
    }
    for (unsigned i = 0; i < LT_SMALL; i++) {
        lt_small[i] = (uintptr_t)memset(malloc(LT_SMALL_BYTES), 1, LT_SMALL_BYTES);
    }
    for (unsigned i = 0; i < LT_SMALL; i++) {
        free((void *)lt_small[i]);
    }
    errno = ENOTTY;
    for (unsigned i = 0; i < LT_LARGE; i++) {
        free(blocks[i]);
    }
    HT_CHECK(errno == ENOTTY, "free changed errno to %d", errno);
}

static unsigned lt_gone(void)
{
    unsigned gone = 0;
    for (unsigned i = 0; i < LT_LARGE; i++) {
        gone += lt_is_gone(lt_large[i]);
    }
    for (unsigned i = 0; i < LT_SMALL; i++) {
        gone += lt_is_gone(lt_small[i]);
    }
    return gone;
}

static void lt_check(void)
{
    const unsigned before_all = lt_count;
    void *mapped = mmap(NULL, HT_MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(munmap(mapped, HT_MIB) == 0 && lt_count > before_all,
             "the program itself does not hear");

    lt_fill_and_free();
    malloc_trim(0);
    const unsigned gone = lt_gone();
    HT_CHECK(gone > (LT_LARGE + LT_SMALL) / 2, "only %u of the blocks' pages have gone", gone);

    // What goes back by itself, and blocks that are moved.
    lt_count = 0;
    lt_fill_and_free();
    char *grown = malloc(600 * HT_MIB); // has a mapping of its own, whose pages move
    char *in_the_way = malloc(600 * HT_MIB);
    const uintptr_t before = (uintptr_t)grown + 300 * HT_MIB;
    grown[300 * HT_MIB] = 1;
    grown = realloc(grown, 1200 * HT_MIB);
    HT_CHECK(grown != NULL && in_the_way != NULL && grown[300 * HT_MIB] == 1, "no memory");
    HT_CHECK((uintptr_t)grown + 300 * HT_MIB == before || lt_is_gone(before), "it is still there");
    for (unsigned i = 0; i < 20; i++) {
        usleep(100000);
        free(ht_hide(malloc(100000)));
    }
    lt_gone();
    free(grown);
    free(in_the_way);
}

#endif
