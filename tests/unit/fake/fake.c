// fake.c -- see fake.h.
#include "fake.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "os/refusal.h"

#ifndef MAP_FIXED_NOREPLACE
#    define MAP_FIXED_NOREPLACE 0x100000
#endif

struct hak_fake hak_fake = {
    .budget_bytes = SIZE_MAX,
    .now_ns = 1,
    .process_id = 1,
    .page_bytes = 4096,
    .address_limit = SIZE_MAX,
    .data_limit = SIZE_MAX,
    .memory_bytes = SIZE_MAX,
    .processors = 1,
};

_Atomic(uint64_t) hak_looks;
struct hak_os_counts
    hak_os_counts; // except purged_bytes zero: the fake's own figures are in hak_fake

void hak_fake_fail_in(size_t count, size_t times)
{
    hak_fake.fail_times = times;
    hak_store_relaxed(&hak_fake.fail_first, hak_load_relaxed(&hak_fake.asks) + count);
}

// Linux refuses a start that is no page boundary, and rounds lengths up: with larger pages a careless
// caller would lose the content next to its own.
static void check_pages(const void *start, size_t bytes)
{
    const size_t page = hak_os_page_bytes();
    if ((uintptr_t)start % page != 0 || bytes % page != 0) {
        fprintf(stderr, "fake: %p, %zu bytes: not whole pages of %zu\n", start, bytes, page);
        abort();
    }
}

// Is this system call to be refused?
static bool is_refused(void)
{
    const size_t number = hak_add_relaxed(&hak_fake.calls, 1) + 1;
    const size_t later =
        number - hak_load_relaxed(&hak_fake.refuse_first); // wraps before the first
    const uint64_t dice = (number + hak_fake.random) * 0x9E3779B97F4A7C15U >> 32;
    const bool refused = later < hak_fake.refuse_times ||
                         (hak_fake.refuse_one_in != 0 && dice % hak_fake.refuse_one_in == 0);
    hak_add_relaxed(&hak_fake.refusals, refused ? 1 : 0);
    return refused;
}

// May the caller have `bytes` more?
static bool ask(size_t bytes)
{
    const size_t number = hak_add_relaxed(&hak_fake.asks, 1) + 1;
    const size_t mapped = hak_load_relaxed(&hak_fake.mapped_bytes);
    const size_t failed = number - hak_load_relaxed(&hak_fake.fail_first); // wraps before the first
    const bool may = !is_refused() && !hak_fake.refuse_asks && failed >= hak_fake.fail_times &&
                     mapped <= hak_fake.budget_bytes && bytes <= hak_fake.budget_bytes - mapped;
    if (!may) {
        hak_refusal_note(ENOMEM, bytes);
    }
    return may;
}

// Every test can run with larger pages: the real ones are 4 KiB, so they fit.
size_t hak_os_page_bytes(void)
{
    static size_t given;
    if (given == 0) {
        const char *text = getenv("HAK_FAKE_PAGE_BYTES");
        given = text != NULL ? strtoul(text, NULL, 10) : hak_fake.page_bytes;
    }
    return given;
}

// A mapping by the real system, without a trace in errno, which tests look at. If the place is
// free to choose, it starts at a page boundary, also if pages are larger than the real ones.
static void *map(void *hint, size_t bytes, int protection, int extra_flags)
{
    const int saved = errno;
    const size_t real_page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t page = hak_os_page_bytes();
    const size_t room = hint == NULL && page > real_page ? page : 0;
    char *got = mmap(hint,
                     bytes + room,
                     protection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | extra_flags,
                     -1,
                     0);
    if (got != MAP_FAILED && room != 0) {
        char *aligned = (char *)hak_align_up((uintptr_t)got, room);
        const size_t real_bytes = hak_align_up(bytes, real_page);
        if (aligned > got) {
            munmap(got, (size_t)(aligned - got));
        }
        munmap(aligned + real_bytes, room - (size_t)(aligned - got));
        got = aligned;
    }
    errno = saved;
    return got != MAP_FAILED ? got : NULL;
}

void *hak_os_map(size_t bytes)
{
    hak_add_relaxed(&hak_fake.maps, 1);
    void *got = ask(bytes) ? map(NULL, bytes, PROT_READ | PROT_WRITE, 0) : NULL;
    if (got != NULL) {
        hak_add_relaxed(&hak_fake.mapped_bytes, bytes);
    }
    return got;
}

void *hak_os_map_at(void *place, size_t bytes, bool *is_taken)
{
    hak_add_relaxed(&hak_fake.maps, 1);
    check_pages(place, 0);
    *is_taken = false;
    if (hak_fake.on_map != NULL) {
        hak_fake.on_map(place);
    }
    if (!ask(bytes)) {
        return NULL;
    }
    *is_taken = true;
    void *got = hak_fake.refuse_hints
                    ? NULL
                    : map(place, bytes, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);
    if (got != NULL && got != place) {
        munmap(got, bytes);
        return NULL;
    }
    hak_add_relaxed(&hak_fake.mapped_bytes, got != NULL ? bytes : 0);
    return got;
}

