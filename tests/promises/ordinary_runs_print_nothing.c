// preload only
// native only
// A working program prints its own output, and the library adds nothing: not
// at start, at exit, when memory is exhausted, in threads or in children.
#include "../support/promise.h"

#include <pthread.h>
#include <sys/resource.h>

static void *use_heap(void *unused)
{
    for (size_t size = 1; size < 5000000; size *= 3) {
        free(realloc(ht_hide(malloc(size)), size * 2));
    }
    return unused;
}

static int live(void)
{
    use_heap(NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, use_heap, NULL);
    pthread_join(thread, NULL);
    struct rlimit limit = {400 * HT_MIB, 400 * HT_MIB};
    setrlimit(RLIMIT_AS, &limit);
    free(ht_hide(malloc(500 * HT_MIB)));
    free(ht_hide(malloc(ht_hide_size(SIZE_MAX))));
    malloc_trim(0);
    pid_t child = fork();
    use_heap(NULL);
    if (child != 0) {
        waitpid(child, NULL, 0);
    }
    return 0;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1) {
        return live();
    }
    ht_start();
    int ends[2];
    HT_CHECK(pipe(ends) == 0, "pipe failed");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execl("/proc/self/exe", "quiet", "live", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    char text[200] = "";
    ssize_t length = read(ends[0], text, sizeof text - 1);
    HT_CHECK(length <= 0, "it printed '%s'", text);
    ht_wait_child(child, "the quiet program");
    return 0;
}
