// soak in: core
// glibc only: musl takes the numbers of ioctl for int
// args: 3 150 1
// native only
// linked too
// timeout: 240
//
// Each system call that hakmem makes fails, with each error that it may have (docs/system-calls.md), while several
// threads work; then all succeed again. A request may be refused meanwhile, with ENOMEM, and there is no other
// effect: no content changes, no two blocks overlap (support/live.h). Afterwards no request is refused, and memory
// goes back.
//
// One process for each call and error. Its first thread answers for the kernel (SECCOMP_RET_USER_NOTIF): the filter
// applies to the working threads, and to the sweeper that one of them starts. The calls at a program's start fail
// because of a filter that was set up before it.
//
// Arguments: <threads> <operations of each in each phase> <seed>; seed 0 takes one from the clock.
#include "../support/options.h"
#include "../support/stress.h"

#include "../support/live.h"
#include "../support/older_kernel.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef SYS_process_madvise
#    define SYS_process_madvise 440
#endif

enum {
    SLOTS = 48,
    MOST_ERRORS = 6,
    ANY = -1,
    FUTEX_WAIT_PRIVATE_ = 128,
    LEAST_BYTES = 8 << 20,
    LOOKS = 100
};

// A call, and what distinguishes it from others with its number: one argument.
struct call {
    const char *name;
    long number;
    int argument; // ANY: none
    uint64_t value;
    const char *options; // hakmem makes the call with these
    bool is_at_start;    // it comes before main
    int errors[MOST_ERRORS];
};

#define OFTEN "dirty_bytes=65536,purge_start_bytes=0,decay_ms=10,purger=off,"
static const struct call calls[] = {
    {"mmap", SYS_mmap, 4, UINT32_MAX, OFTEN, false, {ENOMEM, EAGAIN, EPERM, EINVAL, ENOSYS}},
    {"munmap",
     SYS_munmap,
     ANY,
     0,
     OFTEN "large_pool=off,bigcache=off",
     false,
     {ENOMEM, EINVAL, EPERM}},
    {"munmap of guarded blocks", SYS_munmap, ANY, 0, OFTEN "guard_large=on", false, {ENOMEM}},
    {"mremap", SYS_mremap, ANY, 0, OFTEN "large_pool=off", false, {ENOMEM, EFAULT}},
    {"madvise DONTNEED", SYS_madvise, 2, MADV_DONTNEED, OFTEN, false, {EINVAL, EAGAIN, EPERM}},
    {"madvise DONTNEED in mode secure",
     SYS_madvise,
     2,
     MADV_DONTNEED,
     OFTEN "mode=secure",
     false,
     {EINVAL}},
    {"madvise FREE", SYS_madvise, 2, MADV_FREE, OFTEN "free_policy=lazy", false, {EINVAL, ENOSYS}},
    {"madvise HUGEPAGE",
     SYS_madvise,
     2,
     MADV_HUGEPAGE,
     OFTEN "thp=always",
     false,
     {EINVAL, ENOMEM}},
    {"madvise of guards",
     SYS_madvise,
     2,
     HT_GUARD_INSTALL,
     OFTEN "guard_large=on",
     false,
     {EINVAL, ENOMEM}},
    {"madvise of no more guards",
     SYS_madvise,
     2,
     HT_GUARD_REMOVE,
     OFTEN "guard_large=on",
     false,
     {EINVAL, ENOMEM}},
    {"madvise of guarded blocks",
     SYS_madvise,
     ANY,
     0,
     OFTEN "guard_large=on",
     false,
     {EINVAL, ENOMEM}},
    {"mprotect", SYS_mprotect, ANY, 0, OFTEN "guard_large=on", false, {ENOMEM, EACCES, EPERM}},
    {"mprotect of slots", SYS_mprotect, ANY, 0, OFTEN "guard_sample=20", false, {ENOMEM}},
    {"process_madvise",
     SYS_process_madvise,
     ANY,
     0,
     OFTEN "batch_madvise=on",
     false,
     {EINVAL, EPERM, EBADF}},
    {"membarrier", SYS_membarrier, ANY, 0, OFTEN, false, {EPERM, ENOSYS, EINVAL}},
    {"futex wait", SYS_futex, 1, FUTEX_WAIT_PRIVATE_, OFTEN, false, {EPERM, EINVAL, EINTR, ENOSYS}},
    {"openat", SYS_openat, ANY, 0, OFTEN, false, {EMFILE, ENFILE, ENOENT, EACCES}},
    {"read", SYS_read, ANY, 0, OFTEN "mode=research", false, {EIO, EAGAIN, EINTR}},
    {"ioctl", SYS_ioctl, ANY, 0, OFTEN, false, {ENOTTY, EINVAL}},
    {"close", SYS_close, ANY, 0, OFTEN, false, {EINTR, EIO}},
    {"clock_gettime", SYS_clock_gettime, ANY, 0, OFTEN "mode=research", false, {EPERM, EINVAL}},
    {"getrusage", SYS_getrusage, ANY, 0, OFTEN "elo=on", true, {EPERM}},
    {"anything", ANY, ANY, 0, OFTEN "batch_madvise=on", false, {ENOMEM, EPERM, EINVAL}},
    {"sysinfo", SYS_sysinfo, ANY, 0, OFTEN, true, {EPERM}},
    {"getrandom", SYS_getrandom, ANY, 0, OFTEN, true, {EAGAIN, ENOSYS}},
    {"sched_getaffinity", SYS_sched_getaffinity, ANY, 0, OFTEN, true, {EPERM}},
    {"prlimit64", SYS_prlimit64, ANY, 0, OFTEN, true, {EPERM}},
    {"membarrier", SYS_membarrier, ANY, 0, OFTEN, true, {ENOSYS}},
    {"mremap", SYS_mremap, ANY, 0, OFTEN, true, {ENOSYS}},
};
enum { CALLS = sizeof calls / sizeof *calls };