void *hak_os_reserve(size_t bytes)
{
    void *got = ask(bytes) ? map(NULL, bytes, PROT_READ, 0) : NULL;
    if (got != NULL) {
        hak_add_relaxed(&hak_fake.mapped_bytes, bytes);
    }
    return got;
}

bool hak_os_grants_uncommitted(size_t bytes)
{
    (void)bytes;
    return hak_fake.is_guessing;
}

bool hak_os_commit(void *start, size_t bytes)
{
    hak_add_relaxed(&hak_fake.commits, 1);
    check_pages(start, bytes);
    return ask(0) && mprotect(start, bytes, PROT_READ | PROT_WRITE) == 0;
}

bool hak_os_unseal(void *start, size_t bytes)
{
    return hak_os_commit(start, bytes);
}

void hak_os_seal(void *start, size_t bytes)
{
    check_pages(start, bytes);
    mprotect(start, bytes, PROT_READ);
}

bool hak_os_guard(void *start, size_t bytes)
{
    check_pages(start, bytes);
    return !hak_fake.refuse_guard && mprotect(start, bytes, PROT_NONE) == 0;
}

bool hak_os_unguard(void *start, size_t bytes)
{
    check_pages(start, bytes);
    return !hak_fake.refuse_unguard && mprotect(start, bytes, PROT_READ | PROT_WRITE) == 0;
}

unsigned hak_os_guard_mappings(void)
{
    return 2;
}

void *hak_os_map_guarded(size_t bytes)
{
    return hak_os_map(bytes); // asks are counted there
}

static const struct hak_fake_content *content_of(const char *path, const void *start)
{
    const struct hak_fake_content *content = hak_fake.contents;
    while (content != NULL && content->path != NULL) {
        if (path != NULL ? strcmp(content->path, path) == 0 : content->bytes == start) {
            return content;
        }
        content++;
    }
    return NULL;
}

bool hak_os_unmap(void *start, size_t bytes)
{
    hak_add_relaxed(&hak_fake.unmaps, 1);
    if (content_of(NULL, start) != NULL) {
        return true;
    }
    check_pages(start, bytes);
    if (hak_fake.on_unmap != NULL) {
        hak_fake.on_unmap(start, bytes);
    }
    if (is_refused() || hak_fake.refuse_unmap || munmap(start, bytes) != 0) {
        return false;
    }
    hak_sub_relaxed(&hak_fake.mapped_bytes, bytes);
    return true;
}

bool hak_os_purge(void *start, size_t bytes)
{
    hak_add_relaxed(&hak_fake.purges, 1);
    check_pages(start, bytes);
    if (hak_fake.on_purge != NULL) {
        hak_fake.on_purge(start, bytes);
    }
    if (is_refused() || hak_fake.refuse_purge || madvise(start, bytes, MADV_DONTNEED) != 0) {
        return false;
    }
    hak_add_relaxed(&hak_fake.purged_bytes, bytes);
    hak_add_relaxed(&hak_os_counts.purged_bytes, bytes);
    return true;
}

bool hak_os_purge_lazily(void *start, size_t bytes)
{
    hak_add_relaxed(&hak_fake.lazy_purges, 1);
    return hak_os_purge(start, bytes);
}

uint64_t hak_os_purge_ranges(const struct hak_range *ranges, unsigned count)
{
    uint64_t done = 0;
    hak_add_relaxed(&hak_fake.purge_batches, 1);
    for (unsigned i = 0; i < count; i++) {
        done |= (uint64_t)hak_os_purge(ranges[i].start, ranges[i].bytes) << i;
    }
    return done;
}

void hak_os_clear(void *start, size_t bytes)
{
    memset(start, 0, bytes);
}

void hak_os_copy(void *target, const void *source, size_t bytes)
{
    memcpy(target, source, bytes);
}

