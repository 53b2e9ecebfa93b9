// If memory is limited, the magazines' share of it is divided by the number of processors whose time the groups get.
#include "slab/defaults.h"

#include "../unit.h"
#include "base/options.h"

static const struct hak_fake_file files[] = {{"/proc/self/cgroup", "0::/\n"},
                                             {"/sys/fs/cgroup/memory.max", "536870912\n"},
                                             {"/sys/fs/cgroup/memory.current", "1048576\n"},
                                             {"/sys/fs/cgroup/cpu.max", "400000 100000\n"},
                                             {NULL, NULL}};

int main(void)
{
    hak_fake.files = files;
    hak_fake.memory_bytes = (size_t)16 << 30;
    hak_fake.processors = 8;
    hak_defaults_fit();
    UNIT_EQUAL(hak_options.magazine_bytes, HAK_MIB(8));
    return 0;
}
