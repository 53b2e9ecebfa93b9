// guard_report.c -- what is said of a mistake with a sampled block, and the handler for faults (see guard.h).
#include <signal.h>
#include <string.h>

#include "base/format.h"
#include "cache/guard.h"
#include "os/module.h"
#include "os/os.h"

enum { LINE_BYTES = 512 };

static void print_call(const char *what, const struct hak_guard_call *call)
{
    char line[LINE_BYTES];
    size_t length =
        hak_format(line, sizeof line, "hakmem: %s by thread %u\n", what, (unsigned)call->thread_id);
    hak_os_print(line, length);
    for (unsigned i = 0; i < call->frame_count; i++) {
        struct hak_module module;
        hak_module_of(call->frames[i], &module);
        length =
            hak_format(line, sizeof line, "hakmem:   %s+%p\n", module.path, (void *)module.offset);
        hak_os_print(line, length);
    }
}

void hak_guard_report(const char *kind, const struct hak_guard_slot *slot, const char *p)
{
    char line[LINE_BYTES];
    const bool is_before = p < slot->block;
    const size_t offset = (size_t)(is_before ? slot->block - p : p - slot->block);
    const size_t length =
        hak_format(line,
                   sizeof line,
                   "hakmem: %s: %p, %z bytes %s the start of %p, a block of %z bytes\n",
                   kind,
                   p,
                   offset,
                   is_before ? "before" : "behind",
                   slot->block,
                   slot->bytes);
    hak_os_print(line, length);
    print_call("allocated", &slot->allocated);
    if (slot->freed.frame_count != 0) {
        print_call("freed", &slot->freed);
    }
}

static struct sigaction before;

// The signal is the program's: its handler's, or what becomes of it without one.
static void pass_on(int signal, siginfo_t *info, void *context)
{
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signal);
    } else {
        sigaction(signal, &before, NULL);
        if (info->si_code <= 0) {
            raise(signal); // somebody has sent it: there is no instruction that faults again
        }
    }
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    const char *p = info->si_addr;
    if (info->si_code > 0 && hak_guard_owns(p)) {
        const struct hak_guard_slot *slot = hak_guard_nearest(p);
        const bool is_live = hak_load_relaxed(&slot->state) == HAK_GUARD_LIVE;
        const bool is_inside = p >= slot->block && p < slot->block + slot->bytes;
        const char *kind = p < slot->block ? "underflow" : "overflow";
        hak_guard_report(!is_live && is_inside ? "use after free" : kind, slot, p);
    }
    pass_on(signal, info, context);
}

void hak_guard_start(void)
{
    if (hak_load_relaxed(&hak_options.guard_sample) == 0) {
        return;
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before);
}
