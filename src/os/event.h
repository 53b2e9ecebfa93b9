// event.h -- a file that tells that something has happened: one of the kernel's, a named pipe, or a socket.
//
// Layer     os
// Threads   one at a time for each.
// Fails     as each function says.
//
// A file of the kernel's says so by POLLPRI, and is not read; a pipe and a socket by something to read, which is
// dropped. The file stays open with a number as hak_os_hold_file has them.
#ifndef HAK_OS_EVENT_H
#define HAK_OS_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct hak_event {
    int file;      // -1: none
    short awaited; // of poll
    uint64_t device,
        number; // of the file: the program may have closed it, and opened another with this number
};

// Open the file, connect to it if it is a socket, and write `request` to it. False when that cannot be done.
HAK_INTERNAL HAK_MUST_USE bool hak_event_open(struct hak_event *event,
                                              const char *path,
                                              const char *request,
                                              size_t bytes);

// Has something happened since the last look? `event->file` is -1 afterwards when it never can again.
HAK_INTERNAL HAK_MUST_USE bool hak_event_came(struct hak_event *event);

#endif
