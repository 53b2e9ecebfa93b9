// refusal.c -- see refusal.h.
#include "os/refusal.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/atomic.h"
#include "os/os.h"

// The latest refusals of all threads. A thread looks for its own at once: as many others have to come
// in between before it is lost.
enum { KEPT = 64 };

static struct {
    _Atomic(uint64_t) number; // counted from 1
    _Atomic(size_t) bytes;
    _Atomic(uintptr_t) thread;
    _Atomic(int) error;
} refusals[KEPT];
static _Atomic(uint64_t) refusal_count;

void hak_refusal_note(int error, size_t bytes)
{
    const uint64_t number = hak_add_relaxed(&refusal_count, 1) + 1;
    hak_store_relaxed(&refusals[number % KEPT].bytes, bytes);
    hak_store_relaxed(&refusals[number % KEPT].error, error);
    hak_store_relaxed(&refusals[number % KEPT].thread, hak_os_thread_mark());
    hak_store_relaxed(&refusals[number % KEPT].number, number);
}

uint64_t hak_refusal_mark(void)
{
    return hak_load_relaxed(&refusal_count);
}

struct hak_refusal hak_refusal_since(uint64_t mark)
{
    const uintptr_t thread = hak_os_thread_mark();
    const uint64_t newest = hak_load_relaxed(&refusal_count);
    for (uint64_t number = newest; number > mark && newest - number < KEPT; number--) {
        if (hak_load_relaxed(&refusals[number % KEPT].number) == number &&
            hak_load_relaxed(&refusals[number % KEPT].thread) == thread) {
            return (struct hak_refusal){hak_load_relaxed(&refusals[number % KEPT].error),
                                        hak_load_relaxed(&refusals[number % KEPT].bytes)};
        }
    }
    return (struct hak_refusal){0, 0};
}

// More than any process has, unless it asks for them in so many words.
#if defined(__aarch64__)
#    define ADDRESS_LOG2 48
#else
#    define ADDRESS_LOG2 47
#endif

enum { TEXT_BYTES = 2048 }; // on the stack: what is looked for stands further up in each file

// More than memory and swap the kernel gives nobody at a time, but where it lends without a limit (overcommit_memory is 1):
// there it is RLIMIT_AS that has refused, of which the rest of a heap that fits into memory is a small part.
bool hak_refusal_is_final(size_t bytes)
{
    return bytes >> ADDRESS_LOG2 != 0 || bytes > hak_os_memory_and_swap_bytes();
}

// The number behind `name`, in units of `unit` bytes. False when there is none, as for "unlimited".
static bool number_behind(const char *text, const char *name, uint64_t unit, uint64_t *number)
{
    const char *c = strstr(text, name);
    uint64_t value = 0;
    if (c == NULL) {
        return false;
    }
    for (c += strlen(name); *c == ' ' || *c == '\t' || *c == ':'; c++) {
    }
    const char *digits = c;
    for (; *c >= '0' && *c <= '9'; c++) {
        value = value * 10 + (uint64_t)(*c - '0');
    }
    *number = value * unit;
    return c != digits;
}

static bool number_in_file(const char *path, uint64_t *number)
{
    char text[32];
    return hak_os_read_file(path, text, sizeof text) > 0 && number_behind(text, "", 1, number);
}

static bool is_beyond(struct hak_cause *cause, enum hak_limit limit, uint64_t use, uint64_t value)
{
    *cause = (struct hak_cause){limit, value, use};
    return true;
}

