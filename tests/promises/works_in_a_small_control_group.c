// serial
// native only
// preload only
// In a container with 64 MiB the program starts; its free memory never adds up to so much that
// the kernel kills it, though its phases and threads leave much behind; and the defaults are
// those of a small machine.
#include "../support/api.h"
#include "../support/control_group.h"
#include "../support/memory.h"

#include <pthread.h>

#define LIMIT      "67108864"
#define LIVE_BYTES (20 * HT_MIB)

enum { THREADS = 6, PHASES = 12, MOST_BLOCKS = 1 << 19 };

// One thread after the other holds LIVE_BYTES in blocks of another size, frees them, and sleeps from then on.
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_are_done;
static void **blocks;

static void *hold_and_free(void *argument)
{
    static const size_t sizes[PHASES] = {
        64, 700, 5000, 33000, 70000, 150000, 300000, 600000, 900000, 100000, 1200000, 2500000};
    size_t thread = (size_t)(uintptr_t)argument;
    for (size_t phase = 0; phase < PHASES; phase++) {
        size_t size = sizes[(phase + 2 * thread) % PHASES];
        size_t count = LIVE_BYTES / size;
        pthread_mutex_lock(&turn);
        ht_fill(blocks, count, size);
        ht_shuffle(blocks, count, phase);
        ht_free_all(blocks, count);
        pthread_mutex_unlock(&turn);
    }
    pthread_barrier_wait(&all_are_done);
    return NULL;
}

static int live_inside(void)
{
    HT_API(hak_option_get);
    blocks = mmap(NULL,
                  MOST_BLOCKS * sizeof *blocks,
                  PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS,
                  -1,
                  0);
    HT_CHECK(blocks != MAP_FAILED, "no memory for the test itself");
    pthread_barrier_init(&all_are_done, NULL, THREADS);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        int error = pthread_create(&threads[i], NULL, hold_and_free, (void *)(uintptr_t)i);
        HT_CHECK(error == 0, "no thread: errno %d", error);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    uint64_t bytes = 0;
    HT_CHECK(api_hak_option_get("dirty_bytes", &bytes) && bytes <= 4 * HT_MIB,
             "%llu bytes may wait in 64 MiB",
             (unsigned long long)bytes);
    HT_CHECK(api_hak_option_get("magazine_bytes", &bytes) && bytes <= 4 * HT_MIB,
             "a thread may keep %llu bytes of 64 MiB",
             (unsigned long long)bytes);
    return 0;
}

int main(int count, char **arguments)
{
    (void)arguments;
    ht_start();
    if (count > 1) {
        return live_inside();
    }
    struct ht_group group = ht_make_group(LIMIT);
    pid_t child = fork();
    if (child == 0) {
        ht_enter_group(&group);
        execl("/proc/self/exe", "small", "inside", (char *)NULL);
        _exit(1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    ht_remove_group(&group);
    HT_CHECK(!WIFSIGNALED(status), "ended by signal %d in " LIMIT " bytes", WTERMSIG(status));
    if (WEXITSTATUS(status) == HT_SKIPPED) {
        return HT_SKIPPED;
    }
    HT_CHECK(WEXITSTATUS(status) == 0, "exit code %d", WEXITSTATUS(status));
    return 0;
}
