// refusal.c -- see refusal.h.
#include "os/refusal.h"

#include "os/os.h"

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

bool hak_refusal_is_final(size_t bytes)
{
    return bytes >> HAK_ADDRESS_LOG2 != 0 ||
           (bytes > hak_os_memory_and_swap_bytes() && hak_os_grants_uncommitted(bytes));
}