// The size of the process stands in a short file, and its limits need none: /proc/self/status and /proc/self/limits take
// the kernel some 15 us each, and a program may ask again and again (Documentation/filesystems/proc.rst).
static bool explain_by_limits(size_t bytes, struct hak_cause *cause)
{
    char text[TEXT_BYTES];
    const size_t addresses = hak_os_address_limit();
    uint64_t used = 0;
    if (addresses != SIZE_MAX) {
        hak_os_read_file("/proc/self/statm", text, sizeof text);
        number_behind(text, "", hak_os_page_bytes(), &used);
        if (used + bytes > addresses) {
            return is_beyond(cause, HAK_LIMIT_AS, used, addresses);
        }
    }
    const size_t data = hak_os_data_limit();
    if (data != SIZE_MAX) {
        used = 0;
        hak_os_read_file("/proc/self/status", text, sizeof text);
        number_behind(text, "VmData", 1024, &used);
        return used + bytes > data && is_beyond(cause, HAK_LIMIT_DATA, used, data);
    }
    return false;
}

// Documentation/mm/overcommit-accounting.rst: 0 guesses, 1 allows all, 2 counts.
static bool explain_by_overcommit(size_t bytes, struct hak_cause *cause)
{
    char text[TEXT_BYTES];
    uint64_t policy = 1;
    uint64_t most = UINT64_MAX;
    uint64_t used = 0;
    number_in_file("/proc/sys/vm/overcommit_memory", &policy);
    if (policy == 0) {
        most = hak_os_memory_and_swap_bytes();
        return bytes > most && is_beyond(cause, HAK_LIMIT_OVERCOMMIT, 0, most);
    }
    return policy == 2 && hak_os_read_file("/proc/meminfo", text, sizeof text) > 0 &&
           number_behind(text, "CommitLimit", 1024, &most) &&
           number_behind(text, "Committed_AS", 1024, &used) && used + bytes > most &&
           is_beyond(cause, HAK_LIMIT_COMMIT, used, most);
}

// Counting takes some 10 ms when there are 65,530, so no more often than once a second.
static uint64_t mapping_count(void)
{
    static _Atomic(uint64_t) counted_ns;
    static _Atomic(uint64_t) count;
    const uint64_t now = hak_os_about_now_ns();
    const uint64_t before = hak_load_relaxed(&counted_ns);
    if (before == 0 || now - before > UINT64_C(1000000000)) {
        hak_store_relaxed(&count, hak_os_count_lines("/proc/self/maps"));
        hak_store_relaxed(&counted_ns, now);
    }
    return hak_load_relaxed(&count);
}

// The kernel stops at one more than the limit. A line may be a page of its own, and what was refused may
// have needed two: what is that near to the limit has reached it.
static bool explain_by_mappings(struct hak_cause *cause)
{
    uint64_t most = UINT64_MAX;
    number_in_file("/proc/sys/vm/max_map_count", &most);
    const uint64_t count = most != UINT64_MAX ? mapping_count() : 0;
    return count + 2 >= most && is_beyond(cause, HAK_LIMIT_MAPPINGS, count, most);
}

static void explain_by_locked(struct hak_cause *cause)
{
    char text[TEXT_BYTES];
    hak_os_read_file("/proc/self/limits", text, sizeof text);
    number_behind(text, "Max locked memory", 1, &cause->value);
    hak_os_read_file("/proc/self/status", text, sizeof text);
    number_behind(text, "VmLck", 1024, &cause->use);
    cause->limit = HAK_LIMIT_MEMLOCK;
}

struct hak_cause hak_refusal_explain(struct hak_refusal refusal, bool may_look)
{
    struct hak_cause cause = {HAK_LIMIT_UNKNOWN, 0, 0};
    if (refusal.error == ENOMEM && refusal.bytes >> ADDRESS_LOG2 != 0) {
        is_beyond(&cause, HAK_LIMIT_ADDRESSES, 0, UINT64_C(1) << ADDRESS_LOG2);
    } else if (may_look && refusal.error == EAGAIN) {
        explain_by_locked(&cause);
    } else if (may_look && refusal.error == ENOMEM && !explain_by_limits(refusal.bytes, &cause) &&
               !explain_by_overcommit(refusal.bytes, &cause)) {
        explain_by_mappings(&cause);
    }
    return cause;
}
