// delayed_malloc.c -- a malloc that adds a part of the program's time to its calls.
//
// Owns      the thread's count of calls, and the moment of its last delay.
// Threads   any; each delays itself.
// Fails     as the malloc behind it.
//
// Linked before hakmem, whose own malloc is renamed to undelayed_malloc, it makes an allocator that is
// slower by a known amount: measuring.py checks whether that is found.
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
    CALLS_BETWEEN = 4096, // so that reading the clock adds no delay of its own
    DELAY_PER_CENT = 5,
};

void *undelayed_malloc(size_t bytes);
void *malloc(size_t bytes);

static __thread unsigned calls __attribute__((tls_model("initial-exec")));
static __thread int64_t resumed_ns __attribute__((tls_model("initial-exec")));

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void delay(void)
{
    int64_t now = now_ns();
    if (resumed_ns != 0) {
        const int64_t end = now + (now - resumed_ns) * DELAY_PER_CENT / 100;
        while (now < end) {
            now = now_ns();
        }
    }
    resumed_ns = now;
}

void *malloc(size_t bytes)
{
    if (++calls % CALLS_BETWEEN == 0) {
        delay();
    }
    return undelayed_malloc(bytes);
}
