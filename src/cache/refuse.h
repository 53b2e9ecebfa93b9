// refuse.h -- the answer to a request that cannot be served.
//
// Threads   any, without locks.
// Fails     never.
#pragma once

#include "base/compiler.h"
#include "cache/request.h"

// Sets errno to ENOMEM and returns NULL.
HAK_INTERNAL HAK_COLD void *hak_refuse(enum hak_refuse_reason reason, struct hak_request request);
// The same for want of memory, which was refused since `mark` (hak_refusal_mark).
HAK_INTERNAL HAK_COLD void *hak_refuse_memory(struct hak_request request, uint64_t mark);
