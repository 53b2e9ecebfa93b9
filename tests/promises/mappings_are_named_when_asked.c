// native only
//
// With name_mappings the kernel is told that each of our mappings is hakmem's, also those that were made before the options
// were read; a kernel without names is asked once; and without the option it is never asked. Here this program answers for the
// kernel.
#include "../support/promise.h"

#include <linux/filter.h>
#include <linux/ioctl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { VMA = 0x53564d41, ANON_NAME = 0, ASKED_MAX = 4096 };

struct run {
    int listener;
    pid_t child;
    int blocks[2]; // a pipe: the addresses of what the child has allocated
};

struct asked {
    uintptr_t start;
    size_t bytes;
};
static struct asked asked[ASKED_MAX];
static size_t asked_count;

struct block {
    void *start;
    size_t bytes;
};

static void show(void *start, size_t bytes)
{
    const struct block block = {start, bytes};
    HT_CHECK(start != NULL, "malloc(%zu) failed", bytes);
    HT_CHECK(write(STDOUT_FILENO, &block, sizeof block) == sizeof block, "cannot write");
}

// Before all constructors, also before ours, which reads the options.
static void *first;
static void allocate_first(void)
{
    first = malloc(10 * HT_MIB);
}
__attribute__((section(".preinit_array"),
               used)) static void (*const run_first)(void) = allocate_first;

static int allocate(void)
{
    if (first != NULL) { // musl does not run it
        show(first, 10 * HT_MIB);
    }
    for (size_t bytes = 16; bytes < 8 * HT_MIB; bytes *= 2) {
        for (int i = 0; i < 3; i++) {
            show(malloc(bytes), bytes);
        }
    }
    show(malloc(600 * HT_MIB), 600 * HT_MIB);
    show(aligned_alloc(8 * HT_MIB, 100 * HT_MIB), 100 * HT_MIB);
    return 0;
}

// From now on the calling thread's prctl(PR_SET_VMA, …) wait for an answer. -1 if the kernel has no such filters.
static int listen_to_names(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VMA, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    return (int)syscall(
        SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void *start_child(void *argument)
{
    struct run *run = argument;
    run->listener = listen_to_names();
    if (run->listener < 0) {
        return NULL;
    }
    run->child = fork();
    if (run->child == 0) {
        dup2(run->blocks[1], STDOUT_FILENO);
        execl("/proc/self/exe", "itself", "allocate", (char *)NULL);
        _exit(HT_BROKEN);
    }
    return NULL;
}

static void answer(const struct run *run, int error)
{
    struct seccomp_notif call;
    memset(&call, 0, sizeof call);
    if (syscall(SYS_ioctl, run->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
        return;
    }
    char text[8] = "";
    struct iovec here = {text, sizeof "hakmem"};
    struct iovec there = {(void *)(uintptr_t)call.data.args[4], sizeof "hakmem"};
    const bool is_read = process_vm_readv((pid_t)call.pid, &here, 1, &there, 1, 0) > 0;
    HT_CHECK(call.data.args[1] == ANON_NAME && (!is_read || strcmp(text, "hakmem") == 0),
             "the name is '%s'",
             text);
    HT_CHECK(asked_count < ASKED_MAX, "the kernel is asked for too many names");
    asked[asked_count++] = (struct asked){(uintptr_t)call.data.args[2], (size_t)call.data.args[3]};
    struct seccomp_notif_resp response = {.id = call.id, .error = error};
    HT_CHECK(syscall(SYS_ioctl, run->listener, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0,
             "no answer");
}

// Run allocate() in a program of its own, for which the kernel gives names or refuses them with `error`.
static void serve(struct run *run, int error)
{
    pthread_t thread;
    asked_count = 0;
    HT_CHECK(pipe(run->blocks) == 0, "no pipe");
    HT_CHECK(pthread_create(&thread, NULL, start_child, run) == 0, "no thread");
    pthread_join(thread, NULL);
    if (run->listener < 0) {
        HT_SKIP("the kernel has no filters that ask somebody: errno %d", errno);
    }
    close(run->blocks[1]);
    struct pollfd ready = {.fd = run->listener, .events = POLLIN};
    while (poll(&ready, 1, 20000) > 0 && (ready.revents & POLLIN) != 0) {
        answer(run, error);
    }
    ht_wait_child(run->child, "the program that allocates");
    close(run->listener);
}

static bool has_name(struct block block)
{
    for (size_t i = 0; i < asked_count; i++) {
        const uintptr_t start = (uintptr_t)block.start;
        if (start >= asked[i].start && start + block.bytes <= asked[i].start + asked[i].bytes) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "allocate") == 0) {
        return allocate();
    }
    ht_start();
    struct run run = {.listener = -1};
    struct block block;
    unsetenv("HAKMEM_NAME_MAPPINGS");
    serve(&run, 0);
    HT_CHECK(asked_count == 0, "without the option the kernel is asked for %zu names", asked_count);
    close(run.blocks[0]);

    setenv("HAKMEM_NAME_MAPPINGS", "1", 1);
    serve(&run, 0);
    size_t blocks = 0;
    while (read(run.blocks[0], &block, sizeof block) == sizeof block) {
        HT_CHECK(has_name(block), "%zu bytes at %p have no name", block.bytes, block.start);
        blocks++;
    }
    HT_CHECK(blocks > 50, "there are %zu blocks only", blocks);
    close(run.blocks[0]);

    serve(&run, -EINVAL);
    HT_CHECK(asked_count == 1, "a kernel without names is asked %zu times", asked_count);
    return 0;
}
