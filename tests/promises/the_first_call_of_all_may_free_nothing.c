// static too
//
// The first call of all may be free(NULL), in a constructor that runs before all others: glibc 2.44 itself does that.
#include "../support/promise.h"

static int kept;
static void *block;

static void free_nothing(void)
{
    errno = ENOTTY;
    free(ht_hide(NULL));
    kept = errno;
    block = malloc(100);
}

// For priorities up to 100, which are the system's, the compiler would warn.
__attribute__((used, section(".init_array.00090"))) static void (*earliest)(void) = free_nothing;

int main(void)
{
    ht_start();
    HT_CHECK(kept == ENOTTY, "free(NULL) left errno %d, or was not called", kept);
    HT_CHECK(block != NULL, "no memory afterwards");
    free(block);
    return 0;
}
