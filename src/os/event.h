// event.h -- a file that tells that something has happened: a file of the kernel, a named pipe, or a socket.
//
// Threads   one at a time for each event.
// Fails     as each function says.
//
// A file of the kernel tells it by POLLPRI, and is not read; a pipe or a socket tells it by data to read, which are dropped.
// The file is held open as by hak_os_hold_file.
#pragma once

#include "base/compiler.h"
#include "os/os.h"

struct hak_event {
    struct hak_held_file held;
    short awaited; // an event of poll
};

// Open the file, connect to it if it is a socket, and write `request` to it. False when that cannot be done.
HAK_INTERNAL HAK_MUST_USE bool hak_event_open(struct hak_event *event,
                                              const char *path,
                                              const char *request,
                                              size_t bytes);

// Has something happened since the last call? Once the file can tell no more, `event->held` is none.
HAK_INTERNAL HAK_MUST_USE bool hak_event_came(struct hak_event *event);
