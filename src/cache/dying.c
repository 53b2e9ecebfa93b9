// dying.c -- see dying.h.
#include "cache/dying.h"

#include "base/bits.h"
#include "base/check.h"
#include "cache/cache.h"
#include "cache/refuse.h"
#include "os/os.h"

_Atomic(bool) hak_dying;

// As much as a crash reporter that reads symbols may need. Addresses cost nothing until they are used.
#define MOST_BYTES  HAK_GIB(1)
#define LEAST_BYTES HAK_MIB(1)
#define OPEN_BYTES  HAK_MIB(1) // made writable at a time

// Lies at the start of the separate range. Sizes are in bytes from there. `used` and `open` only grow: a thread that reads an
// old value looks again.
struct apart {
    size_t bytes;
    _Atomic(size_t) used;
    _Atomic(size_t) open; // writable
} HAK_ALIGNED(16);
static _Atomic(struct apart *) apart_made;

// Marks of the threads that found a misuse. Several may find one at the same moment.
enum { FINDERS = 8 };
static _Atomic(uintptr_t) finders[FINDERS];
static _Atomic(uint32_t) finder_count;

static bool has_found(void)
{
    bool has = false;
    for (unsigned i = 0; i < FINDERS; i++) {
        has |= hak_load_relaxed(&finders[i]) == hak_os_thread_mark();
    }
    return has;
}

// In front of each block.
struct head {
    size_t bytes;
} HAK_ALIGNED(16);

static struct apart *apart_make(void)
{
    size_t bytes = MOST_BYTES;
    void *start;
    while ((start = hak_os_reserve(bytes)) == NULL && bytes > LEAST_BYTES) {
        bytes /= 2;
    }
    if (start == NULL) {
        return NULL;
    }
    struct apart *made = start;
    struct apart *other = NULL;
    if (hak_os_commit(start, OPEN_BYTES)) {
        made->bytes = bytes;
        hak_store_relaxed(&made->used, sizeof *made);
        hak_store_relaxed(&made->open, OPEN_BYTES);
        while (other == NULL && !hak_cas_release( // pairs with: apart_get
                                    &apart_made,
                                    &other,
                                    made)) {
        }
        if (other == NULL) {
            return made;
        }
    }
    hak_os_discard(start, bytes);         // another thread was faster
    return hak_load_acquire(&apart_made); // pairs with: apart_make
}

static struct apart *apart_get(void)
{
    struct apart *apart = hak_load_acquire(&apart_made); // pairs with: apart_make
    return apart != NULL ? apart : apart_make();
}

// Make all up to `end` writable. Two threads may both do so.
static bool apart_open(struct apart *apart, size_t end)
{
    size_t open = hak_load_relaxed(&apart->open);
    const size_t wanted = hak_align_up(end, OPEN_BYTES);
    if (open < wanted && !hak_os_unseal((char *)apart + open, wanted - open)) {
        return false;
    }
    while (open < wanted && !hak_cas_relaxed(&apart->open, &open, wanted)) {
    }
    return true;
}

// NULL: there is no room.
static struct head *apart_take(struct apart *apart, size_t bytes, size_t alignment)
{
    const uintptr_t start = (uintptr_t)apart;
    // Other threads go on, and may use up what they get. So half is for the threads that found a misuse: they run crash reporters.
    const size_t most = has_found() ? apart->bytes : apart->bytes / 2;
    size_t used = hak_load_relaxed(&apart->used);
    size_t place;
    do {
        place = hak_align_up(start + used + sizeof(struct head), alignment) - start;
        if (place >= most || bytes > most - place) {
            return NULL;
        }
    } while (!hak_cas_relaxed(&apart->used, &used, place + bytes));
    const bool is_open = apart_open(apart, place + bytes);
    return is_open ? (struct head *)(void *)((char *)apart + place) - 1 : NULL;
}

void *hak_dying_take(struct hak_request request)
{
    const size_t alignment = request.alignment < 16 ? 16 : request.alignment;
    struct apart *apart = apart_get();
    if (apart == NULL || request.bytes >= apart->bytes) {
        return hak_refuse(HAK_REFUSE_EXHAUSTION, request);
    }
    const size_t bytes = hak_align_up(request.bytes + (request.bytes == 0), 16);
    struct head *head = apart_take(apart, bytes, alignment);
    if (head == NULL) {
        return hak_refuse(HAK_REFUSE_EXHAUSTION, request);
    }
    head->bytes = bytes;
    return head + 1;
}

size_t hak_dying_bytes(const void *block)
{
    const struct apart *apart = hak_load_acquire(&apart_made); // pairs with: apart_make
    const size_t place = (uintptr_t)block - (uintptr_t)apart;
    if (apart == NULL || place < sizeof *apart + sizeof(struct head) ||
        place >= hak_load_relaxed(&apart->used) || place % 16 != 0) {
        return 0;
    }
    return ((const struct head *)block - 1)->bytes;
}

static void begin(void)
{
    const uint32_t place = hak_add_relaxed(&finder_count, 1) % FINDERS;
    hak_store_relaxed(&finders[place], hak_os_thread_mark());
    hak_store_relaxed(&hak_dying, true);
    hak_cache_become(&hak_cache_nobody);
}

void hak_dying_start(void)
{
    hak_before_end(begin);
}
