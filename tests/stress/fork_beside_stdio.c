// soak in: core
// args: 1 120 1
// secure too
// glibc only: a child of musl's waits for ever for a file that another thread had locked
//
// One thread forks, while others read long lines, flush all files, open and close some, run programs, load libraries, and look up a
// user. Then threads that wait for the allocator's locks hold the C library's, and fork waits for both. The
// children use files, too.
#include "../support/stress.h"

#include <pwd.h>
#include <sys/mman.h>

enum { LINES = 20, LINE_BYTES = 200000, TIMEOUT_S = 40 };

static atomic_bool is_over;
static atomic_size_t lines_read;

static FILE *file_of_lines(void)
{
    FILE *file = fdopen(memfd_create("lines", MFD_CLOEXEC), "w+");
    HT_CHECK(file != NULL, "no file: errno %d", errno);
    for (size_t i = 0; i < LINES; i++) {
        for (size_t j = 0; j < LINE_BYTES / LINES * (i + 1); j++) {
            putc('x', file);
        }
        putc('\n', file);
    }
    rewind(file);
    return file;
}

static void read_lines(FILE *file)
{
    ssize_t length;
    do {
        char *line = NULL; // it grows while the file is locked
        size_t room = 0;
        length = getline(&line, &room, file);
        atomic_fetch_add(&lines_read, 1);
        free(line);
    } while (length > 0);
    rewind(file);
}

static void read_for_ever(void)
{
    FILE *file = file_of_lines();
    while (!atomic_load(&is_over)) {
        read_lines(file);
    }
    fclose(file);
}

static void flush_for_ever(void)
{
    while (!atomic_load(&is_over)) {
        fflush(NULL);
        free(malloc(30000));
    }
}

static void open_for_ever(void)
{
    while (!atomic_load(&is_over)) {
        FILE *file = fopen("/dev/null", "r+");
        HT_CHECK(file != NULL, "no file: errno %d", errno);
        fputs("something", file);
        fclose(file);
    }
}

static void run_for_ever(void)
{
    while (!atomic_load(&is_over)) {
        FILE *output = popen("exit 3", "r");
        HT_CHECK(output != NULL, "popen: errno %d", errno);
        HT_CHECK(pclose(output) == 3 << 8, "pclose");
    }
}

static void load_for_ever(void)
{
    while (!atomic_load(&is_over)) {
        void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        HT_CHECK(library == NULL || dlsym(library, "cos") != NULL, "no cos");
        if (library != NULL) {
            dlclose(library);
        }
    }
}

static void ask_for_ever(void)
{
    struct passwd one;
    struct passwd *found;
    char text[4000];
    while (!atomic_load(&is_over)) {
        HT_CHECK(getpwuid_r(0, &one, text, sizeof text, &found) != ERANGE, "who is 0?");
    }
}

static void (*const ways[])(void) = {
    read_for_ever, flush_for_ever, open_for_ever, run_for_ever, load_for_ever, ask_for_ever};
enum { WAYS = sizeof ways / sizeof *ways, THREADS = 3 };

static void *run(void *way)
{
    (*(void (*const *)(void))way)();
    return NULL;
}

_Noreturn static void live_as_child(void)
{
    alarm(TIMEOUT_S);
    FILE *file = file_of_lines();
    read_lines(file);
    fflush(NULL);
    fclose(file);
    _exit(0);
}

// Beside a thread that reads, one that flushes, and one that does the given kind of work.
static void fork_beside(size_t way, size_t forks)
{
    const size_t chosen[THREADS] = {0, 1, way};
    pthread_t threads[THREADS];
    atomic_store(&is_over, false);
    for (size_t i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)&ways[chosen[i]]) == 0,
                 "no thread");
    }
    for (size_t i = 0; i < forks; i++) {
        alarm(TIMEOUT_S); // ends us, and the test
        const pid_t child = fork();
        if (child == 0) {
            live_as_child();
        }
        ht_wait_child(child, "a child");
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
#ifdef HAK_TESTS_SUPPORT_HAK_NAMES_H
    HT_SKIP("the sanitizer serves the C library");
#endif
    const struct ht_stress stress = ht_stress_start(argc, argv);
    for (size_t way = 0; way < WAYS; way++) {
        fork_beside(way, stress.operations / WAYS);
    }
    printf("%zu forks, %zu lines\n", stress.operations, atomic_load(&lines_read));
    return 0;
}
