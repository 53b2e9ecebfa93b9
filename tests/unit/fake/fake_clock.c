// fake_clock.c -- the clocks and what takes time, the processors, and the ids of process and thread, as a test has set them (see
// fake.h).
#include "base/atomic.h"
#include "fake.h"
#include "os/os.h"

unsigned hak_os_processors(void)
{
    return hak_fake.processors;
}

void hak_os_usage(uint64_t *processor_ns, uint64_t *faults)
{
    *processor_ns = hak_fake.processor_ns;
    *faults = 0;
}

bool hak_os_thread_usage(int thread, uint64_t *processor_ns, uint64_t *faults)
{
    (void)thread;
    hak_os_usage(processor_ns, faults);
    return true;
}

uint64_t hak_os_now_ns(void)
{
    return hak_load_relaxed(&hak_fake.now_ns);
}

uint64_t hak_os_date_ns(void)
{
    return hak_load_relaxed(&hak_fake.now_ns);
}

int hak_os_process_id(void)
{
    return hak_fake.process_id;
}

bool hak_os_start(void)
{
    return true;
}

uint64_t hak_os_processor_ns(int thread)
{
    (void)thread;
    return hak_load_relaxed(&hak_fake.now_ns);
}

uint64_t hak_os_about_now_ns(void)
{
    return hak_add_relaxed(&hak_fake.now_ns, hak_fake.touch_ns);
}

uintptr_t hak_os_thread_mark(void)
{
    return (uintptr_t)hak_fake.process_id;
}

bool hak_os_is_alone(void)
{
    return hak_fake.is_alone;
}

int hak_os_thread_id(void)
{
    return hak_fake.process_id;
}

bool hak_os_collapse(void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
    hak_add_relaxed(&hak_fake.collapses, 1);
    hak_add_relaxed(&hak_fake.now_ns, hak_fake.collapse_ns);
    if (hak_fake.on_collapse != NULL) {
        hak_fake.on_collapse();
    }
    return !hak_fake.refuse_collapse;
}
