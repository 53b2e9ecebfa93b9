// failure.c -- see failure.h.
#include "failures/failure.h"

#include "base/format.h"
#include "base/options.h"
#include "base/probe.h"
#include "cache/hooks.h"
#include "cache/nested.h"
#include "failures/cause.h"
#include "limits/room.h"
#include "meta/map.h"
#include "os/control_group.h"
#include "os/os.h"
#include "slab/arena.h"
#include "stacks/code.h"

struct hak_failures hak_failures;

static const char *const kind_names[] = {
    [HAK_FAILURE_THRESHOLD] = "Threshold",
    [HAK_FAILURE_EXHAUSTION] = "Exhaustion",
    [HAK_FAILURE_MAP_FAIL] = "MapFail",
    [HAK_FAILURE_INJECTED] = "Injected",
};

static const char *const limit_names[HAK_LIMITS] = {
    [HAK_LIMIT_ADDRESSES] = "the address space",
    [HAK_LIMIT_AS] = "RLIMIT_AS",
    [HAK_LIMIT_DATA] = "RLIMIT_DATA",
    [HAK_LIMIT_MEMLOCK] = "RLIMIT_MEMLOCK",
    [HAK_LIMIT_COMMIT] = "CommitLimit",
    [HAK_LIMIT_OVERCOMMIT] = "memory and swap",
    [HAK_LIMIT_MAPPINGS] = "vm.max_map_count",
    [HAK_LIMIT_GROUP] = "the control group's memory",
    [HAK_LIMIT_HARD] = "option limit_hard",
    [HAK_LIMIT_MAP] = "hakmem's address map",
};

// Print one line, with option trace_failures.
static void print(const struct hak_failure *failure)
{
    char line[320];
    const size_t most = sizeof line - 1; // for the end of the line
    size_t length = hak_format(line,
                               most,
                               "hakmem: refused %z bytes, aligned to %z, to %p in thread %u: %s",
                               (size_t)failure->bytes,
                               (size_t)failure->alignment,
                               failure->site,
                               failure->thread_id,
                               kind_names[failure->kind]);
    if (failure->error != 0) {
        length += hak_format(line + length,
                             most - length,
                             ", the kernel gave no %z bytes (errno %u)",
                             (size_t)failure->asked_bytes,
                             failure->error);
    }
    if (failure->limit != HAK_LIMIT_UNKNOWN) {
        length += hak_format(line + length,
                             most - length,
                             ": %s is %z, %z in use",
                             limit_names[failure->limit],
                             (size_t)failure->limit_value,
                             (size_t)failure->limit_use);
    }
    line[length++] = '\n';
    hak_os_print(line, length);
}

// Take the place for a failure, where no other thread writes until it has its number. NULL when
// another thread is still writing there.
static struct hak_failure *place_take(uint64_t number)
{
    struct hak_failure *place = &hak_failures.latest[number % HAK_FAILURES_KEPT];
    uint64_t before = hak_load_relaxed(&place->number);
    if (number <= HAK_FAILURES_KEPT) {
        return place; // for the first time
    }
    if (before == 0 || !hak_cas_acquire(&place->number, &before, 0)) { // pairs with: note
        return NULL;
    }
    hak_fence_stores(); // a reader from outside sees the 0 before all that is written here
    return place;
}

static void note(struct hak_failure *failure)
{
    const uint64_t number = hak_add_relaxed(&hak_failures.count, 1) + 1;
    struct hak_failure *place = place_take(number);
    failure->date_ns = hak_os_date_ns();
    failure->thread_id = (uint32_t)hak_os_thread_id();
    if (place != NULL) {
        place->date_ns = failure->date_ns;
        place->bytes = failure->bytes;
        place->alignment = failure->alignment;
        place->site = failure->site;
        place->asked_bytes = failure->asked_bytes;
        place->limit_value = failure->limit_value;
        place->limit_use = failure->limit_use;
        place->thread_id = failure->thread_id;
        place->error = failure->error;
        place->kind = failure->kind;
        place->limit = failure->limit;
        place->place = failure->place;
        hak_store_release(&place->number, number); // pairs with: place_take
    }
    HAK_PROBE3("hakmem", "failure", failure->kind, failure->bytes, (uintptr_t)failure->site);
    if (hak_load_relaxed(&hak_options.trace_failures) != 0) {
        print(failure);
    }
}