enum phase { STARTING, FAILING, AFTER, OVER };

static struct ht_stress stress;
static atomic_uint phase;
static atomic_size_t arrived;
static atomic_int listener = -1;
static int error_given;
static atomic_size_t failed;
static bool uses_huge; // one thread only: where mremap fails, these blocks are copied
static struct ht_block blocks[HT_MOST_THREADS][SLOTS];

// ---- the working threads ----

// Without a futex, which may fail.
static void next_phase(unsigned next)
{
    if (atomic_fetch_add(&arrived, 1) + 1 == stress.threads) {
        atomic_store(&ht_may_be_refused, next == FAILING);
        atomic_store(&arrived, 0);
        atomic_store(&phase, next);
    }
    while (atomic_load(&phase) < next) {
        sched_yield();
    }
}

// A large block, besides those of any size.
static void take_large(struct ht_block *block, struct ht_random *random)
{
    ht_block_drop(block, random);
    errno = 0;
    const size_t bytes = HT_MIB + ht_random_below(random, 3 * HT_MIB);
    if (ht_random_below(random, 2) == 0) {
        ht_block_take_zeros(block, calloc(1, bytes), bytes, bytes);
    } else {
        ht_block_hold(block, malloc(bytes), bytes, 0, bytes);
        ht_block_resize_to(block, HT_MIB + ht_random_below(random, 3 * HT_MIB));
    }
}

// A block that grows and shrinks by mremap. Two of its pages are touched.
static void use_huge(struct ht_random *random)
{
    const size_t bytes = 600 * HT_MIB + ht_random_below(random, 100 * HT_MIB);
    errno = 0;
    unsigned char *block = malloc(bytes);
    if (ht_is_refused(block)) {
        return;
    }
    HT_CHECK(block != NULL, "no huge block");
    block[0] = 1;
    block[550 * HT_MIB] = 2;
    for (size_t i = 0; i < 2; i++) {
        const size_t other = 560 * HT_MIB + ht_random_below(random, 200 * HT_MIB);
        unsigned char *moved = realloc(block, other);
        HT_CHECK(moved != NULL || ht_is_refused(moved), "a huge block does not grow");
        block = moved != NULL ? moved : block;
        HT_CHECK(block[0] == 1 && block[550 * HT_MIB] == 2, "a huge block lost its content");
    }
    free(block);
}

