// preload only
// native only
// env: HAKMEM_AB=magazine_bytes=4K|16M
// not secure: there are no magazines, and so no trial of them
// with features
// Of two values of an option on trial, the one that costs this program less wins: here magazines that are large enough for what two
// threads take and give back. Then the trial has nothing left to do, and its thread ends. A mistake in a trial is reported in one
// line, and the program runs as without it.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../support/memory.h"
#include "../support/options.h"

enum { BLOCKS = 5000, BYTES = 64, WAIT_MS = 50000 };

static _Atomic(bool) is_over;

static void *work(void *unused)
{
    char *blocks[BLOCKS];
    while (!is_over) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(BYTES);
            HT_CHECK(blocks[i] != NULL, "no memory");
            blocks[i][0] = 1;
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            free(blocks[i]);
        }
    }
    return unused;
}

static void the_better_value_wins(void)
{
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0, "no thread");
    }
    const long end = ht_now_ms() + WAIT_MS;
    while (strcmp(ht_option_info("magazine_bytes").source, "learner") != 0) {
        HT_CHECK(ht_now_ms() < end, "the trial has decided nothing");
        usleep(50000);
    }
    is_over = true;
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    const struct hak_option_info winner = ht_option_info("magazine_bytes");
    HT_CHECK(winner.value == 16 << 20, "the winner is %zu", (size_t)winner.value);
    HT_CHECK(ht_option_info("debug_timing").value == 0, "slow paths are still timed");
    ht_expect_one_thread(WAIT_MS);
}

static void nothing_is_tried(char *setting, const char *why)
{
    const char *said = ht_run_again("ends", (char *[]){setting, NULL});
    HT_CHECK(strstr(said, why) != NULL && strchr(said, '\n') == said + strlen(said) - 1,
             "%s: it says \"%s\" and not \"%s\"",
             setting,
             said,
             why);
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1 && strcmp(arguments[1], "ends") == 0) {
        return 0;
    }
    nothing_is_tried("HAKMEM_AB=decay_m=1|2", "there is no such option");
    nothing_is_tried("HAKMEM_AB=decay_ms=1", "not OPTION=VALUE|VALUE");
    nothing_is_tried("HAKMEM_AB=thp=auto|never", "only ace, decay_ms and magazine_bytes can");
    nothing_is_tried("HAKMEM_AB=ace=on|2", "the option cannot have this value");
    nothing_is_tried("HAKMEM_AB=ace=on|1", "the two values are the same");
    nothing_is_tried("HAKMEM_DEBUG_TIMING=off", "debug_timing=off is set");
    nothing_is_tried("HAKMEM_OPTIONS=check=on", "there are no magazines");
    nothing_is_tried("HAKMEM_OPTIONS=elo=on", "the learner (option elo) sets options");
    the_better_value_wins();
    return 0;
}
