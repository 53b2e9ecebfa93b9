// failure.h -- allocations that were refused: which, why, and for whom.
//
// Owns      hak_failures: the latest refused requests, in static memory, for tools that read it from
//           outside, also from a core dump.
// Threads   any; no lock: new failures overwrite the oldest, and if two want the same place at once,
//           one of them is only counted.
// Fails     never.
//
// Also the injector, which refuses requests that could be served, to test how a program handles NULL.
// While it is on, no cache keeps magazines, so that it sees every call.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "cache/request.h"

enum hak_failure_kind {
    HAK_FAILURE_THRESHOLD = HAK_REFUSE_THRESHOLD,
    HAK_FAILURE_EXHAUSTION = HAK_REFUSE_EXHAUSTION,
    HAK_FAILURE_MAP_FAIL = HAK_REFUSE_MEMORY, // the kernel refused
    HAK_FAILURE_INJECTED = HAK_REFUSE_INJECTED,
};

struct hak_failure {
    _Atomic(uint64_t) number; // counted from 1; 0: none was here yet, or it is being written
    uint64_t date_ns;
    uint64_t bytes;
    uint64_t alignment;
    const void *site;
    uint64_t asked_bytes; // that the kernel refused
    uint64_t limit_value;
    uint64_t limit_use;
    uint32_t thread_id;
    uint32_t error;  // the kernel's, or 0
    uint32_t kind;   // enum hak_failure_kind
    uint32_t limit;  // enum hak_limit
    uintptr_t place; // of the site (stacks/code.h)
};

enum { HAK_FAILURES_KEPT = 64 };
struct hak_failures {
    _Atomic(uint64_t) count;                      // since the start
    struct hak_failure latest[HAK_FAILURES_KEPT]; // the n-th at n % HAK_FAILURES_KEPT
};
HAK_INTERNAL extern struct hak_failures hak_failures;

// Count a request if the options let it fail. True when it has to fail.
HAK_INTERNAL HAK_COLD bool hak_failure_is_injected(struct hak_request request);
