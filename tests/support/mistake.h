// mistake.h -- reads the message of a program that makes a mistake and dies of it by a signal.
#ifndef HAK_TESTS_SUPPORT_MISTAKE_H
#define HAK_TESTS_SUPPORT_MISTAKE_H

#include "promise.h"

#include <signal.h>
#include <sys/resource.h>

enum { HT_SAID_BYTES = 8192 };

// What a child that makes a mistake prints on stderr before it dies of `signal_number`.
static inline const char *ht_said_by(void (*mistake)(void), int signal_number)
{
    static char text[HT_SAID_BYTES];
    int ends[2];
    size_t length = 0;
    int status = 0;
    HT_CHECK(pipe(ends) == 0, "no pipe: errno %d", errno);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(ends[1], STDERR_FILENO);
        mistake();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + length, sizeof text - 1 - length)) > 0;) {
        length += (size_t)got;
    }
    close(ends[0]);
    text[length] = '\0';
    HT_CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child: errno %d", errno);
    HT_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal_number,
             "status %x instead of signal %d: '%s'",
             (unsigned)status,
             signal_number,
             text);
    return text;
}

static inline void ht_expect_said(const char *text, const char *part)
{
    HT_CHECK(strstr(text, part) != NULL, "'%s' is not in: %s", part, text);
}

static inline void ht_touch(char *address)
{
    *(volatile char *)ht_hide(address) = 1;
}

#endif
