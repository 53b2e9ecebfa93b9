// args: 4 6000 1
//
// The limit on address space is lowered and lifted at random while all threads
// allocate. A thread that gets NULL sees ENOMEM, its blocks are unchanged, and
// it gets memory again once there is some.
#include "../support/stress.h"

#include "../support/memory.h"
#include "../support/model.h"

#include <sys/resource.h>

enum { SLOTS = 120, LARGEST = 8000000 };

static atomic_size_t to_start; // a thread cannot be started either when memory is short
static atomic_size_t working;
static atomic_size_t refused;

// Fill the slot, if there is memory.
static void try_take(struct ht_slot *slot, struct ht_random *random)
{
    size_t size = 1 + ht_random_size(random, LARGEST);
    errno = 0;
    void *block = ht_random_below(random, 4) == 0 ? aligned_alloc(64, size) : malloc(size);
    if (block != NULL) {
        ht_slot_take(slot, block, size, _Alignof(max_align_t), size);
        return;
    }
    HT_CHECK(errno == ENOMEM, "NULL for %zu bytes, errno is %d, not ENOMEM", size, errno);
    atomic_fetch_add(&refused, 1);
}

static void try_resize(struct ht_slot *slot, struct ht_random *random)
{
    size_t size = 1 + ht_random_size(random, LARGEST);
    errno = 0;
    unsigned char *block = realloc(slot->bytes, size);
    if (block == NULL) {
        HT_CHECK(errno == ENOMEM, "realloc: errno is %d, not ENOMEM", errno);
        ht_slot_check(slot, slot->size, "after a failed realloc");
        atomic_fetch_add(&refused, 1);
        return;
    }
    slot->bytes = block;
    ht_slot_check(slot, size < slot->size ? size : slot->size, "after realloc");
    ht_slot_take(slot, block, size, _Alignof(max_align_t), size);
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    struct ht_slot slots[SLOTS] = {{NULL, 0, 0}};
    atomic_fetch_sub(&to_start, 1);
    for (size_t i = 0; i < worker->operations; i++) {
        struct ht_slot *slot = &slots[ht_random_below(&worker->random, SLOTS)];
        if (i % 1000 == 999) {
            malloc_trim(0); // blocks that are kept for reuse would hide the limit
        }
        if (slot->bytes == NULL) {
            try_take(slot, &worker->random);
        } else if (ht_random_below(&worker->random, 3) == 0) {
            try_resize(slot, &worker->random);
        } else {
            ht_slot_free(slot);
        }
    }
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(&slots[i]);
    }
    atomic_fetch_sub(&working, 1);
    return NULL;
}

static void set_limit(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

static void *change_limits(void *argument)
{
    struct ht_random random = {*(uint64_t *)argument};
    while (atomic_load(&to_start) > 0) {
        ht_sleep_ms(1);
    }
    while (atomic_load(&working) > 0) {
        size_t now = (size_t)ht_proc_number("/proc/self/status", "VmSize") * HT_KIB;
        set_limit(now + ht_random_below(&random, 4 * HT_MIB));
        ht_sleep_ms(1 + (long)ht_random_below(&random, 20));
        set_limit(RLIM_INFINITY);
        ht_sleep_ms((long)ht_random_below(&random, 4));
    }
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
#ifdef __SANITIZE_ADDRESS__
    HT_SKIP("AddressSanitizer has mapped terabytes");
#endif
    pthread_t changer;
    for (size_t threads = 1; threads <= stress.threads; threads *= 2) {
        atomic_store(&to_start, threads);
        atomic_store(&working, threads);
        HT_CHECK(pthread_create(&changer, NULL, change_limits, &stress.seed) == 0, "no thread");
        ht_run_threads(&stress, threads, work);
        pthread_join(changer, NULL);
    }
    set_limit(RLIM_INFINITY);
    void *block = malloc(200 * HT_MIB);
    HT_CHECK(block != NULL, "no memory after the limit was lifted for good");
    free(block);
    printf("%zu requests were refused\n", atomic_load(&refused));
    return 0;
}
