// preload only
// native only
// env: HAKMEM_MODE=learning HAKMEM_DECAY_MS=777
// not secure: it runs itself in a mode of its own
// In mode learning the learner begins when the heap has grown, shows itself as the source of what it sets, and
// leaves what somebody has set as it is.
#include <stdlib.h>
#include <string.h>

#include "../support/options.h"

enum { BLOCKS = 20000, BYTES = 1000, WAIT_MS = 50000 };

static void work(void)
{
    static char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        HT_CHECK(blocks[i] != NULL, "no memory");
        memset(blocks[i], 1, BYTES);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

int main(void)
{
    ht_start();
    HT_CHECK(ht_option_info("elo").value == 1, "the mode does not switch the learner on");
    const long end = ht_now_ms() + WAIT_MS;
    while (strcmp(ht_option_info("debug_timing").source, "learner") != 0 ||
           strcmp(ht_option_info("magazine_bytes").source, "learner") != 0) {
        HT_CHECK(ht_now_ms() < end, "the learner has set nothing");
        work();
        const struct hak_option_info decay = ht_option_info("decay_ms");
        HT_CHECK(decay.value == 777 && strcmp(decay.source, "environment") == 0,
                 "the learner has changed what the environment says: %zu, %s",
                 (size_t)decay.value,
                 decay.source);
    }
    return 0;
}