void *hak_os_remap(void *start, size_t old_bytes, size_t bytes, void *target)
{
    const int saved = errno;
    const size_t more = bytes > old_bytes ? bytes - old_bytes : 0;
    check_pages(start, old_bytes);
    check_pages(target, bytes);
    if (!ask(more) || (target == NULL && hak_fake.refuse_remap)) {
        if (target != NULL) {
            munmap(target,
                   bytes); // as the kernel does: the old mapping goes before the failure is found
        }
        return NULL;
    }
    void *got = target == NULL
                    ? mremap(start, old_bytes, bytes, 0)
                    : mremap(start, old_bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    errno = saved;
    if (got == MAP_FAILED) {
        return NULL;
    }
    // The target's own mapping is replaced, so only the old one's bytes go.
    hak_add_relaxed(&hak_fake.mapped_bytes, (target == NULL ? bytes : 0) - old_bytes);
    return got;
}

static const char *file_text(const char *path)
{
    const struct hak_fake_file *file = hak_fake.files;
    hak_add_relaxed(&hak_fake.file_reads, 1);
    while (file != NULL && file->path != NULL && strcmp(file->path, path) != 0) {
        file++;
    }
    return file != NULL && file->path != NULL ? file->text : "";
}

size_t hak_os_count_lines(const char *path)
{
    size_t lines = 0;
    for (const char *c = file_text(path); *c != '\0'; c++) {
        lines += *c == '\n';
    }
    return lines;
}

size_t hak_os_read_file(const char *path, char *text, size_t bytes)
{
    const char *found = file_text(path);
    const size_t length = strlen(found) < bytes - 1 ? strlen(found) : bytes - 1;
    memcpy(text, found, length);
    text[length] = '\0';
    return length;
}

struct hak_held_file hak_os_hold_file(const char *path)
{
    struct hak_held_file held = {.file = -1};
    const struct hak_fake_file *file = hak_fake.files;
    while (file != NULL && file->path != NULL && strcmp(file->path, path) != 0) {
        file++;
    }
    if (file != NULL && file->path != NULL) {
        held.file = (int)hak_fake.kept_count++;
        hak_fake.kept[held.file] = file->path;
    }
    return held;
}

size_t hak_os_read_held(const struct hak_held_file *held, char *text, size_t bytes)
{
    return held->file >= 0 ? hak_os_read_file(hak_fake.kept[held->file], text, bytes) : 0;
}

const void *hak_os_map_file(const char *path, size_t *bytes)
{
    const struct hak_fake_content *content = content_of(path, NULL);
    *bytes = content != NULL ? content->length : 0;
    return content != NULL && content->length > 0 ? content->bytes : NULL;
}

size_t hak_os_memory_bytes(void)
{
    return hak_fake.memory_bytes;
}

size_t hak_os_memory_and_swap_bytes(void)
{
    return hak_fake.memory_bytes + hak_fake.swap_bytes;
}

size_t hak_os_free_swap_bytes(void)
{
    return hak_fake.free_swap_bytes;
}

size_t hak_os_resident_bytes(void)
{
    return hak_fake.resident_bytes;
}

bool hak_os_grants_huge(void)
{
    return hak_fake.grants_huge;
}

void hak_os_drop_page_tables(void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
    hak_add_relaxed(&hak_fake.table_drops, 1);
}

void hak_os_want_huge(void *start, size_t bytes, bool wanted)
{
    (void)start;
    (void)bytes;
    hak_add_relaxed(wanted ? &hak_fake.huge_asks : &hak_fake.huge_refusals, 1);
}

size_t hak_os_address_limit(void)
{
    return hak_fake.address_limit;
}

size_t hak_os_data_limit(void)
{
    return hak_fake.data_limit;
}

uint64_t hak_os_random(void)
{
    return hak_fake.random;
}

bool hak_os_has_content(const void *word)
{
    (void)word;
    return hak_fake.resident_bytes != 0;
}

bool hak_os_can_read(const void *address)
{
    return hak_fake.on_look != NULL ? hak_fake.on_look(address) : address != NULL;
}

// Time passes at once; a thread that really waits for another one looks again soon.
void hak_os_wait(_Atomic(uint32_t) *word, uint32_t expected, unsigned ms)
{
    hak_store_relaxed(&hak_fake.waited_on, word);
    if (hak_fake.on_wait != NULL) {
        hak_fake.on_wait();
    }
    if (hak_load_relaxed(word) == expected) {
        hak_add_relaxed(&hak_fake.now_ns, (uint64_t)ms * 1000000U);
        sched_yield();
    }
}

void hak_os_wake(_Atomic(uint32_t) *word)
{
    (void)word; // waiting threads look again by themselves
    hak_add_relaxed(&hak_fake.wakes, 1);
}

void hak_os_wait_numbered(_Atomic(uint32_t) *word, uint32_t expected, uint32_t number)
{
    (void)number;
    hak_os_wait(word, expected, 0);
}

void hak_os_wake_numbered(_Atomic(uint32_t) *word, uint32_t number)
{
    (void)number;
    hak_os_wake(word);
}

bool hak_os_barrier_all(void)
{
    hak_add_relaxed(&hak_fake.barriers, 1);
    if (hak_fake.on_barrier != NULL) {
        hak_fake.on_barrier();
    }
    return !is_refused() && !hak_fake.refuse_barrier;
}

bool hak_os_start_thread(void (*work)(void))
{
    hak_add_relaxed(&hak_fake.thread_starts, 1);
    if (is_refused() || hak_fake.refuse_thread) {
        return false;
    }
    hak_fake.work = work;
    return true;
}

void hak_os_thread_ends(void)
{
}

void hak_os_join_thread(void)
{
    hak_fake.work = NULL;
}

void hak_os_print(const char *text, size_t length)
{
    const size_t room = sizeof hak_fake.printed - 1 - hak_fake.printed_bytes;
    length = length < room ? length : room;
    memcpy(hak_fake.printed + hak_fake.printed_bytes, text, length);
    hak_fake.printed_bytes += length;
    hak_fake.printed[hak_fake.printed_bytes] = '\0';
}

void hak_os_abort(void)
{
    if (hak_fake.death != NULL) {
        longjmp(*hak_fake.death, 1);
    }
    if (write(STDERR_FILENO, hak_fake.printed, hak_fake.printed_bytes) < 0) {
        _exit(2); // stderr does not exist either
    }
    abort();
}
