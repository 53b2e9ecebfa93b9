// not secure: large blocks are unmapped at once, so nothing waits
// native only
// preload only
// with features
// With option pressure, free memory that could wait for an hour goes back when the file named by MEMORY_PRESSURE_WATCH signals:
// a named pipe, a socket or one of the kernel's files. First, the value of MEMORY_PRESSURE_WRITE is written to it.
#include "../support/memory.h"
#include "../support/promise.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

// As systemd does: signal when tasks wait for 200 of 2,000 ms.
#define REQUEST_BASE64 "c29tZSAyMDAwMDAgMjAwMDAwMAA="
#define REQUEST        "some 200000 2000000"

enum { BLOCKS = 240, BLOCK_BYTES = 100 * 1024, TIMEOUT_MS = 20000, WAITS_KIB = 24 * 1024 };
enum { FILES_FIRST = 256, FILES_END = 272 };

static char folder[] = "/tmp/hakmem-manager-XXXXXX";
static char watched[64]; // in the folder

// Has hakmem opened the file at this path?
static bool is_open(const char *path)
{
    struct stat wanted;
    struct stat status;
    HT_CHECK(stat(path, &wanted) == 0, "%s is not there", path);
    for (int file = FILES_FIRST; file < FILES_END; file++) {
        if (fstat(file, &status) == 0 && status.st_ino == wanted.st_ino &&
            status.st_dev == wanted.st_dev) {
            return true;
        }
    }
    return false;
}

// The program that runs as a service: a byte on stdout says that memory waits; then it expects that memory goes back, or stays, or
// only that the file is open.
static int serve(const char *expected)
{
    static void *blocks[BLOCKS];
    ht_fill(blocks, BLOCKS, BLOCK_BYTES);
    ht_free_all(blocks, BLOCKS);
    HT_CHECK(ht_rss_kib() >= WAITS_KIB, "%ld KiB resident: nothing waits", ht_rss_kib());
    HT_CHECK(write(STDOUT_FILENO, "r", 1) == 1, "cannot tell that memory waits");
    if (strcmp(expected, "goes") == 0) {
        ht_expect_rss(WAITS_KIB / 2, TIMEOUT_MS, "after the manager's word");
        return 0;
    }
    HT_CHECK(is_open(getenv("MEMORY_PRESSURE_WATCH")), "the file is not open");
    if (strcmp(expected, "is open") == 0) {
        return 0;
    }
    usleep(800 * 1000);
    HT_CHECK(ht_rss_kib() >= WAITS_KIB, "%ld KiB resident, and nobody has asked", ht_rss_kib());
    return 0;
}

static void set(const char *name, const char *value)
{
    HT_CHECK(setenv(name, value, 1) == 0, "no memory for the test itself");
}

// Returns when its memory waits.
static pid_t start_service(const char *expected, const char *path, bool has_request)
{
    int ready[2];
    char byte;
    HT_CHECK(pipe2(ready, O_CLOEXEC) == 0, "no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ready[1], STDOUT_FILENO);
        set("HAKMEM_PRESSURE", "always");
        set("HAKMEM_DECAY_MS", "3600000");
        set("HAKMEM_DIRTY_BYTES", "1G");
        set("MEMORY_PRESSURE_WATCH", path);
        if (has_request) {
            set("MEMORY_PRESSURE_WRITE", REQUEST_BASE64);
        }
        execl("/proc/self/exe", "service", expected, (char *)NULL);
        _exit(1);
    }
    close(ready[1]);
    HT_CHECK(read(ready[0], &byte, 1) == 1, "the service has ended");
    close(ready[0]);
    return child;
}

static void expect_success(pid_t child, const char *what)
{
    int status;
    HT_CHECK(waitpid(child, &status, 0) == child, "no child");
    HT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %d", what, status);
}

static void say(int file)
{
    HT_CHECK(write(file, "x", 1) == 1, "nobody watches");
    close(file);
}

static void check_request(int file)
{
    char text[64];
    HT_CHECK(read(file, text, sizeof text) == sizeof REQUEST &&
                 memcmp(text, REQUEST, sizeof REQUEST) == 0,
             "another request");
}

static void a_pipe(void)
{
    HT_CHECK(mkfifo(watched, 0600) == 0, "no named pipe");
    pid_t child = start_service("goes", watched, false);
    say(open(watched, O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    expect_success(child, "a named pipe");
    unlink(watched);
}

static void a_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, watched, strlen(watched));
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HT_CHECK(bind(file, (struct sockaddr *)&address, sizeof address) == 0 && listen(file, 1) == 0,
             "no socket");
    pid_t child = start_service("goes", watched, true);
    int service = accept4(file, NULL, NULL, SOCK_CLOEXEC);
    close(file);
    check_request(service);
    HT_CHECK(write(service, "x", 1) == 1, "nobody watches");
    expect_success(child, "a socket");
    close(service);
    unlink(watched);
}

// A file that never signals.
static void a_file(void)
{
    int file = open(watched, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    pid_t child = start_service("stays", watched, true);
    check_request(file);
    close(file);
    expect_success(child, "a file");
    unlink(watched);
}

// The kernel accepts the request. To see it signal, the machine would have to wait for memory; that it does not signal cannot be
// tested either, as other tests run in small control groups meanwhile.
static void a_file_of_the_kernel(void)
{
    static const char pressure[] = "/proc/pressure/memory";
    if (access(pressure, W_OK) == 0) {
        expect_success(start_service("is open", pressure, true), pressure);
    }
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1) {
        return serve(arguments[1]);
    }
    signal(SIGPIPE, SIG_IGN);
    HT_CHECK(mkdtemp(folder) != NULL, "no folder");
    snprintf(watched, sizeof watched, "%s/watched", folder);
    a_pipe();
    a_socket();
    a_file();
    a_file_of_the_kernel();
    rmdir(folder);
    return 0;
}
