// Defaults that the control group's limits make: read when the heap grows beyond its first
// superslab, once, and never in place of what somebody chose.
#include "slab/defaults.h"
#include "slab/runs.h"

#include "../unit.h"
#include "base/options.h"
#include "meta/map.h"
#include "slab/arena.h"

static const struct hak_fake_file files[] = {{"/proc/self/cgroup", "0::/\n"},
                                             {"/sys/fs/cgroup/memory.max", "67108864\n"},
                                             {"/sys/fs/cgroup/memory.current", "1048576\n"},
                                             {"/sys/fs/cgroup/cpu.max", "200000 100000\n"},
                                             {NULL, NULL}};

int main(void)
{
    hak_fake.files = files;
    hak_fake.memory_bytes = (size_t)16 << 30;
    hak_fake.processors = 8;
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_option_choose(
        &hak_options.magazine_bytes, HAK_MIB(16), HAK_FROM_PROGRAM); // what is the default anyway
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
    return 0;
}
