// args: 250 1
// native only
//
// Programs start with environments of random options, good, damaged and meaningless, and with files of options:
// each starts, allocates and ends as usual, and every line that it prints is ours and complete.
//
// Arguments: <starts> <seed>; seed 0 takes one from the clock.
#include "../support/crowd.h"
#include "../support/nameless.h"

#include <fcntl.h>

enum { VARIABLES = 4, TEXT_BYTES = 600 };

static const char *const names[] = {"OPTIONS",
                                    "CONFIG",
                                    "MODE",
                                    "CHECK",
                                    "DECAY_MS",
                                    "DIRTY_BYTES",
                                    "MAGAZINE_BYTES",
                                    "PURGER",
                                    "THP",
                                    "FREE_POLICY",
                                    "STATS",
                                    "TINY_POOL",
                                    "LIMIT_SOFT",
                                    "PREWARM_TLS",
                                    "DETERMINISTIC",
                                    "DEBUG_TIMING"};
static const char *const pieces[] = {"0",
                                     "1",
                                     "on",
                                     "off",
                                     "minimal",
                                     "throughput",
                                     "memory",
                                     "balanced",
                                     "64K",
                                     "1G",
                                     "18446744073709551615",
                                     "99999999999999999999",
                                     "-1",
                                     ",",
                                     "=",
                                     ";",
                                     " ",
                                     "\n",
                                     "#",
                                     "decay_ms",
                                     "check",
                                     "purger",
                                     "lazy",
                                     "never",
                                     "HAKMEM_CHECK",
                                     "\"",
                                     "%s%n",
                                     "\xff",
                                     "\x01",
                                     "../..",
                                     "/dev/null",
                                     "0x10",
                                     "1KK",
                                     "K",
                                     ""};

static char file[HT_NAMELESS_PATH];

static const char *pick(struct ht_random *random, const char *const *from, size_t count)
{
    return from[ht_random_below(random, count)];
}

static void random_text(struct ht_random *random, char *text)
{
    size_t length = 0;
    for (size_t i = ht_random_below(random, 9); i > 0; i--) {
        const char *piece = pick(random, pieces, sizeof pieces / sizeof *pieces);
        length += (size_t)snprintf(text + length, TEXT_BYTES - length, "%s", piece);
    }
    text[length] = '\0';
    if (length > 0 && ht_random_below(random, 4) == 0) {
        text[ht_random_below(random, length)] = (char)(1 + ht_random_below(random, 255));
    }
}

static void write_file(struct ht_random *random)
{
    char text[TEXT_BYTES];
    const int to = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
    HT_CHECK(to >= 0, "no file: errno %d", errno);
    for (size_t lines = ht_random_below(random, 6); lines > 0; lines--) {
        random_text(random, text);
        HT_CHECK(dprintf(to, "%s=%s\n", pick(random, names, sizeof names / sizeof *names), text) >
                     0,
                 "nothing written");
    }
    close(to);
}

static void arrange(struct ht_random *random)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        char name[80];
        char text[TEXT_BYTES];
        snprintf(name, sizeof name, "HAKMEM_%s", pick(random, names, sizeof names / sizeof *names));
        random_text(random, text);
        setenv(name, text, 1);
    }
    if (ht_random_below(random, 3) == 0) {
        write_file(random);
        setenv("HAKMEM_CONFIG", file, 1);
    }
    unsetenv("HAKMEM_STATS"); // it would write to the file that it names
}

// What the child prints on stderr: nothing, or lines that start with our name.
static void check_lines(int from, uint64_t seed)
{
    char text[16384];
    size_t length = 0;
    for (ssize_t more; (more = read(from, text + length, sizeof text - 1 - length)) > 0;) {
        length += (size_t)more;
    }
    text[length] = '\0';
    HT_CHECK(length == 0 || (strncmp(text, "hakmem: ", 8) == 0 && text[length - 1] == '\n'),
             "seed %llu: it says: %.200s",
             (unsigned long long)seed,
             text);
}

static void start_one(uint64_t seed)
{
    int ends[2];
    HT_CHECK(pipe(ends) == 0, "no pipe");
    pid_t child = fork();
    if (child == 0) {
        struct ht_random random = {seed};
        arrange(&random);
        HT_CHECK(chdir("/proc") == 0,
                 "no /proc"); // some options name files: none can be made there
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "random", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    check_lines(ends[0], seed);
    close(ends[0]);
    int status = 0;
    HT_CHECK(waitpid(child, &status, 0) == child && status == 0,
             "seed %llu: status %x",
             (unsigned long long)seed,
             (unsigned)status);
}

int main(int count, char **arguments)
{
    if (count < 3) {
        struct ht_random random = {1};
        struct ht_slot slots[20] = {{NULL, 0, 0}};
        for (size_t i = 0; i < 400; i++) {
            ht_slot_step(&slots[ht_random_below(&random, 20)], &random, 300000);
        }
        return 0;
    }
    ht_start();
    uint64_t seed = strtoull(arguments[2], NULL, 10);
    seed = seed != 0 ? seed : (uint64_t)ht_now_ms();
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    const int made = ht_nameless_file("", file);
    for (size_t i = 0; i < strtoul(arguments[1], NULL, 10); i++) {
        start_one(seed * 1000003 + i);
    }
    close(made);
    return 0;
}
