// file.c -- files, as os.h has them, on Linux.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/format.h"
#include "os/os.h"
#include "os/syscall.h"

// O_NONBLOCK: open must not wait for the other end of a named pipe, which may never be opened.
static long open_file(const char *path, long flags)
{
    return hak_syscall(
        SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC | O_NONBLOCK, 0666, 0, 0);
}

// From here on, reads and writes may wait: the other end of a pipe is open. `flags` are those of the open call.
static void let_wait(long file, long flags)
{
    HAK_UNHEEDED(hak_syscall(SYS_fcntl, file, F_SETFL, flags, 0, 0, 0)); // then EAGAIN ends it
}

// If a signal interrupts a read that waits, such as a pipe's, before the first byte, it is tried again. A pipe that has a writer
// and is empty so far is waited for.
static long read_some(long file, char *text, size_t bytes)
{
    long length;
    bool has_waited = false;
    do {
        length = hak_syscall(SYS_read, file, (long)text, (long)bytes, 0, 0, 0);
        if (length == -EAGAIN && !has_waited) {
            has_waited = true;
            let_wait(file, O_RDONLY);
            length = -EINTR;
        }
    } while (length == -EINTR);
    return length;
}

// Not by hak_os_thread_id, which calls the C library: files are read with locks held.
static bool is_first_thread(void)
{
    return hak_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0) == hak_os_process_id();
}

// In /proc/self are the files of the process's first thread. Once that has ended, they say that the process has no memory and, in
// version 1, no control group; those of the calling thread are right (Linux 3.17). For the first thread itself, which reads some
// when each program starts, the shorter path is the faster one.
static long open_to_read(const char *path)
{
    static const char self[] = "/proc/self/";
    char own[64];
    if (strncmp(path, self, sizeof self - 1) == 0 && !is_first_thread()) {
        hak_format(own, sizeof own, "/proc/thread-self/%s", path + sizeof self - 1);
        const long file = open_file(own, O_RDONLY);
        if (!hak_syscall_failed(file)) {
            return file;
        }
    }
    return open_file(path, O_RDONLY);
}

size_t hak_os_read_file(const char *path, char *text, size_t bytes)
{
    const long file = open_to_read(path);
    text[0] = '\0';
    if (hak_syscall_failed(file)) {
        return 0;
    }
    long length = read_some(file, text, bytes - 1);
    hak_syscall_close(file);
    length = hak_syscall_failed(length) ? 0 : length;
    text[length] = '\0';
    return (size_t)length;
}

size_t hak_os_folder(char *path, size_t bytes)
{
    // Its length with the final 0. A folder outside the process's root has no path: "(unreachable)/…".
    const long length = hak_syscall(SYS_getcwd, (long)path, (long)bytes, 0, 0, 0, 0);
    return hak_syscall_failed(length) || path[0] != '/' ? 0 : (size_t)length - 1;
}

size_t hak_os_count_lines(const char *path)
{
    char text[1024];
    size_t lines = 0;
    const long file = open_to_read(path);
    if (hak_syscall_failed(file)) {
        return 0;
    }
    for (;;) {
        const long length = read_some(file, text, sizeof text);
        if (hak_syscall_failed(length) || length == 0) {
            break;
        }
        for (long i = 0; i < length; i++) {
            lines += text[i] == '\n';
        }
    }
    hak_syscall_close(file);
    return lines;
}

const void *hak_os_map_file(const char *path, size_t *bytes)
{
    const long file = open_file(path, O_RDONLY);
    if (hak_syscall_failed(file)) {
        return NULL;
    }
    const long length = hak_syscall(SYS_lseek, file, 0, SEEK_END, 0, 0, 0);
    long got = -1;
    if (!hak_syscall_failed(length) && length > 0) {
        got = hak_syscall(SYS_mmap, 0, length, PROT_READ, MAP_PRIVATE, file, 0);
        HAK_ADDRESSES_CAME();
    }
    hak_syscall_close(file);
    *bytes = (size_t)length;
    return hak_syscall_failed(got) ? NULL : (const void *)got;
}

// The lowest number of a held file: programs count and close low numbers.
enum { HELD_LEAST = 256 };

static bool status_of(long file, struct stat *status)
{
    return !hak_syscall_failed(hak_syscall(SYS_fstat, file, (long)status, 0, 0, 0, 0));
}

