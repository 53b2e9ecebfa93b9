// event.c -- see event.h.
#include "os/event.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "os/syscall.h"

enum { DROPPED_BYTES = 1024, DROPS_MOST = 64 }; // a full pipe

static long connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(path);
    if (length >= sizeof address.sun_path) {
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, length);
    const long type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    const long file = hak_syscall(SYS_socket, AF_UNIX, type, 0, 0, 0, 0);
    if (hak_syscall_failed(file)) {
        return file;
    }
    const long done = hak_syscall(SYS_connect, file, (long)&address, (long)sizeof address, 0, 0, 0);
    if (hak_syscall_failed(done)) {
        hak_syscall_close(file);
        return done;
    }
    return file;
}

// Open a file, pipe or socket, without waiting for the other end of a pipe.
static long open_path(const char *path, bool writes)
{
    const long flags = (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const long file = hak_syscall(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
    return file == -ENXIO ? connect_to(path) : file;
}

static void close_event(struct hak_event *event)
{
    hak_syscall_close(event->held.file);
    event->held.file = -1;
}

bool hak_event_open(struct hak_event *event, const char *path, const char *request, size_t bytes)
{
    event->held = hak_os_hold(open_path(path, bytes > 0));
    event->awaited = event->held.is_regular ? POLLPRI : POLLIN;
    if (event->held.file < 0) {
        return false;
    }
    if (bytes > 0 &&
        hak_syscall(SYS_write, event->held.file, (long)request, (long)bytes, 0, 0, 0) !=
            (long)bytes) {
        close_event(event);
        return false;
    }
    return true;
}

// Read and drop what has arrived. False when the other end has been closed.
static bool drop_what_came(int file)
{
    char dropped[DROPPED_BYTES];
    long length = 1;
    for (unsigned i = 0; i < DROPS_MOST && length > 0; i++) {
        length = hak_syscall(SYS_read, file, (long)dropped, (long)sizeof dropped, 0, 0, 0);
    }
    return length != 0;
}

bool hak_event_came(struct hak_event *event)
{
    struct timespec now = {0, 0};
    if (!hak_os_is_held(&event->held)) {
        event->held.file = -1; // the program has closed it, and may use the number
        return false;
    }
    struct pollfd look = {.fd = event->held.file, .events = event->awaited};
    const long ready = hak_syscall(SYS_ppoll, (long)&look, 1, (long)&now, 0, 0, 0);
    if (ready == 0 || ready == -EINTR) {
        return false;
    }
    if (hak_syscall_failed(ready)) {
        close_event(event);
        return false;
    }
    const bool came = (look.revents & event->awaited) != 0;
    if ((look.revents & POLLERR) != 0 ||
        (came && event->awaited == POLLIN && !drop_what_came(event->held.file))) {
        close_event(event);
    }
    return came && (look.revents & POLLERR) == 0;
}
