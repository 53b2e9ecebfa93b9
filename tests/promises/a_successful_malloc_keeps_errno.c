// native only
// Also if malloc tries to start a thread of ours, and cannot.
#include "../support/promise.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *unused)
{
    errno = 0;
    free(ht_hide(malloc(100)));
    HT_CHECK(errno == 0, "errno is %d", errno);
    return unused;
}

int main(void)
{
    ht_start();
    free(ht_hide(malloc(100)));
    const uid_t user = 65000 + (uid_t)(getpid() % 500); // no other processes count
    const struct rlimit two = {2, 2};
    if (getuid() != 0 || setrlimit(RLIMIT_NPROC, &two) != 0 || setuid(user) != 0) {
        HT_SKIP("not root");
    }
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, work, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
    return 0;
}
