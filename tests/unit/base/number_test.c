// Numbers in text: where they end, and what is not a number.
#include "base/number.h"

#include "../unit.h"

static void a_number_ends_where_its_digits_do(void)
{
    const char *text = "4096 kB";
    uint64_t number = 0;
    UNIT_CHECK(hak_number_take(&text, 10, &number));
    UNIT_EQUAL(number, 4096);
    UNIT_CHECK(strcmp(text, " kB") == 0);
    text = "7f00Abg";
    UNIT_CHECK(hak_number_take(&text, 16, &number));
    UNIT_EQUAL(number, 0x7F00AB);
    UNIT_CHECK(strcmp(text, "g") == 0);
}

static void what_is_no_number_changes_nothing(void)
{
    static const char *const none[] = {"", "max", "-1", "a", "18446744073709551616"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        const char *text = none[i];
        uint64_t number = 7;
        UNIT_CHECK(!hak_number_take(&text, 10, &number));
        UNIT_CHECK(text == none[i] && number == 7);
    }
}

static void the_largest_number_is_one(void)
{
    const char *text = "18446744073709551615";
    uint64_t number;
    UNIT_CHECK(hak_number_take(&text, 10, &number) && number == UINT64_MAX);
    text = "ffffffffffffffff";
    UNIT_CHECK(hak_number_take(&text, 16, &number) && number == UINT64_MAX);
    text = "10000000000000000";
    UNIT_CHECK(!hak_number_take(&text, 16, &number));
}

static void a_number_is_found_behind_its_name(void)
{
    static const char status[] = "VmPeak:\t  9 kB\nVmData:\t  12 kB\nLimit: unlimited\n";
    UNIT_EQUAL(hak_number_behind(status, "VmData", 0), 12);
    UNIT_EQUAL(hak_number_behind(status, "Limit", 5), 5);
    UNIT_EQUAL(hak_number_behind(status, "VmLck", 6), 6);
    UNIT_EQUAL(hak_number_behind("65530\n", "", 0), 65530);
}

int main(void)
{
    a_number_ends_where_its_digits_do();
    what_is_no_number_changes_nothing();
    the_largest_number_is_one();
    a_number_is_found_behind_its_name();
    return 0;
}
