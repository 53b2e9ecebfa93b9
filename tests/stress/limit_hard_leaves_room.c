// args: 16 8000 1
// env: HAKMEM_LIMIT_HARD=85M HAKMEM_ARENA_SHARDS=8
//
// Threads that together never hold more than 80 MiB, in blocks of which each takes just what it is long, are never refused within 85:
// whatever others free, give back and count at that moment.
#include "../support/stress.h"

#include "../support/memory.h"

#define LIVE_BYTES (80 * HT_MIB)
#define LEAST      (128 * HT_KIB)
enum { SIZES = 6, BLOCKS_MOST = LIVE_BYTES / LEAST };

static size_t thread_count;

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    static _Thread_local struct {
        char *block;
        size_t bytes;
    } held[BLOCKS_MOST];
    const size_t most = LIVE_BYTES / thread_count;
    size_t count = 0;
    size_t live = 0;
    for (size_t i = 0; i < worker->operations; i++) {
        const size_t bytes = LEAST << ht_random_below(&worker->random, SIZES);
        if (live + bytes <= most) {
            char *block = malloc(bytes);
            HT_CHECK(block != NULL, "%zu bytes were refused, with %zu of %zu", bytes, live, most);
            memset(block, 1, bytes);
            held[count].block = block;
            held[count++].bytes = bytes;
            live += bytes;
            continue;
        }
        const size_t kept = ht_random_below(&worker->random, 3) == 0 ? 0 : count / 2;
        while (count > kept) {
            live -= held[--count].bytes;
            free(held[count].block);
        }
    }
    while (count > 0) {
        free(held[--count].block);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    const struct ht_stress stress = ht_stress_start(count, arguments);
    thread_count = stress.threads;
    ht_run_threads(&stress, stress.threads, work);
    return 0;
}
