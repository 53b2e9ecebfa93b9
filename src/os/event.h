// event.h -- a file that tells that something has happened: one of the kernel's, a named pipe, or a socket.
//
// Threads   one at a time for each.
// Fails     as each function says.
//
// A file of the kernel's says so by POLLPRI, and is not read; a pipe and a socket by something to read, which is
// dropped. The file stays open as hak_os_hold_file has it.
#pragma once

#include "base/compiler.h"
#include "os/os.h"

struct hak_event {
    struct hak_held_file held;
    short awaited; // of poll
};

// Open the file, connect to it if it is a socket, and write `request` to it. False when that cannot be done.
HAK_INTERNAL HAK_MUST_USE bool hak_event_open(struct hak_event *event,
                                              const char *path,
                                              const char *request,
                                              size_t bytes);

// Has something happened since the last look? `event->held` is none afterwards when it never can again.
HAK_INTERNAL HAK_MUST_USE bool hak_event_came(struct hak_event *event);
