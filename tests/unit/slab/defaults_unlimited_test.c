// If nothing limits memory, all processors together may keep full magazines, and nothing reads how many of them the
// groups get the time of: that would be three groups and the mount, two files each, and the file that names them.
#include "slab/defaults.h"

#include "../unit.h"
#include "base/options.h"

#define GROUP "/sys/fs/cgroup/a/b/c"

static const struct hak_fake_file files[] = {{"/proc/self/cgroup", "0::/a/b/c\n"},
                                             {GROUP "/memory.max", "max\n"},
                                             {GROUP "/memory.high", "max\n"},
                                             {GROUP "/cpu.max", "100000 100000\n"},
                                             {NULL, NULL}};

int main(void)
{
    hak_fake.files = files;
    hak_fake.memory_bytes = (size_t)16 << 30;
    hak_fake.processors = 8;
    hak_defaults_fit();
    UNIT_EQUAL(hak_fake.file_reads, 1 + 4 * 2);
    UNIT_EQUAL(hak_options.magazine_bytes, HAK_MIB(16));
    return 0;
}
