// soak in: aarch64 mte
// glibc only: musl has no backtrace
// timeout: 120
// with features
// A misuse ends the program, perhaps in the middle of a change and with locks held. Its handler of SIGABRT may still allocate,
// fork, walk the stack, use files, load a library, start a thread or wait for one, ask for statistics, call exit, or jump out of
// the handler; and other threads do not wait meanwhile either.
#include "../support/memory.h"
#include "../support/mistake.h"

#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>

enum { BLOCKS = 4000, CODE = 6, TIMEOUT_S = 20 };

static void *blocks[BLOCKS];

// A free of a free block: it is found when the magazine is full, at the latest.
static void free_small_twice(void)
{
    ht_fill(blocks, BLOCKS, 100);
    void *block = ht_hide(blocks[0]);
    free(blocks[0]);
    free(blocks[1]);
    free(block);
    ht_free_all(blocks + 2, BLOCKS - 2);
}

static void free_large_twice(void)
{
    char *block = ht_hide(malloc(200000));
    free(block);
    free(ht_hide(block));
}

static void free_interior(void)
{
    ht_fill(blocks, BLOCKS, 1000);
    free(ht_hide((char *)blocks[7] + 32));
    ht_free_all(blocks + 8, BLOCKS - 8);
}

static void *trim(void *nothing)
{
    malloc_trim(0);
    return nothing;
}

// Found in the middle of a sweep over all threads' caches.
static void free_twice_and_trim(void)
{
    ht_fill(blocks, 8, 100);
    void *block = ht_hide(blocks[0]);
    free(blocks[0]);
    free(blocks[1]);
    free(block);
    ht_free_all(blocks + 2, 6);
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, trim, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
    exit(0); // checks the blocks in the magazines
}

static void (*const mistakes[])(void) = {
    free_small_twice, free_large_twice, free_interior, free_twice_and_trim};

static void use_heap(void)
{
    for (size_t i = 0; i < 300; i++) {
        char *text = ht_hide(malloc(200 + i));
        char *zeros = ht_hide(calloc(i + 1, 1000));
        HT_CHECK(text != NULL && zeros != NULL, "nothing to be had");
        memset(text, 'x', 200 + i);
        for (size_t j = 0; j < (i + 1) * 1000; j++) {
            HT_CHECK(zeros[j] == 0, "calloc gave no zeros");
        }
        text = ht_hide(realloc(text, 90000));
        HT_CHECK(text != NULL && text[199 + i] == 'x', "realloc has lost something");
        HT_CHECK(malloc_usable_size(text) >= 90000, "too small");
        char *page = ht_hide(aligned_alloc(16384, 16384));
        HT_CHECK(page != NULL && (uintptr_t)page % 16384 == 0, "not aligned");
        free(page);
        free(zeros);
        free(text);
    }
}

static void report_by_forks(void)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    ht_wait_child(child, "a program");
    child = fork();
    if (child == 0) {
        use_heap();
        _exit(0);
    }
    ht_wait_child(child, "a child");
}

static void report_stack(void)
{
    void *frames[20];
    HT_CHECK(backtrace(frames, 20) > 0, "no frames");
    char **names = backtrace_symbols(frames, 20);
    HT_CHECK(names != NULL, "no names");
    free(names);
}

static void report_by_files(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    FILE *other = fopen("/dev/null", "w");
    HT_CHECK(file != NULL && other != NULL, "no file: errno %d", errno);
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0) {
        fprintf(other, "%s", line);
    }
    free(line);
    fclose(file);
    fclose(other);
    dlopen("libm.so.6", RTLD_NOW);
}

static void *use_heap_in_thread(void *nothing)
{
    use_heap();
    return nothing;
}

static void report_by_new_thread(void)
{
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, use_heap_in_thread, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
}

static sem_t has_to_report;
static sem_t has_reported;

static void *report_when_asked(void *nothing)
{
    void *own[100];
    ht_fill(own, 100, 500);
    sem_wait(&has_to_report);
    ht_free_all(own, 100);
    use_heap();
    report_by_forks();
    ht_free_all(blocks + BLOCKS - 100, 100); // of another thread
    sem_post(&has_reported);
    return nothing;
}

static void report_by_waiting_thread(void)
{
    sem_post(&has_to_report);
    while (sem_wait(&has_reported) != 0) {
    }
}

static void report_statistics(void)
{
    malloc_trim(0);
    HT_CHECK(mallinfo2().arena > 0, "no statistics");
    FILE *file = fopen("/dev/null", "w");
    HT_CHECK(file != NULL && malloc_info(0, file) == 0, "no statistics");
    fclose(file);
}

static void report_by_exit(void)
{
    atexit(use_heap);
    exit(CODE);
}

static sigjmp_buf where_to_go;

static void jump_out(void)
{
    siglongjmp(where_to_go, 1);
}

static void (*const reports[])(void) = {use_heap,
                                        report_by_forks,
                                        report_stack,
                                        report_by_files,
                                        report_by_new_thread,
                                        report_by_waiting_thread,
                                        report_statistics,
                                        report_by_exit,
                                        jump_out};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes, REPORTS = sizeof reports / sizeof *reports };

static void (*report)(void);

static void on_abort(int signal)
{
    (void)signal;
    report();
    _exit(CODE);
}

_Noreturn static void make_mistake(void (*mistake)(void))
{
    pthread_t reporter;
    alarm(TIMEOUT_S);
    signal(SIGABRT, on_abort);
    sem_init(&has_to_report, 0, 0);
    sem_init(&has_reported, 0, 0);
    HT_CHECK(pthread_create(&reporter, NULL, report_when_asked, NULL) == 0, "no thread");
    if (sigsetjmp(where_to_go, 1) == 0) {
        mistake();
        HT_BREAK("the mistake was not found");
    }
    use_heap();
    _exit(CODE);
}

static void expect_report(size_t mistake, size_t number)
{
    int ends[2];
    char text[HT_SAID_BYTES];
    size_t length = 0;
    HT_CHECK(pipe(ends) == 0, "no pipe: errno %d", errno);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        dup2(ends[1], STDERR_FILENO);
        report = reports[number];
        make_mistake(mistakes[mistake]);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + length, sizeof text - 1 - length)) > 0;) {
        length += (size_t)got;
    }
    close(ends[0]);
    text[length] = '\0';
    int status = 0;
    HT_CHECK(waitpid(child, &status, 0) == child, "waitpid: errno %d", errno);
    HT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CODE,
             "mistake %zu, report %zu: status %#x: %s",
             mistake,
             number,
             (unsigned)status,
             text);
    ht_expect_said(text, " free: ");
}

// No handler may jump into another thread's frames: in that case it is the trimming thread that finds the misuse.
static bool is_allowed(size_t mistake, size_t number)
{
    return mistakes[mistake] != free_twice_and_trim || reports[number] != jump_out;
}

int main(void)
{
    ht_start();
    for (size_t mistake = 0; mistake < MISTAKES; mistake++) {
        for (size_t number = 0; number < REPORTS; number++) {
            if (is_allowed(mistake, number)) {
                expect_report(mistake, number);
            }
        }
    }
    return 0;
}
