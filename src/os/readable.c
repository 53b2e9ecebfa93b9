// readable.c -- whether memory can be read, as os.h has it, on Linux.
#include <errno.h>
#include <sys/syscall.h>

#include "os/kernel.h"
#include "os/os.h"
#include "os/syscall.h"

// A requeue of no threads reads the word first: 0 if it is zero, -EAGAIN if not, -EFAULT if it cannot be read (futex(2),
// FUTEX_CMP_REQUEUE).
static long look_at(const void *word)
{
    const long how = HAK_FUTEX_CMP_REQUEUE | HAK_FUTEX_PRIVATE;
    return hak_syscall(SYS_futex, (long)word, how, 0, 0, (long)word, 0);
}

bool hak_os_has_content(const void *word)
{
    return look_at(word) == -EAGAIN;
}

bool hak_os_can_read(const void *address)
{
    const long first = look_at(address);
    const long second = look_at((const char *)address + 4);
    return (first == 0 || first == -EAGAIN) && (second == 0 || second == -EAGAIN);
}
