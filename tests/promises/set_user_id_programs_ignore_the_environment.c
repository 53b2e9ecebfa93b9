// linked only
// native only
// A program that runs with another user's rights takes no option from its environment.
#include "../support/promise.h"

#include <fcntl.h>
#include <hakmem/hakmem.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { NOBODY = 65534, SOME_MS = 123 };

static bool option_is_taken(void)
{
    uint64_t value = 0;
    HT_CHECK(hak_option_get("decay_ms", &value), "no option decay_ms");
    return value == SOME_MS;
}

static void run(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("HAKMEM_DECAY_MS", "123", 1);
        execl(path, "again", "child", (char *)NULL);
        _exit(HT_SKIPPED);
    }
    ht_wait_child(child, path);
}

// A copy of this program that runs as another user.
static void copy_to(const char *path)
{
    const int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    const int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    struct stat file;
    HT_CHECK(from >= 0 && to >= 0 && fstat(from, &file) == 0, "no copy: errno %d", errno);
    for (off_t left = file.st_size; left > 0;) {
        const ssize_t sent = sendfile(to, from, NULL, (size_t)left);
        HT_CHECK(sent > 0, "no copy: errno %d", errno);
        left -= sent;
    }
    if (fchown(to, NOBODY, NOBODY) != 0 || fchmod(to, 04755) != 0) {
        unlink(path);
        HT_SKIP("only the superuser can make a set-user-ID program for another");
    }
    close(to);
    close(from);
}

int main(int count, char **arguments)
{
    (void)arguments;
    ht_start();
    if (count > 1) {
        const bool is_secure = getauxval(AT_SECURE) != 0;
        if (geteuid() == NOBODY && !is_secure) {
            HT_SKIP("no set-user-ID programs on this file system");
        }
        HT_CHECK(option_is_taken() == !is_secure,
                 "HAKMEM_DECAY_MS is %s",
                 is_secure ? "taken with another user's rights" : "not taken");
        return 0;
    }
    run("/proc/self/exe");
    char folder[] = "/tmp/hakmem_set_user_id.XXXXXX";
    HT_CHECK(mkdtemp(folder) != NULL && chmod(folder, 0755) == 0, "no folder: errno %d", errno);
    char path[sizeof folder + 8];
    snprintf(path, sizeof path, "%s/copy", folder);
    copy_to(path);
    pid_t child = fork();
    if (child == 0) {
        run(path);
        _exit(0);
    }
    int status = 0;
    HT_CHECK(waitpid(child, &status, 0) == child, "no child");
    unlink(path);
    rmdir(folder);
    if (WIFEXITED(status) && WEXITSTATUS(status) == HT_SKIPPED) {
        return HT_SKIPPED;
    }
    HT_CHECK(status == 0, "with another user's rights: status %x", (unsigned)status);
    return 0;
}
