// number.c -- see number.h.
#include "base/number.h"

#include <string.h>

static unsigned digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0');
    }
    const char small = (char)(c | 0x20);
    return small >= 'a' && small <= 'f' ? (unsigned)(small - 'a') + 10 : 16;
}

bool hak_number_take(const char **text, unsigned base, uint64_t *number)
{
    const char *c = *text;
    uint64_t value = 0;
    for (; digit_of(*c) < base; c++) {
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit_of(*c), &value)) {
            return false;
        }
    }
    if (c == *text) {
        return false;
    }
    *text = c;
    *number = value;
    return true;
}

uint64_t hak_number_behind(const char *text, const char *name, uint64_t otherwise)
{
    const char *found = strstr(text, name);
    uint64_t number = otherwise;
    if (found != NULL) {
        found += strlen(name);
        found += strspn(found, " \t:");
        hak_number_take(&found, 10, &number);
    }
    return number;
}
