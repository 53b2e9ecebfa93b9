// preload only
// native only
// timeout: 120
// not secure: one call in a few holds a lock, for which each answer then waits
// with features
// hak_stats_json allocates nothing and never waits for a lock for ever: a handler that interrupts malloc
// itself gets an answer, with what can be read without the lock. A text that does not fit is cut off; its full length is returned.
#include "../support/api.h"

#include <signal.h>
#include <sys/time.h>

enum { CALLS = 30, BLOCKS = 4000 };

static __typeof__(hak_stats_json) *stats_json;
static char text[32768];
static volatile sig_atomic_t calls;
static volatile sig_atomic_t bad_calls;

static bool is_whole(size_t length)
{
    return length > 0 && length < sizeof text && text[0] == '{' &&
           strcmp(text + length - 2, "}\n") == 0 && strstr(text, "\"mapped_bytes\":") != NULL;
}

static void handler(int number)
{
    (void)number;
    bad_calls += !is_whole(stats_json(text, sizeof text));
    calls++;
}

static void check_cut(void)
{
    char piece[20] = "";
    const size_t length = stats_json(piece, sizeof piece);
    HT_CHECK(length > sizeof piece && strlen(piece) == sizeof piece - 1, "cut to '%s'", piece);
    HT_CHECK(strncmp(piece, "{\"release\":\"", 12) == 0, "begins '%s'", piece);
    HT_CHECK(stats_json(NULL, 0) > 100, "no length without room");
}

int main(void)
{
    ht_start();
    HT_API(hak_stats_json);
    stats_json = api_hak_stats_json;
    free(malloc(1));
    HT_CHECK(is_whole(stats_json(text, sizeof text)), "%s", text);
    HT_CHECK(strstr(text, "\"walked\":true") != NULL, "%s", text);
    check_cut();
    signal(SIGALRM, handler);
    // One at a time: an answer may have to wait for longer than the interval, and
    // then the holder of the lock would never get to release it.
    const struct itimerval once = {{0, 0}, {0, 3000}};
    int due = 0;
    static void *blocks[BLOCKS];
    while (calls < CALLS) {
        if (calls == due) {
            due++;
            setitimer(ITIMER_REAL, &once, NULL);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(16 + i % 1000);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            free(blocks[i]);
        }
    }
    HT_CHECK(bad_calls == 0, "%d answers were not whole", (int)bad_calls);
    return 0;
}
