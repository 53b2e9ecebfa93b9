// Defaults from the control group's limits: read once, when the heap grows beyond its first superslab,
// and never in place of a chosen value, not even one chosen at the same moment.
#include "slab/defaults.h"
#include "slab/runs.h"

#include <pthread.h>
#include <sched.h>

#include "../unit.h"
#include "base/options.h"
#include "meta/map.h"
#include "slab/arena.h"

static const struct hak_fake_file files[] = {{"/proc/self/cgroup", "0::/\n"},
                                             {"/sys/fs/cgroup/memory.max", "67108864\n"},
                                             {"/sys/fs/cgroup/memory.current", "1048576\n"},
                                             {"/sys/fs/cgroup/cpu.max", "200000 100000\n"},
                                             {NULL, NULL}};

// The program sets an option to its present value while a learner is in the middle of setting another value: this case is hardest
// to tell from an option that was never set. So the program waits until the learner has finished.
enum { CHOSEN = 4242, LEARNT = 7 };
static _Atomic(bool) learner_is_at_it;
static _Atomic(bool) program_waits;
static _Atomic(bool) program_has_set;

static void note_wait(void)
{
    hak_store_relaxed(&program_waits, true);
}

static void *learn(void *unused)
{
    hak_lock_take(&hak_arena.lock);
    hak_store_release(&learner_is_at_it, true);
    while (!hak_load_relaxed(&program_waits) && !hak_load_relaxed(&program_has_set)) {
        sched_yield();
    }
    hak_option_choose(&hak_options.decay_ms, LEARNT, HAK_FROM_LEARNER);
    hak_lock_drop(&hak_arena.lock);
    return unused;
}

static void the_program_overrules_a_learner(void)
{
    pthread_t learner;
    hak_option_choose(&hak_options.decay_ms, CHOSEN, HAK_FROM_MACHINE);
    UNIT_EQUAL(pthread_create(&learner, NULL, learn, NULL), 0);
    while (!hak_load_acquire(&learner_is_at_it)) {
        sched_yield();
    }
    hak_fake.on_wait = note_wait;
    hak_defaults_choose(&hak_options.decay_ms, CHOSEN, HAK_FROM_PROGRAM);
    hak_store_relaxed(&program_has_set, true);
    pthread_join(learner, NULL);
    UNIT_CHECK(program_waits);
    UNIT_EQUAL(hak_options.decay_ms, CHOSEN);
    UNIT_EQUAL(hak_option_source_of(&hak_options.decay_ms), HAK_FROM_PROGRAM);
}

int main(void)
{
    hak_fake.files = files;
    hak_fake.memory_bytes = (size_t)16 << 30;
    hak_fake.processors = 8;
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_option_choose(
        &hak_options.magazine_bytes, HAK_MIB(16), HAK_FROM_PROGRAM); // the default itself
    struct hak_run *first = hak_runs_take(0, HAK_SUPER_BYTES, 1, HAK_RUN_LARGE, false);
    UNIT_EQUAL(hak_fake.file_reads, 0);
    UNIT_EQUAL(hak_options.dirty_bytes, HAK_MIB(2));

    struct hak_run *second = hak_runs_take(0, HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false);
    const size_t reads = hak_fake.file_reads;
    UNIT_CHECK(reads > 0);
    UNIT_EQUAL(hak_options.dirty_bytes, HAK_MIB(2));
    UNIT_EQUAL(hak_arena.peak_most, 0);
    UNIT_EQUAL(hak_options.magazine_bytes, HAK_MIB(16));
    UNIT_EQUAL(hak_options.huge_start_bytes, HAK_GIB(1024));

    hak_option_choose(&hak_options.dirty_bytes, HAK_MIB(9), HAK_FROM_PROGRAM);
    struct hak_run *third = hak_runs_take(0, HAK_SUPER_BYTES, 1, HAK_RUN_LARGE, false);
    UNIT_EQUAL(hak_fake.file_reads, reads);
    UNIT_EQUAL(hak_options.dirty_bytes, HAK_MIB(9));
    hak_runs_give(first);
    hak_runs_give(second);
    hak_runs_give(third);
    the_program_overrules_a_learner();
    return 0;
}
