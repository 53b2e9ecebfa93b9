// line_table.c -- see line_table.h.
#include "python/line_table.h"

// The forms of an entry. Below LINE_SAME_END the line stays the same; from there to WITHOUT_COLUMNS it grows by 0, 1 or 2.
enum { LINE_SAME_END = 10, WITHOUT_COLUMNS = 13, LONG = 14, OF_NO_LINE = 15 };

// Six bits in each byte, the lowest first; another byte follows if the bit above them is set. The lowest bit of all is the sign.
static int64_t signed_number(const uint8_t *table, size_t bytes, size_t at)
{
    uint64_t value = 0;
    for (unsigned shift = 0; at < bytes && shift < 36; shift += 6) {
        value |= (uint64_t)(table[at] & 63) << shift;
        if ((table[at++] & 64) == 0) {
            break;
        }
    }
    return (value & 1) != 0 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

uint32_t hak_line_table_line(const uint8_t *table, size_t bytes, uint32_t first, uint64_t unit)
{
    int64_t line = first;
    uint64_t end = 0;
    for (size_t at = 0; at < bytes;) {
        const unsigned how = table[at] >> 3 & 15;
        end += (table[at] & 7U) + 1;
        at++;
        if (how == WITHOUT_COLUMNS || how == LONG) {
            line += signed_number(table, bytes, at);
        } else if (how >= LINE_SAME_END && how < WITHOUT_COLUMNS) {
            line += how - LINE_SAME_END;
        }
        if (unit < end) {
            return how == OF_NO_LINE || line < 0 || line > UINT32_MAX ? 0 : (uint32_t)line;
        }
        while (at < bytes && (table[at] & 128) == 0) {
            at++;
        }
    }
    return 0;
}