static struct hak_failure failure_of(enum hak_failure_kind kind, struct hak_request request)
{
    struct hak_code_hint hint = {.is_quiet = true, .has_locks = !hak_nested_may_wait()};
    return (struct hak_failure){
        .kind = kind,
        .bytes = request.bytes,
        .alignment = request.alignment,
        .site = request.site,
        .place = hak_code_place((uintptr_t)request.site, &hint),
    };
}

// The last cause to look at. For this limit the kernel kills processes, and refuses no mapping; but the memory
// that the kernel itself needs for a mapping counts, too.
static struct hak_cause group_cause(size_t bytes)
{
    hak_lock_take(&hak_arena.lock); // for hak_control_group_read_share
    const struct hak_share share = hak_control_group_read_share();
    hak_lock_drop(&hak_arena.lock);
    if (share.memory_used == 0 || share.memory_used + bytes <= share.memory_bytes) {
        return (struct hak_cause){HAK_LIMIT_UNKNOWN, 0, 0};
    }
    return (struct hak_cause){HAK_LIMIT_GROUP, share.memory_bytes, share.memory_used};
}

// The control group had no room when its use was read, so the kernel was not asked.
static void note_group(struct hak_request request)
{
    struct hak_failure failure = failure_of(HAK_FAILURE_EXHAUSTION, request);
    hak_lock_take(&hak_arena.lock);
    failure.limit = HAK_LIMIT_GROUP;
    failure.limit_value = hak_room.limit_bytes;
    failure.limit_use = hak_room.used_bytes;
    hak_lock_drop(&hak_arena.lock);
    note(&failure);
}

// A limit of ours was reached; the kernel was not asked.
static void note_ours(struct hak_request request)
{
    const uint64_t limit = hak_load_relaxed(&hak_options.limit_hard);
    struct hak_failure failure = failure_of(HAK_FAILURE_EXHAUSTION, request);
    failure.limit = limit != 0 ? HAK_LIMIT_HARD : HAK_LIMIT_MAP;
    failure.limit_value = limit != 0 ? limit : (hak_map.super_mask + 1) << HAK_SUPER_LOG2;
    failure.limit_use = hak_arena_heap_bytes();
    note(&failure);
}

static void note_memory(struct hak_request request, uint64_t mark)
{
    const struct hak_refusal refusal = hak_refusal_since(mark);
    if (refusal.error == 0) {
        note_ours(request);
        return;
    }
    if (refusal.error == HAK_REFUSED_BY_GROUP) {
        note_group(request);
        return;
    }
    const bool may_look = hak_load_relaxed(&hak_options.trace_failures) != 0;
    struct hak_cause cause = hak_cause_of(refusal, may_look);
    if (cause.limit == HAK_LIMIT_UNKNOWN && may_look) {
        cause = group_cause(refusal.bytes);
    }
    struct hak_failure failure = failure_of(HAK_FAILURE_MAP_FAIL, request);
    failure.error = (uint32_t)refusal.error;
    failure.asked_bytes = refusal.bytes;
    failure.limit = cause.limit;
    failure.limit_value = cause.value;
    failure.limit_use = cause.use;
    note(&failure);
}

HAK_COLD void hak_hook_refused(enum hak_refuse_reason reason,
                               struct hak_request request,
                               uint64_t mark)
{
    if (reason == HAK_REFUSE_MEMORY) {
        note_memory(request, mark);
    } else {
        struct hak_failure failure = failure_of((enum hak_failure_kind)reason, request);
        note(&failure);
    }
}

// True for one count in `rate`, the same ones in each run. Multiplying mixes neighbouring counts (Knuth, The
// Art of Computer Programming 3, 6.4); the upper bits of the product are mixed better.
static bool is_drawn(uint64_t count, uint64_t rate)
{
    return rate != 0 && (count * UINT64_C(0x9E3779B97F4A7C15) >> 32) % rate == 0;
}

bool hak_failure_is_injected(struct hak_request request)
{
    static _Atomic(uint64_t) seen;
    const uint64_t site = hak_load_relaxed(&hak_options.fail_site);
    if (request.bytes < hak_load_relaxed(&hak_options.fail_min_bytes) ||
        request.bytes > hak_load_relaxed(&hak_options.fail_max_bytes) ||
        (site != 0 && site != (uintptr_t)request.site)) {
        return false;
    }
    const uint64_t count = hak_add_relaxed(&seen, 1) + 1;
    return count == hak_load_relaxed(&hak_options.fail_at) ||
           is_drawn(count, hak_load_relaxed(&hak_options.fail_rate));
}
