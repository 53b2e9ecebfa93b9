// What the kernel refused, seen by the thread that asked; and what it would refuse whatever is given back.
#include "os/refusal.h"

#include <errno.h>
#include <pthread.h>

#include "../unit.h"
#include "base/bits.h"

// Where the kernel overcommits without a limit, or counts, a request above memory and swap may succeed once memory goes back.
static void what_no_limit_allows_is_final(void)
{
    const size_t most = HAK_GIB(3); // memory and swap
    for (unsigned is_guessing = 0; is_guessing < 2; is_guessing++) {
        hak_fake.is_guessing = is_guessing;
        UNIT_CHECK(!hak_refusal_is_final(most));
        UNIT_EQUAL(hak_refusal_is_final(most + 1), is_guessing);
        UNIT_CHECK(hak_refusal_is_final((size_t)1 << 50));
    }
}

enum { OTHERS = 1000 };

static void *be_refused(void *unused)
{
    const uint64_t start = hak_refusal_mark();
    UNIT_EQUAL(hak_refusal_since(start).error, 0);
    for (unsigned i = 0; i < OTHERS; i++) {
        hak_refusal_note(EAGAIN, i);
    }
    UNIT_EQUAL(hak_refusal_since(start).error, EAGAIN);
    return unused;
}

static void in_another_thread(void)
{
    pthread_t thread;
    UNIT_EQUAL(pthread_create(&thread, NULL, be_refused, NULL), 0);
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
}

// However many refusals other threads have.
static void a_thread_finds_its_own_refusal(void)
{
    const uint64_t start = hak_refusal_mark();
    in_another_thread();
    UNIT_EQUAL(hak_refusal_since(start).error, 0);
    hak_refusal_note(ENOMEM, 100);
    hak_refusal_note(ENOMEM, 200);
    in_another_thread();
    UNIT_EQUAL(hak_refusal_since(start).error, ENOMEM);
    UNIT_EQUAL(hak_refusal_since(start).bytes, 200);
    UNIT_EQUAL(hak_refusal_since(hak_refusal_mark()).error, 0);
}

int main(void)
{
    hak_fake.memory_bytes = HAK_GIB(2);
    hak_fake.swap_bytes = HAK_GIB(1);
    what_no_limit_allows_is_final();
    a_thread_finds_its_own_refusal();
    return 0;
}
