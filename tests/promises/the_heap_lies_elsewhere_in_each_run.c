// preload only
// native only
//
// The heap's address cannot be predicted from another run of the program; but it is never where programs want a heap of their own,
// as CLISP does from 16 to 32 TiB.
#include "../support/promise.h"

enum { SUPER_LOG2 = 22, RUNS = 40 };

// The superslab of a block of another run.
static uintptr_t place_in_another_run(const char *program)
{
    int ends[2];
    uintptr_t place = 0;
    HT_CHECK(pipe(ends) == 0, "no pipe: errno %d", errno);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(program, program, "tell", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    HT_CHECK(read(ends[0], &place, sizeof place) == sizeof place, "the other run said nothing");
    ht_wait_child(child, "the other run");
    close(ends[0]);
    return place >> SUPER_LOG2;
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1) {
        const uintptr_t block = (uintptr_t)ht_hide(malloc(100));
        return write(STDOUT_FILENO, &block, sizeof block) == sizeof block ? 0 : 1;
    }
    // One of some million places.
    const uintptr_t first = place_in_another_run(arguments[0]);
    HT_CHECK(first != place_in_another_run(arguments[0]), "both lie in superslab %zx", first);
    for (unsigned run = 0; run < RUNS; run++) {
        const uintptr_t tib = place_in_another_run(arguments[0]) >> (40 - SUPER_LOG2);
        HT_CHECK(tib < 16 || tib >= 32, "in run %u the heap lies at %zu TiB", run, tib);
    }
    return 0;
}
