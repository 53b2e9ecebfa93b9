// nearest.c -- see nearest.h.
//
// The distance is Levenshtein's: letters put in, left out or exchanged ("Binary codes capable of
// correcting deletions, insertions, and reversals", 1966), counted row by row.
#include "front/nearest.h"

#include <string.h>

#include "base/bits.h"

enum { LONGEST = 32 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t distance(const char *wanted, size_t length, const char *name)
{
    const size_t name_length = strlen(name);
    size_t row[LONGEST + 1];
    for (size_t i = 0; i <= name_length; i++) {
        row[i] = i;
    }
    for (size_t done = 0; done < length; done++) {
        size_t corner = row[0];
        row[0] = done + 1;
        for (size_t i = 0; i < name_length; i++) {
            const size_t exchanged = corner + (lower(wanted[done]) != name[i]);
            corner = row[i + 1];
            row[i + 1] = hak_least(exchanged, hak_least(corner, row[i]) + 1);
        }
    }
    return row[name_length];
}

struct hak_nearest hak_nearest_start(const char *wanted, size_t length)
{
    length = length < LONGEST ? length : LONGEST;
    return (struct hak_nearest){wanted, length, NULL, length / 3 + 2};
}

void hak_nearest_try(struct hak_nearest *nearest, const char *name)
{
    if (strlen(name) <= LONGEST) {
        const size_t found = distance(nearest->wanted, nearest->length, name);
        if (found < nearest->distance) {
            nearest->distance = found;
            nearest->name = name;
        }
    }
}
