// decisions.c -- see decisions.h.
#include "policy/decisions.h"

#include "os/os.h"

struct hak_decisions hak_decisions;

// A reader sees the number 0 while the decision is being written.
static void decision_write(struct hak_decision *place,
                           const struct hak_decision *decision,
                           uint64_t number)
{
    hak_store_relaxed(&place->number, 0);
    hak_fence_stores();
    *place = *decision; // its number is 0, too
    place->date_ns = hak_os_date_ns();
    hak_fence_stores();
    hak_store_relaxed(&place->number, number);
}

void hak_decisions_add(const struct hak_decision *decision)
{
    const uint64_t number = hak_load_relaxed(&hak_decisions.count) + 1;
    decision_write(&hak_decisions.latest[number % HAK_DECISIONS_KEPT], decision, number);
    hak_store_relaxed(&hak_decisions.count, number);
}

void hak_decisions_set_running(const struct hak_decision *decision)
{
    decision_write(&hak_decisions.running, decision, hak_load_relaxed(&hak_decisions.count) + 1);
}

void hak_decisions_end_running(void)
{
    hak_store_relaxed(&hak_decisions.running.number, 0);
}
