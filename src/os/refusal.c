// refusal.c -- see refusal.h.
#include "os/refusal.h"

#include "base/atomic.h"
#include "os/os.h"
#include "os/proc.h"

// Refusals of the calling thread: how many there were, and the latest.
static HAK_TLS uint64_t refusal_count;
static HAK_TLS struct hak_refusal latest;

void hak_refusal_note(int error, size_t bytes)
{
    latest = (struct hak_refusal){error, bytes};
    refusal_count++;
}

uint64_t hak_refusal_mark(void)
{
    return refusal_count;
}

struct hak_refusal hak_refusal_since(uint64_t mark)
{
    return refusal_count != mark ? latest : (struct hak_refusal){0, 0};
}

static _Atomic(bool) is_guessing;

// Documentation/mm/overcommit-accounting.rst: 0 guesses, 1 allows all, 2 counts.
void hak_refusal_start(void)
{
    hak_store_relaxed(&is_guessing, hak_proc_number("/proc/sys/vm/overcommit_memory", "", 1) == 0);
}

bool hak_refusal_is_final(size_t bytes)
{
    return bytes >> HAK_ADDRESS_LOG2 != 0 ||
           (hak_load_relaxed(&is_guessing) && bytes > hak_os_memory_and_swap_bytes());
}
