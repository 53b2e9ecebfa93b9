// What a service manager's variables ask for, and how long each request holds.
#include "limits/manager.h"

#include "../unit.h"
#include "front/environment.h"

#define PATH "/sys/fs/cgroup/app/memory.pressure"

static const uint64_t second = 1000000000;

static void start(char *watch, char *write)
{
    char *variables[] = {(char *)"MEMORY_PRESSURE_WATCHED=/no", watch, write, NULL};
    hak_fake.printed_bytes = 0;
    hak_fake.request_bytes = 0;
    hak_environment_read(variables);
    hak_manager_start();
    hak_environment_read((char *[]){NULL});
}

static void nobody_decides_without_a_manager(void)
{
    start(NULL, NULL);
    UNIT_CHECK(!hak_manager_decides());
    start((char *)"MEMORY_PRESSURE_WATCH=", (char *)"MEMORY_PRESSURE_WRITE=eA==");
    UNIT_CHECK(!hak_manager_decides());
    UNIT_EQUAL(hak_fake.printed_bytes, 0);
}

static void what_cannot_be_watched_is_said(void)
{
    start((char *)"MEMORY_PRESSURE_WATCH=" PATH, NULL);
    UNIT_CHECK(!hak_manager_decides());
    UNIT_CHECK(strstr(hak_fake.printed, PATH " cannot be watched\n") != NULL);
}

static void a_request_that_is_no_base64_is_not_sent(void)
{
    static const char *const bad[] = {
        "MEMORY_PRESSURE_WRITE=c29t ZSA", "MEMORY_PRESSURE_WRITE=c2=9", "MEMORY_PRESSURE_WRITE=-_"};
    hak_fake.event_path = PATH;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        start((char *)"MEMORY_PRESSURE_WATCH=" PATH, (char *)bad[i]);
        UNIT_CHECK(!hak_manager_decides());
        UNIT_CHECK(strstr(hak_fake.printed, "is not Base64") != NULL);
    }
}

static void expect_request(const char *text, const char *bytes, size_t length)
{
    char variable[64] = "MEMORY_PRESSURE_WRITE=";
    strcat(variable, text);
    start((char *)"MEMORY_PRESSURE_WATCH=" PATH, variable);
    UNIT_CHECK(hak_manager_decides());
    UNIT_EQUAL(hak_fake.request_bytes, length);
    UNIT_CHECK(memcmp(hak_fake.request, bytes, length) == 0);
}

static void a_request_is_decoded(void)
{
    expect_request("", "", 0);
    expect_request("AA==", "\0", 1);
    expect_request("//8=", "\xff\xff", 2);
    expect_request("+/+/", "\xfb\xff\xbf", 3);
    expect_request("+/+/AA", "\xfb\xff\xbf\0", 4);
    expect_request("c29tZSAyMDAwMDAgMjAwMDAwMAA=", "some 200000 2000000", 20);
}

static void a_word_holds_for_a_second(void)
{
    start((char *)"MEMORY_PRESSURE_WATCH=" PATH, NULL);
    UNIT_CHECK(!hak_manager_says_short(10 * second));
    hak_fake.event_came = true;
    UNIT_CHECK(hak_manager_says_short(11 * second));
    UNIT_CHECK(hak_manager_says_short(12 * second - 1));
    UNIT_CHECK(!hak_manager_says_short(12 * second));
}

// The child shares the parent's file, and neither acts on what the other has heard.
static void a_child_decides_for_itself(void)
{
    hak_fake.process_id++;
    UNIT_CHECK(!hak_manager_decides());
    hak_fake.process_id--;
    UNIT_CHECK(hak_manager_decides());
}

static void nobody_decides_when_the_manager_is_gone(void)
{
    hak_fake.event_ends = true;
    hak_fake.event_came = true;
    UNIT_CHECK(!hak_manager_says_short(20 * second));
    UNIT_CHECK(!hak_manager_decides());
    hak_fake.event_ends = false;
}

static void a_manager_may_want_nobody_to_look(void)
{
    hak_fake.event_came = true;
    start((char *)"MEMORY_PRESSURE_WATCH=/dev/null", (char *)"MEMORY_PRESSURE_WRITE=eA==");
    UNIT_EQUAL(hak_fake.request_bytes, 0);
    UNIT_CHECK(hak_manager_decides());
    UNIT_CHECK(!hak_manager_says_short(30 * second));
}

int main(void)
{
    nobody_decides_without_a_manager();
    what_cannot_be_watched_is_said();
    a_request_that_is_no_base64_is_not_sent();
    a_request_is_decoded();
    a_word_holds_for_a_second();
    a_child_decides_for_itself();
    nobody_decides_when_the_manager_is_gone();
    a_manager_may_want_nobody_to_look();
    return 0;
}
