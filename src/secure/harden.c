// harden.c -- see harden.h.
#include "secure/harden.h"

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/options.h"
#include "os/os.h"
#include "os/say.h"
#include "secure/inset.h"
#include "slab/arena.h"
#include "slab/defaults.h"

struct hak_harden hak_harden;

// A quarantine may hold this part more than quarantine_bytes, so that several blocks leave it together.
enum { QUARANTINE_PART = 16 };

// Give tags to the superslabs that were mapped before the options were known.
static bool tag_all_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    for (struct hak_list *link = hak_arena.all.next; link != NULL && link != &hak_arena.all;
         link = link->next) {
        const struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        if (!super->is_mapping && !hak_tags_map(super->base, super->mapped_bytes)) {
            return false;
        }
    }
    return true;
}

// The processor draws the tags at random, so there are none with option deterministic.
static void tags_start(void)
{
    if (hak_load_relaxed(&hak_options.tagging) == 0) {
        return;
    }
    if (hak_load_relaxed(&hak_options.deterministic) == 0 && hak_tags_start()) {
        hak_lock_take(&hak_arena.lock);
        hak_harden.has_tags = tag_all_locked();
        hak_lock_drop(&hak_arena.lock);
    }
    if (!hak_harden.has_tags) {
        hak_defaults_choose(&hak_options.tagging, 0, HAK_FROM_MACHINE);
        if (hak_load_relaxed(&hak_options.tagging) != 0) { // the user asked for it, not a mode
            hak_say("HAKMEM_TAGGING has no effect: it needs a processor, a kernel and a build with "
                    "memory tags, and no HAKMEM_DETERMINISTIC");
            hak_store_relaxed(&hak_options.tagging, 0);
        }
    }
}

void hak_harden_start(void)
{
    tags_start();
    hak_inset_start();
    hak_harden.checks.zero = hak_load_relaxed(&hak_options.zero_on_free) != 0;
    hak_harden.checks.canaries = hak_load_relaxed(&hak_options.canaries) != 0;
    hak_harden.canary_bytes = hak_harden.checks.canaries ? HAK_CANARY_BYTES : 0;
    hak_harden.random_order = hak_load_relaxed(&hak_options.random_order) != 0;
    hak_harden.is_secure = hak_harden.checks.zero && hak_harden.checks.canaries &&
                           hak_harden.random_order && hak_cpu_is_wide();
    hak_harden.usual_bytes = hak_harden.is_secure ? HAK_HARDEN_CLEAR_MAX : 0;
    hak_harden.quarantine_bytes = hak_load_relaxed(&hak_options.quarantine_bytes);
    hak_harden.quarantine_limit =
        hak_harden.quarantine_bytes + hak_harden.quarantine_bytes / QUARANTINE_PART;
    const uint64_t guard_sample = hak_load_relaxed(&hak_options.guard_sample); // 0: none
    const bool may_fail =
        (hak_load_relaxed(&hak_options.fail_at) | hak_load_relaxed(&hak_options.fail_rate)) != 0;
    hak_harden.plain_requests = may_fail ? 0 : guard_sample - 1;
    hak_harden.sees_all = hak_harden.checks.zero || hak_harden.checks.canaries ||
                          hak_harden.quarantine_bytes != 0 || hak_harden_has_tags();
    hak_harden.is_on = hak_harden.sees_all || hak_harden.random_order;
    if (hak_harden.is_on) {
        const bool is_random = hak_load_relaxed(&hak_options.deterministic) == 0;
        hak_harden.secret = is_random ? hak_os_random() : 1;
        // Weyl's constant is as good as any when the numbers need not be random.
        hak_harden.multiplier = (is_random ? hak_os_random() : UINT64_C(0x9E3779B97F4A7C15)) | 1;
    }
}

uint64_t hak_harden_seed(void)
{
    static _Atomic(uint64_t) seeds;
    return hak_harden_mix(hak_add_relaxed(&seeds, 1));
}
