// guard_report.c -- the report of a misused sampled or tagged block, and the fault handler (see guard.h).
#include <signal.h>
#include <string.h>

#include "os/module.h"
#include "os/say.h"
#include "secure/guard.h"
#include "secure/states.h"

static void print_call(const char *what, const struct hak_guard_call *call)
{
    hak_say("%s by thread %u", what, (unsigned)call->thread_id);
    for (unsigned i = 0; i < call->frame_count; i++) {
        struct hak_module module;
        hak_module_of(call->frames[i], &module);
        hak_say("  %s+%p", module.path, (void *)module.offset);
    }
}

void hak_guard_report(const char *kind, const struct hak_guard_slot *slot, const char *p)
{
    const char *block = hak_load_relaxed(&slot->block);
    const bool is_before = p < block;
    const size_t offset = (size_t)(is_before ? block - p : p - block);
    hak_say("%s: %p, %z bytes %s the start of %p, a block of %z bytes",
            kind,
            p,
            offset,
            is_before ? "before" : "after",
            block,
            hak_load_relaxed(&slot->bytes));
    print_call("allocated", &slot->allocated);
    if (slot->freed.frame_count != 0) {
        print_call("freed", &slot->freed);
    }
}

// The processor has faulted on a pointer whose tag is not the memory's.
static void report_tag(const void *address)
{
    const char *p = hak_tag_off(address);
    const struct hak_run *slab = hak_run_of(p);
    if (slab == NULL || slab->state != HAK_RUN_SLAB || !hak_states_exist(slab)) {
        return;
    }
    const struct hak_class *info = &hak_classes[slab->size_class];
    const uint32_t index = hak_size_class_index(info, (size_t)(p - slab->base));
    const char *block = slab->base + (size_t)index * info->bytes;
    const bool is_out =
        index < info->blocks && hak_state_is(&hak_states_of(slab)[index], HAK_STATE_OUT);
    hak_say("wrong tag: %p, %z bytes after the start of %p, a block of %z bytes that is %s",
            p,
            (size_t)(p - block),
            block,
            (size_t)info->bytes,
            is_out ? "in use" : "free");
}

static struct sigaction before;

// Pass the signal on to the program's handler, or to the default action if there is none.
static void pass_on(int signal, siginfo_t *info, void *context)
{
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signal);
    } else {
        sigaction(signal, &before, NULL);
        if (info->si_code <= 0) {
            raise(signal); // it was sent by a call: no instruction will fault again
        }
    }
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    const char *p = info->si_addr;
    if (info->si_code > 0 && hak_guard_owns(p)) {
        const struct hak_guard_slot *slot = hak_guard_nearest(p);
        const bool is_live = hak_load_relaxed(&slot->state) == HAK_GUARD_LIVE;
        const char *block = hak_load_relaxed(&slot->block);
        const bool is_inside = p >= block && p < block + hak_load_relaxed(&slot->bytes);
        const char *kind = p < block ? "underflow" : "overflow";
        hak_guard_report(!is_live && is_inside ? "use after free" : kind, slot, p);
    }
    if (hak_harden_has_tags() && info->si_code == HAK_TAG_FAULT) {
        report_tag(p);
    }
    pass_on(signal, info, context);
}

void hak_guard_start(void)
{
    if (hak_load_relaxed(&hak_options.guard_sample) == 0 && !hak_harden_has_tags()) {
        return;
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before);
}
