// nearest.c -- see nearest.h.
//
// The distance is Levenshtein's: letters put in, left out or exchanged ("Binary codes capable of
// correcting deletions, insertions, and reversals", 1966), counted row by row.
#include "front/nearest.h"

#include <string.h>

enum { LONGEST = 32 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned distance(const char *wanted, size_t length, const char *name)
{
    const size_t name_length = strlen(name);
    unsigned row[LONGEST + 1];
    for (unsigned i = 0; i <= name_length; i++) {
        row[i] = i;
    }
    for (size_t done = 0; done < length; done++) {
        unsigned corner = row[0];
        row[0] = (unsigned)done + 1;
        for (size_t i = 0; i < name_length; i++) {
            const unsigned exchanged = corner + (lower(wanted[done]) != name[i]);
            corner = row[i + 1];
            row[i + 1] = least(exchanged, least(corner, row[i]) + 1);
        }
    }
    return row[name_length];
}

struct hak_nearest hak_nearest_start(const char *wanted, size_t length)
{
    length = length < LONGEST ? length : LONGEST;
    return (struct hak_nearest){wanted, length, NULL, (unsigned)length / 3 + 2};
}

void hak_nearest_try(struct hak_nearest *nearest, const char *name)
{
    if (strlen(name) <= LONGEST) {
        const unsigned found = distance(nearest->wanted, nearest->length, name);
        if (found < nearest->distance) {
            nearest->distance = found;
            nearest->name = name;
        }
    }
}
