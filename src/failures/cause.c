// cause.c -- see cause.h.
#include "failures/cause.h"

#include <errno.h>

#include "base/atomic.h"
#include "os/os.h"
#include "os/proc.h"

static bool is_beyond(struct hak_cause *cause, enum hak_limit limit, uint64_t use, uint64_t value)
{
    *cause = (struct hak_cause){limit, value, use};
    return true;
}

// The size of the process is in a short file, and its limits need none: /proc/self/status and /proc/self/limits take
// the kernel some 15 us each, and a program may be refused again and again (Documentation/filesystems/proc.rst).
static bool explain_by_limits(size_t bytes, struct hak_cause *cause)
{
    const size_t addresses = hak_os_address_limit();
    if (addresses != SIZE_MAX) {
        const uint64_t used = hak_proc_number("/proc/self/statm", "", 0) * hak_os_page_bytes();
        if (used + bytes > addresses) {
            return is_beyond(cause, HAK_LIMIT_AS, used, addresses);
        }
    }
    const size_t data = hak_os_data_limit();
    if (data != SIZE_MAX) {
        const uint64_t used = hak_proc_number("/proc/self/status", "VmData", 0) * 1024;
        return used + bytes > data && is_beyond(cause, HAK_LIMIT_DATA, used, data);
    }
    return false;
}

// Documentation/mm/overcommit-accounting.rst: 0 guesses, 1 allows all, 2 counts.
static bool explain_by_overcommit(size_t bytes, struct hak_cause *cause)
{
    const uint64_t policy = hak_proc_number("/proc/sys/vm/overcommit_memory", "", 1);
    if (policy == 0) {
        const uint64_t most = hak_os_memory_and_swap_bytes();
        return bytes > most && is_beyond(cause, HAK_LIMIT_OVERCOMMIT, 0, most);
    }
    if (policy != 2) {
        return false;
    }
    const uint64_t most = hak_proc_number("/proc/meminfo", "CommitLimit", 0) * 1024;
    const uint64_t used = hak_proc_number("/proc/meminfo", "Committed_AS", 0) * 1024;
    return most != 0 && used + bytes > most && is_beyond(cause, HAK_LIMIT_COMMIT, used, most);
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

// The kernel stops at one more than the limit. A line may be a page of the kernel's own, and the refused call may
// have needed two mappings: so a count that is this near to the limit has reached it.
static bool explain_by_mappings(struct hak_cause *cause)
{
    const uint64_t most = hak_proc_number("/proc/sys/vm/max_map_count", "", UINT64_MAX);
    const uint64_t count = most != UINT64_MAX ? mapping_count() : 0;
    return count + 2 >= most && is_beyond(cause, HAK_LIMIT_MAPPINGS, count, most);
}

// A filter may answer EAGAIN, too, whatever the limit.
static void explain_by_locked(size_t bytes, struct hak_cause *cause)
{
    const uint64_t most = hak_proc_number("/proc/self/limits", "Max locked memory", UINT64_MAX);
    const uint64_t used = hak_proc_number("/proc/self/status", "VmLck", 0) * 1024;
    if (most != UINT64_MAX && used + bytes > most) {
        is_beyond(cause, HAK_LIMIT_MEMLOCK, used, most);
    }
}

struct hak_cause hak_cause_of(struct hak_refusal refusal, bool may_look)
{
    struct hak_cause cause = {HAK_LIMIT_UNKNOWN, 0, 0};
    if (refusal.error == ENOMEM && refusal.bytes >> HAK_ADDRESS_LOG2 != 0) {
        is_beyond(&cause, HAK_LIMIT_ADDRESSES, 0, UINT64_C(1) << HAK_ADDRESS_LOG2);
    } else if (may_look && refusal.error == EAGAIN) {
        explain_by_locked(refusal.bytes, &cause);
    } else if (may_look && refusal.error == ENOMEM && !explain_by_limits(refusal.bytes, &cause) &&
               !explain_by_overcommit(refusal.bytes, &cause)) {
        explain_by_mappings(&cause);
    }
    return cause;
}
