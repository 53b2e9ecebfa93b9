// native only
// env: HAKMEM_TRACE_FAILURES=1
// with features
// The record of each refused allocation has its size, its call site, and the limit of the system that was
// exhausted.
#include "../support/memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

static int kept_stderr;
static int trace;

static void trace_begin(void)
{
    kept_stderr = dup(STDERR_FILENO);
    trace = memfd_create("trace", 0);
    HT_CHECK(trace >= 0 && dup2(trace, STDERR_FILENO) >= 0, "no file for the trace");
}

// What was written since the last call.
static const char *trace_end(void)
{
    static char text[8192];
    dup2(kept_stderr, STDERR_FILENO);
    const ssize_t length = pread(trace, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    close(trace);
    close(kept_stderr);
    return text;
}

// The call's return address is in this program, not in the library.
static void check_site(const char *text)
{
    Dl_info here;
    Dl_info there;
    const char *to = strstr(text, " to 0x");
    HT_CHECK(to != NULL, "no call site: %s", text);
    const uintptr_t site = (uintptr_t)strtoull(to + strlen(" to "), NULL, 16);
    dladdr(__extension__(void *) check_site, &here);
    HT_CHECK(dladdr((void *)site, &there) != 0 && here.dli_fbase == there.dli_fbase,
             "the call site is not in the program: %s",
             text);
}

static void expect(const void *block, const char *what, const char *cause)
{
    const char *text = trace_end();
    HT_CHECK(block == NULL, "%s succeeded", what);
    HT_CHECK(strstr(text, cause) != NULL, "%s: '%s' is not in: %s", what, cause, text);
    check_site(text);
}

static void limit(ht_resource resource, size_t bytes)
{
    struct rlimit limit;
    getrlimit(resource, &limit);
    limit.rlim_cur = bytes != 0 ? bytes : limit.rlim_max;
    HT_CHECK(setrlimit(resource, &limit) == 0, "setrlimit failed");
}

static void limits_of_the_process(void)
{
    limit(RLIMIT_AS, HT_GIB);
    trace_begin();
    void *block = malloc(2 * HT_GIB);
    expect(block, "malloc beyond RLIMIT_AS", "RLIMIT_AS is 1073741824, ");
    trace_begin();
    block = realloc(ht_hide(malloc(100)), 2 * HT_GIB);
    expect(block, "realloc beyond RLIMIT_AS", "RLIMIT_AS is 1073741824, ");
    limit(RLIMIT_AS, 0);
    limit(RLIMIT_DATA, HT_GIB);
    trace_begin();
    block = calloc(2, HT_GIB);
    expect(block, "calloc beyond RLIMIT_DATA", "RLIMIT_DATA is 1073741824, ");
    limit(RLIMIT_DATA, 0);
}

// What the process has already counts, too.
static void a_limit_that_is_nearly_used_up(void)
{
    const void *other = mmap(NULL, 600 * HT_MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(other != MAP_FAILED, "no addresses");
    limit(RLIMIT_AS, HT_GIB);
    trace_begin();
    void *block = malloc(600 * HT_MIB);
    expect(block, "malloc beyond what RLIMIT_AS leaves", "RLIMIT_AS is 1073741824, ");
    limit(RLIMIT_AS, 0);
}

static void *in_the_second_thread(void *unused)
{
    char first = '1';
    while (first != '0') { // "0 0 0 …": the first thread has no memory any more
        const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        HT_CHECK(file >= 0 && read(file, &first, 1) == 1, "no statm");
        close(file);
        usleep(1000);
    }
    a_limit_that_is_nearly_used_up();
    _exit(0);
    return unused;
}

// /proc/self is then the folder of a thread that has ended.
static void when_the_first_thread_has_ended(void)
{
    const pid_t child = fork();
    if (child == 0) {
        pthread_t second;
        HT_CHECK(pthread_create(&second, NULL, in_the_second_thread, NULL) == 0, "no thread");
        pthread_exit(NULL);
    }
    ht_wait_child(child, "the child whose first thread has ended");
}

static void what_is_too_much(void)
{
    trace_begin();
    void *block = malloc(ht_hide_size(SIZE_MAX - 100));
    expect(block, "malloc of nearly all", ": Threshold\n");
    trace_begin();
    block = malloc(ht_hide_size((size_t)1 << 60));
    expect(block, "malloc of 1 EiB", "MapFail, the kernel gave no ");
}

// Neighbouring mappings with different rights cannot be merged.
static void no_more_mappings(void)
{
    enum { MOST = 1 << 18, PAGES = 1 << 20 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *start =
        mmap(NULL, PAGES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    HT_CHECK(start != MAP_FAILED, "no addresses");
    size_t count = 0;
    while (count < MOST && mprotect(start + 2 * count * page, page, PROT_READ) == 0) {
        count++;
    }
    if (count == MOST) {
        HT_SKIP("the system allows more mappings than this test makes");
    }
    trace_begin();
    void *blocks[4096]; // mapped memory is used up first
    void *block = NULL;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        block = blocks[i] = malloc(64 * HT_MIB);
        if (block == NULL) {
            break;
        }
    }
    munmap(start, PAGES * page);
    expect(block, "malloc without mappings", "vm.max_map_count is ");
}

int main(void)
{
    ht_start();
    limits_of_the_process();
    when_the_first_thread_has_ended();
    what_is_too_much();
    no_more_mappings();
    return 0;
}
