// A refused call is not tried for a while, twice as long each time, until it succeeds.
#include "os/pause.h"

#include "../unit.h"

static struct hak_pause pause;

static void refused_for_the_first_time(void)
{
    UNIT_CHECK(!hak_pause_is_on(&pause));
    hak_pause_note(&pause, false);
    UNIT_CHECK(!hak_pause_is_on(&pause));
    hak_pause_note(&pause, true);
    UNIT_CHECK(hak_pause_is_on(&pause));
    hak_fake.now_ns += HAK_PAUSE_LEAST_NS - 1;
    UNIT_CHECK(hak_pause_is_on(&pause));
    hak_fake.now_ns += 1;
    UNIT_CHECK(!hak_pause_is_on(&pause));
}

// How often it is tried in a day, if each tenth of a second wants it.
static void refused_again_and_again(void)
{
    unsigned tries = 0;
    for (unsigned i = 0; i < 864000; i++) {
        hak_fake.now_ns += HAK_PAUSE_LEAST_NS;
        if (!hak_pause_is_on(&pause)) {
            hak_pause_note(&pause, true);
            tries++;
        }
    }
    const unsigned most = 13 + (unsigned)(864000 * HAK_PAUSE_LEAST_NS / HAK_PAUSE_MOST_NS);
    UNIT_CHECK(tries > most / 2 && tries <= most);
}

static void taken(void)
{
    hak_fake.now_ns += HAK_PAUSE_MOST_NS;
    UNIT_CHECK(!hak_pause_is_on(&pause));
    hak_pause_note(&pause, false);
    hak_pause_note(&pause, true);
    hak_fake.now_ns += HAK_PAUSE_LEAST_NS;
    UNIT_CHECK(!hak_pause_is_on(&pause)); // the pauses start short again
}

int main(void)
{
    refused_for_the_first_time();
    refused_again_and_again();
    taken();
    return 0;
}
