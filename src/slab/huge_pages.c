// huge_pages.c -- see huge_pages.h.
#include "slab/huge_pages.h"

#include "base/options.h"
#include "meta/map.h"
#include "os/os.h"
#include "slab/arena_locked.h"

enum { HUGE_AUTO, HUGE_NEVER, HUGE_ALWAYS }; // option thp

// So many times as long as a dear one has taken, none is asked for: they cost a hundredth of the time at most.
enum { REST_TIMES = 100 };

static _Atomic(uint64_t) huge_rest_until; // by hak_os_now_ns

// Has one lately taken the kernel longer than the small ones?
static bool are_dear(void)
{
    const uint64_t until = hak_load_relaxed(&huge_rest_until);
    return until != 0 && hak_os_now_ns() < until;
}

// Asking takes three system calls, and each superslab that comes into use would ask. So what the kernel has said is good for a
// tick of the clock, as long as the heap is within a sixteenth as large.
static bool are_pages_dense(size_t used)
{
    static _Atomic(size_t) asked_used, answer;
    static _Atomic(uint32_t) asked_at;
    const uint32_t clock = hak_load_relaxed(&hak_arena.clock);
    const size_t before = hak_load_relaxed(&asked_used);
    const size_t apart = used > before ? used - before : before - used;
    if (apart > before / 16 || clock != hak_load_relaxed(&asked_at)) {
        hak_store_relaxed(&answer, hak_os_resident_bytes());
        hak_store_relaxed(&asked_used, used);
        hak_store_relaxed(&asked_at, clock);
    }
    return hak_load_relaxed(&answer) >= used / 4 * 3;
}

bool hak_huge_wanted(bool for_one_block)
{
    const uint64_t policy = hak_load_relaxed(&hak_options.thp);
    const bool are_there = hak_load_relaxed(&hak_arena.huge_pages) != HAK_HUGE_NEVER;
    if (!are_there || policy != HUGE_AUTO) {
        return are_there && policy == HUGE_ALWAYS;
    }
    const size_t alone = hak_load_relaxed(&hak_arena.lone_bytes);
    const size_t mapped = hak_load_relaxed(&hak_arena.super_bytes) + alone;
    const size_t used = hak_arena_used_bytes() + alone;
    // New slabs may leave unused all that the heap grows by, a block only what is behind its end.
    const size_t start = hak_load_relaxed(&hak_options.huge_start_bytes) / (for_one_block ? 4 : 1);
    // Dense in units, unless all of it is for one block; then dense in pages.
    return used >= start && (for_one_block || used >= mapped / 4 * 3) && !are_dear() &&
           (hak_load_relaxed(&hak_options.deterministic) != 0 || are_pages_dense(used));
}

void hak_huge_decide_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock)
{
    if (super->free_units != ~UINT64_C(0) || super->dirty_units != 0 || super->is_huge_new) {
        return;
    }
    if (super->is_huge && are_dear()) {
        hak_huge_end_locked(shard, super);
    } else if (!super->is_huge && hak_huge_wanted(false)) {
        hak_os_want_huge(super->base, HAK_SUPER_BYTES, true);
        super->is_huge = true;
    }
    super->is_huge_new = super->is_huge;
}

void hak_huge_end_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock)
{
    if (super->is_huge) {
        hak_os_want_huge(super->base, HAK_SUPER_BYTES, false);
        super->is_huge = false;
        hak_arena_note_units_locked(shard,
                                    super); // its dirty units are no longer parts of huge pages
    }
}

void hak_huge_note_holes_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock)
{
    if (hak_load_relaxed(&hak_options.thp) == HUGE_AUTO) {
        hak_huge_end_locked(shard, super);
    }
}

void hak_huge_note_holes(const struct hak_slab *slab)
{
    struct hak_super *super = hak_map_super(slab->base);
    struct hak_shard *shard = hak_super_shard(super);
    hak_lock_take(&shard->lock);
    hak_huge_note_holes_locked(shard, super);
    hak_lock_drop(&shard->lock);
}

bool hak_huge_is_dear(char *page)
{
    const uint64_t dear_ns = hak_load_relaxed(&hak_options.huge_dear_us) * 1000;
    if (dear_ns == 0 || hak_load_relaxed(&hak_options.thp) != HUGE_AUTO ||
        hak_load_relaxed(&hak_options.deterministic) != 0) {
        return false; // the user, or no clock, decides
    }
    const uint64_t begin = hak_os_thread_ns(); // a thread that waits for a processor tells nothing
    *(volatile char *)page = 0;                // a read would get the kernel's page of zeros
    const uint64_t took = hak_os_thread_ns() - begin;
    if (took > dear_ns) {
        hak_store_relaxed(&huge_rest_until, hak_os_now_ns() + REST_TIMES * took);
    }
    return took > dear_ns;
}
