// manager.c -- see manager.h.
#include "limits/manager.h"

#include <string.h>

#include "front/environment.h"
#include "os/event.h"
#include "os/os.h"
#include "os/say.h"

#define WATCH   "MEMORY_PRESSURE_WATCH"
#define WRITE   "MEMORY_PRESSURE_WRITE"
#define NOTHING "/dev/null" // the manager wants stalls to be ignored

#define HOLDS_NS UINT64_C(1000000000)

enum { REQUEST_BYTES = 512 };

static struct {
    struct hak_event event;
    int process;      // that has opened it
    uint64_t told_ns; // 0: never
    bool is_muted;
} manager = {.event = {.held = {.file = -1}}};

struct request {
    size_t length;
    char bytes[REQUEST_BYTES];
};

// Decode Base64 (RFC 4648), with its padding or without. False if it is malformed or too long.
static bool decode(const char *text, struct request *request)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0;
    unsigned count = 0;
    for (; *text != '\0' && *text != '='; text++) {
        const char *digit = strchr(digits, *text);
        if (digit == NULL || request->length == sizeof request->bytes) {
            return false;
        }
        bits = (bits & 0xff) << 6 | (unsigned)(digit - digits);
        count += 6;
        if (count >= 8) {
            count -= 8;
            request->bytes[request->length++] = (char)(bits >> count);
        }
    }
    return text[strspn(text, "=")] == '\0';
}

void hak_manager_start(void)
{
    const char *path = hak_environment_value(WATCH);
    const char *written = hak_environment_value(WRITE);
    struct request request = {.length = 0};
    if (path == NULL || *path == '\0') {
        return;
    }
    manager.is_muted = strcmp(path, NOTHING) == 0;
    if (manager.is_muted) {
        return;
    }
    if (written != NULL && !decode(written, &request)) {
        hak_say(WRITE "=%s is not Base64, or too long; " WATCH " is not watched", written);
    } else if (!hak_event_open(&manager.event, path, request.bytes, request.length)) {
        hak_say(WATCH "=%s cannot be watched", path);
    }
    manager.process = hak_os_process_id();
}

bool hak_manager_decides(void)
{
    return manager.is_muted ||
           (manager.event.held.file >= 0 && manager.process == hak_os_process_id());
}

bool hak_manager_says_short(uint64_t now_ns)
{
    if (!manager.is_muted && hak_event_came(&manager.event)) {
        manager.told_ns = now_ns;
    }
    return manager.told_ns != 0 && now_ns - manager.told_ns < HOLDS_NS;
}
