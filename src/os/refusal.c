// refusal.c -- see refusal.h.
#include "os/refusal.h"

#include <errno.h>

#include "base/atomic.h"
#include "os/os.h"
#include "os/proc.h"

// The latest refusals of all threads. A thread looks for its own at once: as many others have to come
// in between before it is lost.
enum { NOTED = 64 };

static struct {
    _Atomic(uint64_t) number; // counted from 1
    _Atomic(size_t) bytes;
    _Atomic(uintptr_t) thread;
    _Atomic(int) error;
} refusals[NOTED];
static _Atomic(uint64_t) refusal_count;

void hak_refusal_note(int error, size_t bytes)
{
    const uint64_t number = hak_add_relaxed(&refusal_count, 1) + 1;
    hak_store_relaxed(&refusals[number % NOTED].bytes, bytes);
    hak_store_relaxed(&refusals[number % NOTED].error, error);
    hak_store_relaxed(&refusals[number % NOTED].thread, hak_os_thread_mark());
    hak_store_relaxed(&refusals[number % NOTED].number, number);
}

uint64_t hak_refusal_mark(void)
{
    return hak_load_relaxed(&refusal_count);
}

struct hak_refusal hak_refusal_since(uint64_t mark)
{
    const uintptr_t thread = hak_os_thread_mark();
    const uint64_t newest = hak_load_relaxed(&refusal_count);
    for (uint64_t number = newest; number > mark && newest - number < NOTED; number--) {
        if (hak_load_relaxed(&refusals[number % NOTED].number) == number &&
            hak_load_relaxed(&refusals[number % NOTED].thread) == thread) {
            return (struct hak_refusal){hak_load_relaxed(&refusals[number % NOTED].error),
                                        hak_load_relaxed(&refusals[number % NOTED].bytes)};
        }
    }
    return (struct hak_refusal){0, 0};
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
