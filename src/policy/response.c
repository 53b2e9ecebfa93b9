// response.c -- see response.h.
#include "policy/response.h"

#include "base/atomic.h"
#include "base/format.h"
#include "base/options.h"
#include "cache/hooks.h"
#include "front/options.h"
#include "limits/manager.h"
#include "limits/pressure.h"
#include "os/os.h"
#include "report/figures.h"
#include "slab/arena.h"

enum { OFF = 0, ALWAYS = 2 }; // option pressure

enum { SHORT_PARTS = 20, FULL_PARTS = 5 }; // of the time: some tasks wait, all tasks wait
#define LEDGER_PAUSE_NS UINT64_C(10000000000)

bool hak_response_next(struct hak_response *response, bool is_short)
{
    if (!is_short) {
        if (++response->calm_ticks >= HAK_RESPONSE_CALM_TICKS &&
            response->urgency != HAK_URGENCY_NONE) {
            response->urgency--;
            response->calm_ticks = 0;
            response->short_ticks = 0;
        }
        return false;
    }
    response->calm_ticks = 0;
    if (response->urgency != HAK_URGENCY_IDLE) {
        response->urgency++;
        return false;
    }
    return response->short_ticks++ % HAK_RESPONSE_REPEAT_TICKS == 0;
}

// The state of the system's memory at a moment.
struct look {
    uint64_t ns;
    struct hak_stalls stalls;
    size_t used_bytes;
    bool is_near;
};

static struct look look_now(void)
{
    hak_lock_take(&hak_arena.lock);
    struct look look = {.is_near = hak_pressure_is_near(0), .stalls = hak_pressure_stalls()};
    look.used_bytes = hak_pressure.used_bytes;
    hak_lock_drop(&hak_arena.lock);
    look.ns = hak_os_about_now_ns();
    return look;
}

// Static, as there may be no memory and little stack when it is needed.
static struct {
    _Atomic(int) writer; // the process of the thread that writes; 0: none
    uint64_t written_ns; // 0: never
    struct hak_figures figures;
    char heap[HAK_FIGURES_BYTES];
    char text[HAK_FIGURES_BYTES + 256];
} ledger;

static void ledger_print(const char *why, const struct look *look)
{
    const char *file = hak_option_file(&hak_options.pressure_ledger);
    hak_figures_read(&ledger.figures, 10);
    const size_t heap = hak_figures_json(&ledger.figures, ledger.heap, sizeof ledger.heap);
    ledger.heap[heap < sizeof ledger.heap ? heap - 1 : 0] = '\0'; // without the end of the line
    const size_t length =
        hak_format(ledger.text,
                   sizeof ledger.text,
                   "{\"short_of_memory\":\"%s\",\"date_ns\":%z,\"group_limit\":%z,"
                   "\"group_used\":%z,\"stalled_us\":%z,\"heap\":%s}\n",
                   why,
                   (size_t)hak_os_date_ns(),
                   hak_pressure.limit_bytes,
                   look->used_bytes,
                   (size_t)look->stalls.some_us,
                   ledger.heap);
    if (*file == '\0') {
        hak_os_print(ledger.text, length);
    } else {
        hak_os_append_or_say(file, ledger.text, length);
    }
}

// A writer of another process was the parent's when this one was forked; it does not exist here.
static bool ledger_begin(void)
{
    const int self = hak_os_process_id();
    int writer = hak_load_relaxed(&ledger.writer);
    return writer != self &&
           hak_cas_acquire(&ledger.writer, &writer, self); // pairs with: ledger_write
}

static void ledger_write(const char *why, const struct look *look)
{
    if (hak_load_relaxed(&hak_options.pressure_ledger) == 0 || !ledger_begin()) {
        return;
    }
    if (ledger.written_ns == 0 || look->ns - ledger.written_ns >= LEDGER_PAUSE_NS) {
        ledger.written_ns = look->ns;
        ledger_print(why, look);
    }
    hak_store_release(&ledger.writer, 0); // pairs with: ledger_begin
}

static struct look before; // at the last tick
static struct hak_response response;

static void tick(void)
{
    const struct look now = look_now();
    const uint64_t passed_us = (now.ns - before.ns) / 1000;
    const uint64_t some_us = hak_os_gained(now.stalls.some_us, before.stalls.some_us);
    const uint64_t full_us = hak_os_gained(now.stalls.full_us, before.stalls.full_us);
    const bool is_stalled = hak_manager_decides()
                                ? hak_manager_says_short(now.ns)
                                : before.ns != 0 && some_us * SHORT_PARTS >= passed_us;
    before = now;
    if (now.is_near || (is_stalled && full_us * FULL_PARTS >= passed_us)) {
        ledger_write(now.is_near ? "group" : "stall", &now);
    }
    const bool is_all_due = hak_response_next(&response, now.is_near || is_stalled);
    hak_due_urge(response.urgency);
    if (is_all_due) {
        hak_sweep_everything();
    }
}

void hak_hook_sweeps_everything(void)
{
    if (hak_load_relaxed(&hak_pressure.is_refused)) {
        const struct look now = look_now();
        ledger_write("growth", &now);
    }
}

void hak_response_start(void)
{
    const uint64_t pressure = hak_load_relaxed(&hak_options.pressure);
    const bool has_ledger = hak_load_relaxed(&hak_options.pressure_ledger) != 0;
    if ((pressure == OFF && !has_ledger) || hak_load_relaxed(&hak_options.deterministic) != 0) {
        return;
    }
    hak_lock_take(&hak_arena.lock); // others read what is set here
    hak_pressure_start();
    hak_lock_drop(&hak_arena.lock);
    hak_manager_start();
    hak_sweeper_call(tick, pressure == ALWAYS || has_ledger);
}
