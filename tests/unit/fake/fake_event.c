// fake_event.c -- events to wait for, watched files and signals, as a test says.
#include <string.h>

#include "fake.h"
#include "os/event.h"

bool hak_event_open(struct hak_event *event, const char *path, const char *request, size_t bytes)
{
    const bool is_there = hak_fake.event_path != NULL && strcmp(path, hak_fake.event_path) == 0 &&
                          bytes <= sizeof hak_fake.request;
    event->held.file = is_there ? 0 : -1;
    if (is_there) {
        memcpy(hak_fake.request, request, bytes);
        hak_fake.request_bytes = bytes;
    }
    return is_there;
}

bool hak_event_came(struct hak_event *event)
{
    const bool came = hak_fake.event_came;
    hak_fake.event_came = false;
    event->held.file = hak_fake.event_ends ? -1 : event->held.file;
    return came && !hak_fake.event_ends;
}

bool hak_os_may_be_in_handler(void)
{
    return hak_fake.blocks_signals;
}
