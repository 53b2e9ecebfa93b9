// preload only
// native only
// with features
// With HAKMEM_STATS=1 a table is printed on stderr when the program ends; with the name of a file, each process appends a line
// of JSON to it. A relative name is relative to the folder in which the program starts, wherever it goes.
#include "../support/nameless.h"

enum { BLOCKS = 1000, BYTES = 200 };

static int use_memory(void)
{
    HT_CHECK(chdir("/") == 0, "no way to the root");
    for (int i = 0; i < BLOCKS; i++) {
        HT_CHECK(malloc(BYTES) != NULL, "no block");
    }
    return 0;
}

static void run(const char *setting, int errors)
{
    pid_t child = fork();
    if (child == 0) {
        dup2(errors, STDERR_FILENO);
        setenv("HAKMEM_STATS", setting, 1);
        execl("/proc/self/exe", "statistics", "use", (char *)NULL);
        _exit(1);
    }
    ht_wait_child(child, "the program that uses memory");
}

static size_t read_all(int file, char *text, size_t bytes)
{
    size_t length = 0;
    ssize_t more;
    while ((more = pread(file, text + length, bytes - 1 - length, (off_t)length)) > 0) {
        length += (size_t)more;
    }
    text[length] = '\0';
    return length;
}

static void check_relative(const char *path, int file, char *text, size_t bytes)
{
    static const char proc[] = "/proc/";
    const int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    HT_CHECK(folder >= 0 && ftruncate(file, 0) == 0, "cannot be emptied");
    HT_CHECK(chdir(proc) == 0, "no /proc");
    run(path + strlen(proc), STDERR_FILENO);
    HT_CHECK(fchdir(folder) == 0, "no way back");
    close(folder);
    const size_t length = read_all(file, text, bytes);
    HT_CHECK(length > 0 && text[0] == '{', "nothing where the program started: '%.80s'", text);
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1) {
        return use_memory();
    }
    ht_start();
    static char text[65536];
    char path[HT_NAMELESS_PATH];
    const int file = ht_nameless_file("", path);
    run("1", file);
    read_all(file, text, sizeof text);
    HT_CHECK(strncmp(text, "hakmem ", 7) == 0 && strstr(text, "live_blocks") != NULL,
             "stderr has '%.60s'",
             text);
    HT_CHECK(ftruncate(file, 0) == 0, "cannot be emptied");
    run(path, STDERR_FILENO);
    run(path, STDERR_FILENO);
    const size_t length = read_all(file, text, sizeof text);
    const char *second = strchr(text, '\n');
    HT_CHECK(second != NULL && second[1] == '{' && text[length - 1] == '\n',
             "not two lines: '%s'",
             text);
    const char *of_class = strstr(text, "{\"bytes\":208,");
    HT_CHECK(of_class != NULL, "the class is not there: '%s'", text);
    const char *live = strstr(of_class, "\"live_blocks\":");
    HT_CHECK(live != NULL && atol(live + 14) >= BLOCKS, "in '%.200s'", of_class);
    check_relative(path, file, text, sizeof text);
    HT_CHECK(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0, "cannot be emptied");
    run("/proc/no/such/folder", file); // stderr then has the reason
    read_all(file, text, sizeof text);
    HT_CHECK(strcmp(text, "hakmem: /proc/no/such/folder cannot be written to\n") == 0,
             "stderr has '%.60s'",
             text);
    return 0;
}