static void work_once(struct ht_block *mine, struct ht_random *random, size_t i)
{
    struct ht_block *block = &mine[ht_random_below(random, SLOTS)];
    errno = 0;
    if (i % 100 == 99) {
        malloc_trim(0);
    } else if (i == 33 && uses_huge && mine == blocks[0]) {
        use_huge(random);
    } else if (i % 16 == 0) {
        take_large(block, random);
    } else if (block->slot.bytes == NULL) {
        ht_block_take(block, random);
    } else if (ht_random_below(random, 3) == 0) {
        ht_block_resize(block, random);
    } else {
        ht_block_drop(block, random);
    }
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    struct ht_block *mine = blocks[worker->index];
    next_phase(FAILING); // starting threads takes calls that are not hakmem's
    for (unsigned now = FAILING; now < OVER; now++) {
        for (size_t i = 0; i < stress.operations; i++) {
            work_once(mine, &worker->random, i);
        }
        next_phase(now + 1);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        ht_block_drop(&blocks[(worker->index + 1) % stress.threads][i], &worker->random);
    }
    return NULL;
}

// The first working thread sets up the filter, which the others and the sweeper inherit.
static void *filter_and_work(void *number)
{
    const unsigned call = (unsigned)*(long *)number;
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the system call's number
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter all[2 * CALLS + 2];
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (*(long *)number == ANY) {
        unsigned short count = 0;
        all[count++] = rules[0];
        for (size_t i = 0; i < CALLS; i++) {
            // Not those by which threads end, and not one whose failure the C library cannot handle.
            if (!calls[i].is_at_start && calls[i].number != ANY && calls[i].number != SYS_close) {
                rules[1].k = (unsigned)calls[i].number;
                all[count++] = rules[1];
                all[count++] = rules[2];
            }
        }
        all[count++] = rules[3];
        program = (struct sock_fprog){count, all};
    }
    HT_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "privileges stay");
    const long file =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    atomic_store(&listener, file >= 0 ? (int)file : -2);
    if (file >= 0) {
        ht_set_option("purger",
                      1); // not before: a sweeper started by the first thread would have no filter
        ht_run_threads(&stress, stress.threads, work);
    }
    return NULL;
}

// ---- answers for the kernel ----

static bool is_meant(const struct call *call, const struct seccomp_data *data)
{
    if (call->number == ANY) { // of each call above only the errors that the other calls have
        for (size_t i = 0; i < CALLS; i++) {
            if (calls[i].number == data->nr && calls[i].number != ANY &&
                is_meant(&calls[i], data)) {
                return true;
            }
        }
        return false;
    }
    return call->argument == ANY || (uint32_t)data->args[call->argument] == call->value;
}

