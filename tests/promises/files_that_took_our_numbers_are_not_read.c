// env: HAKMEM_PRESSURE=always HAKMEM_PRESSURE_LEDGER=on
// sleeps
// native only
// with features
// With option pressure hakmem holds files open. If a program closes all files, as a daemon does, and opens its own files,
// which get these numbers, hakmem does not read them. From then on it never finds memory short.
#include "../support/promise.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { FILES_FIRST = 256, FILES_END = 272, TICKS_MS = 600 };

// Replace each of hakmem's open files by `own`. Returns how many there were.
static unsigned take_numbers(int own)
{
    struct stat status;
    unsigned count = 0;
    for (int file = FILES_FIRST; file < FILES_END; file++) {
        if (fstat(file, &status) == 0) {
            HT_CHECK(dup2(own, file) == file, "%d cannot be taken", file);
            count++;
        }
    }
    return count;
}

int main(void)
{
    static const char text[] = "some avg10=0.00 total=18446744073709551615\n";
    char path[] = "/tmp/hakmem-own-XXXXXX";
    struct inotify_event event;
    ht_start();
    int own = mkstemp(path);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    HT_CHECK(own >= 0 && write(own, text, sizeof text) == sizeof text, "no file");
    HT_CHECK(watch >= 0 && inotify_add_watch(watch, path, IN_ACCESS) >= 0, "no watch");
    unlink(path);
    usleep(TICKS_MS * 1000); // so that they are read
    const unsigned taken = take_numbers(own);
    if (taken == 0) {
        HT_SKIP("no file of the kernel's to hold open");
    }
    int said = memfd_create("said", MFD_CLOEXEC);
    int error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    HT_CHECK(said >= 0 && error >= 0 && dup2(said, STDERR_FILENO) >= 0, "no stderr");
    usleep(TICKS_MS * 1000);
    dup2(error, STDERR_FILENO);
    HT_CHECK(lseek(said, 0, SEEK_END) == 0, "memory is said to be short");
    HT_CHECK(read(watch, &event, sizeof event) < 0, "one of %u files was read", taken);
    char byte;
    HT_CHECK(pread(own, &byte, 1, 0) == 1 && read(watch, &event, sizeof event) > 0,
             "the test's own read is not seen");
    return 0;
}
