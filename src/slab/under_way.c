// under_way.c -- see under_way.h.
#include "slab/under_way.h"

#include "os/os.h"

// Find the entry with number `before` and write `number` and `thread` into it. If the table is full, nobody waits for that load.
static void under_way_set_locked(uint64_t before, uint64_t number, uintptr_t thread)
    HAK_REQUIRES(&hak_arena.lock)
{
    for (unsigned i = 0; i < HAK_UNDER_WAY; i++) {
        struct hak_under_way *place = &hak_arena.under_way[i];
        if (place->number == before) {
            *place = (struct hak_under_way){number, thread};
            return;
        }
    }
}

uint64_t hak_under_way_begin_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    hak_arena.load_number++;
    under_way_set_locked(0, hak_arena.load_number, hak_os_thread_mark());
    return hak_arena.load_number;
}

void hak_under_way_end_locked(uint64_t number) HAK_REQUIRES(&hak_arena.lock)
{
    under_way_set_locked(number, 0, 0);
    hak_store_release(&hak_arena.returns,
                      hak_load_relaxed(&hak_arena.returns) + 1); // pairs with: hak_arena_returns
}

void hak_under_way_tell(void)
{
    if (hak_load_relaxed(&hak_arena.waiters) != 0) {
        hak_os_wake(&hak_arena.returns);
    }
}

// The first load up to `number` that another thread is giving back; 0: none. This thread's own loads do not count: a
// signal handler may have interrupted one.
static uint64_t first_under_way_locked(uint64_t number) HAK_REQUIRES(&hak_arena.lock)
{
    uint64_t first = 0;
    for (unsigned i = 0; i < HAK_UNDER_WAY; i++) {
        const struct hak_under_way *place = &hak_arena.under_way[i];
        if (place->number - 1 < number && (first == 0 || place->number < first) &&
            place->thread != hak_os_thread_mark()) {
            first = place->number;
        }
    }
    return first;
}

bool hak_under_way_is_any(void)
{
    hak_lock_take(&hak_arena.lock);
    const bool is_any = first_under_way_locked(hak_arena.load_number) != 0;
    hak_lock_drop(&hak_arena.lock);
    return is_any;
}

// The thread that gives back holds no lock, and ends the load once it gets a processor. A load that takes over a
// minute belongs to a killed vfork child: nobody waits for it any longer.
enum { PURGE_WAIT_MS = 10, PURGE_WAITS_MAX = 6000 };

void hak_under_way_wait(void)
{
    unsigned waits = 0;
    uint64_t first;
    hak_lock_take(&hak_arena.lock);
    const uint64_t number = hak_arena.load_number;
    while ((first = first_under_way_locked(number)) != 0) {
        if (++waits > PURGE_WAITS_MAX) {
            under_way_set_locked(first, 0, 0);
            continue;
        }
        const uint32_t seen = hak_load_relaxed(&hak_arena.returns);
        hak_lock_drop(&hak_arena.lock);
        hak_add_relaxed(&hak_arena.waiters, 1);
        hak_os_wait(&hak_arena.returns, seen, PURGE_WAIT_MS);
        hak_sub_relaxed(&hak_arena.waiters, 1);
        hak_lock_take(&hak_arena.lock);
    }
    hak_lock_drop(&hak_arena.lock);
}