// Makes calls fail for random stretches of time, as long as the phase lasts.
static void *answer(void *argument)
{
    const struct call *call = argument;
    struct ht_random random = {stress.seed + (uint64_t)(call - calls)};
    const size_t length = 3 + ht_random_below(&random, 200);
    bool is_bad = true;
    for (;;) {
        struct seccomp_notif question = {0};
        if (ioctl(atomic_load(&listener), SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) {
            continue; // the thread that asked has ended
        }
        const bool is_one = atomic_load(&phase) == FAILING && is_meant(call, &question.data);
        const bool fails = is_one && is_bad;
        if (is_one && ht_random_below(&random, length) == 0) {
            is_bad = !is_bad;
        }
        struct seccomp_notif_resp answer = {
            .id = question.id,
            .error = fails ? -error_given : 0,
            .flags = fails ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE,
        };
        atomic_fetch_add(&failed, fails);
        ioctl(atomic_load(&listener), SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    return NULL;
}

static size_t resident_bytes(void)
{
    char text[100] = "";
    const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    HT_CHECK(read(file, text, sizeof text - 1) > 0, "statm cannot be read");
    close(file);
    strtok(text, " ");
    return strtoul(strtok(NULL, " "), NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static void work_filtered(const struct call *call)
{
    pthread_t first;
    pthread_t kernel;
    long number = call->number;
    HT_CHECK(pthread_create(&first, NULL, filter_and_work, &number) == 0, "no thread");
    while (atomic_load(&listener) == -1) {
        sched_yield();
    }
    if (atomic_load(&listener) < 0) {
        HT_SKIP("no seccomp with notifications here");
    }
    HT_CHECK(pthread_create(&kernel, NULL, answer, (void *)(uintptr_t)call) == 0, "no thread");
    pthread_join(first, NULL);
}

// One process, for one call and error.
static void run_case(const struct call *call)
{
    const size_t before = resident_bytes();
    size_t after = SIZE_MAX;
    uses_huge = call->number == SYS_mremap && !call->is_at_start;
    if (call->is_at_start) {
        ht_set_option("purger", 1);
        ht_run_threads(&stress, stress.threads, work);
    } else {
        work_filtered(call);
    }
    HT_CHECK(atomic_load(&ht_live_grains) == 0, "the table of live blocks is not empty");
    for (unsigned look = 0; look < LOOKS && after >= before + LEAST_BYTES; look++) {
        malloc_trim(0); // the sweeper may be about to give some back
        after = resident_bytes();
        ht_sleep_ms(look);
    }
    HT_CHECK(after < before + LEAST_BYTES,
             "%zu KiB stay, %zu at first",
             after / HT_KIB,
             before / HT_KIB);
    printf("%zu failed, %zu requests refused\n", atomic_load(&failed), atomic_load(&ht_refusals));
    fflush(stdout);
    _exit(0);
}

// ---- all cases ----

static void fail_from_the_start(const struct call *call, int error)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call->number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        HT_SKIP("no seccomp here: errno %d", errno);
    }
}

static void start_case(size_t number, int error)
{
    const struct call *call = &calls[number];
    char words[5][24];
    printf("%s, error %d, HAKMEM_OPTIONS=%s: ", call->name, error, call->options);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        setenv("HAKMEM_OPTIONS", call->options, 1);
        snprintf(words[0], sizeof words[0], "%zu", stress.threads);
        snprintf(words[1], sizeof words[1], "%zu", stress.operations);
        snprintf(words[2], sizeof words[2], "%llu", (unsigned long long)stress.seed);
        snprintf(words[3], sizeof words[3], "%zu", number);
        snprintf(words[4], sizeof words[4], "%d", error);
        alarm(60);
        if (call->is_at_start) {
            fail_from_the_start(call, error);
        } else if (call->number == SYS_mprotect) {
            ht_become_older_kernel(); // there, guards are made by the call
        }
        execl("/proc/self/exe",
              "calls_fail_for_a_while",
              words[0],
              words[1],
              words[2],
              words[3],
              words[4],
              (char *)NULL);
        _exit(1);
    }
    ht_wait_child(child, call->name);
}

int main(int count, char **arguments)
{
#if defined(__SANITIZE_ADDRESS__)
    HT_SKIP("the sanitizer's runtime makes calls of its own, and waits for them");
#endif
    if (count == 6) {
        stress = (struct ht_stress){strtoul(arguments[1], NULL, 10),
                                    strtoul(arguments[2], NULL, 10),
                                    strtoull(arguments[3], NULL, 10)};
        HT_API_FIND(hak_free_sized);
        HT_API_FIND(hak_free_aligned_sized);
        error_given = atoi(arguments[5]);
        run_case(&calls[strtoul(arguments[4], NULL, 10)]);
    }
    stress = ht_stress_start(count, arguments);
    for (size_t i = 0; i < CALLS; i++) {
        for (size_t k = 0; k < MOST_ERRORS && calls[i].errors[k] != 0; k++) {
            start_case(i, calls[i].errors[k]);
        }
    }
    return 0;
}
