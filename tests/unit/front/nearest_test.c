// The name that a user may have meant: one wrong letter is near, another word is not.
#include "front/nearest.h"

#include "../unit.h"

static const char *nearest_of(const char *wanted)
{
    static const char *const names[] = {"decay_ms", "dirty_bytes", "parcel_bytes", "check"};
    struct hak_nearest nearest = hak_nearest_start(wanted, strlen(wanted));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hak_nearest_try(&nearest, names[i]);
    }
    return nearest.name != NULL ? nearest.name : "";
}

int main(void)
{
    UNIT_CHECK(strcmp(nearest_of("DEKAY_MS"), "decay_ms") == 0);        // two letters exchanged
    UNIT_CHECK(strcmp(nearest_of("dcay_ms"), "decay_ms") == 0);         // one letter left out
    UNIT_CHECK(strcmp(nearest_of("dirrty_bytes"), "dirty_bytes") == 0); // one letter inserted
    UNIT_CHECK(strcmp(nearest_of("parcle_bytes"), "parcel_bytes") == 0);
    UNIT_CHECK(strcmp(nearest_of("chek"), "check") == 0);
    UNIT_CHECK(strcmp(nearest_of("decay_ms"), "decay_ms") == 0);
    UNIT_CHECK(strcmp(nearest_of("huge_pages"), "") == 0);
    UNIT_CHECK(strcmp(nearest_of(""), "") == 0);
    UNIT_CHECK(strcmp(nearest_of("a_name_that_is_longer_than_any_option_could_be"), "") == 0);
    return 0;
}