struct hak_held_file hak_os_hold(long file)
{
    struct hak_held_file held = {.file = -1};
    struct stat status;
    if (hak_syscall_failed(file)) {
        return held;
    }
    const long number = hak_syscall(SYS_fcntl, file, F_DUPFD_CLOEXEC, HELD_LEAST, 0, 0, 0);
    const bool is_known = status_of(file, &status);
    hak_syscall_close(file);
    if (!hak_syscall_failed(number) && !is_known) {
        hak_syscall_close(number);
    } else if (!hak_syscall_failed(number)) {
        held = (struct hak_held_file){
            (int)number, S_ISREG(status.st_mode), status.st_dev, status.st_ino};
    }
    return held;
}

struct hak_held_file hak_os_hold_file(const char *path)
{
    return hak_os_hold(open_file(path, O_RDONLY));
}

bool hak_os_is_held(const struct hak_held_file *held)
{
    struct stat status;
    return held->file >= 0 && status_of(held->file, &status) && status.st_dev == held->device &&
           status.st_ino == held->inode;
}

size_t hak_os_read_held(const struct hak_held_file *held, char *text, size_t bytes)
{
    long length = 0;
    if (hak_os_is_held(held)) {
        length = hak_syscall(SYS_pread64, held->file, (long)text, (long)bytes - 1, 0, 0, 0);
    }
    const size_t got = hak_syscall_failed(length) ? 0 : (size_t)length;
    text[got] = '\0';
    return got;
}

// What a write may send to the thread: SIGPIPE if nobody reads the pipe any more, SIGXFSZ at the limit on a file's length. Their
// default is to end the program, for a line that it did not write.
static const uint64_t write_signals = UINT64_C(1) << (SIGPIPE - 1) | UINT64_C(1) << (SIGXFSZ - 1);

// 0, or an error.
static long write_rest(long file, const char *text, size_t length)
{
    while (length > 0) {
        long written = hak_syscall(SYS_write, file, (long)text, (long)length, 0, 0, 0);
        if (written == -EINTR) {
            continue;
        }
        if (hak_syscall_failed(written) || written == 0) {
            return written == 0 ? -EIO : written;
        }
        text += written;
        length -= (size_t)written;
    }
    return 0;
}

// Which of these signals wait before the write: they are the program's. Only what it has blocked itself can wait; the call is
// left out otherwise, as a sandbox may end the process for it.
static uint64_t waiting_before(uint64_t blocked)
{
    uint64_t pending = 0;
    if ((blocked & write_signals) == 0) {
        return 0;
    }
    const long got = hak_syscall(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0);
    return hak_syscall_failed(got) ? write_signals : pending;
}

// The write's signal is taken back. No other error brings a signal: the call is left out then, as a sandbox may end the process
// for it.
static bool write_all(long file, const char *text, size_t length)
{
    const struct timespec at_once = {0, 0};
    uint64_t before = 0;
    const long got = hak_syscall(
        SYS_rt_sigprocmask, SIG_BLOCK, (long)&write_signals, (long)&before, sizeof before, 0, 0);
    if (hak_syscall_failed(got)) {
        return write_rest(file, text, length) == 0;
    }
    const uint64_t ours = write_signals & ~waiting_before(before);
    const long error = write_rest(file, text, length);
    if (error == -EPIPE || error == -EFBIG) {
        // EAGAIN: the program ignores the signal
        HAK_UNHEEDED(
            hak_syscall(SYS_rt_sigtimedwait, (long)&ours, 0, (long)&at_once, sizeof ours, 0, 0));
    }
    HAK_UNHEEDED(
        hak_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0));
    return error == 0;
}

void hak_os_print(const char *text, size_t length)
{
    HAK_UNHEEDED(write_all(STDERR_FILENO, text, length)); // there is nobody to tell
}

bool hak_os_append(const char *path, const char *text, size_t length)
{
    const long file = open_file(path, O_WRONLY | O_CREAT | O_APPEND);
    if (hak_syscall_failed(file)) {
        return false; // also for a pipe that nobody reads
    }
    let_wait(file, O_WRONLY | O_APPEND);
    const bool is_done = write_all(file, text, length);
    hak_syscall_close(file);
    return is_done;
}
