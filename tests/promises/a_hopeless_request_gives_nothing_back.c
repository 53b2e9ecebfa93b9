// native only
// not secure: free blocks wait in quarantine and in stocks
// A request for more than memory and swap space together is refused whatever is given back, where the kernel guesses what it can
// grant. So nothing is given back for it: a program that asks for too much again and again keeps what it is about to use again.
#include "../support/memory.h"

#include <sys/sysinfo.h>

enum { BLOCKS = 7168, BYTES = 1024 };

static bool kernel_guesses(void)
{
    char policy = ' ';
    const int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    const bool is_read = fd >= 0 && read(fd, &policy, 1) == 1;
    close(fd);
    return is_read && policy == '0';
}

int main(void)
{
    if (!kernel_guesses()) {
        HT_SKIP("vm.overcommit_memory is not 0");
    }
    struct sysinfo machine;
    HT_CHECK(sysinfo(&machine) == 0, "sysinfo failed");
    const size_t all = (size_t)(machine.totalram + machine.totalswap) * machine.mem_unit;
    static void *blocks[BLOCKS];
    ht_fill(blocks, BLOCKS, BYTES);
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    const long kept_kib = ht_rss_kib();
    for (unsigned i = 0; i < 10; i++) {
        errno = 0;
        HT_CHECK(malloc(all + all / 8) == NULL && errno == ENOMEM, "a hopeless request is granted");
        HT_CHECK(ht_rss_kib() > kept_kib - 1024, "memory was given back for a hopeless request");
    }
    return 0;
}
