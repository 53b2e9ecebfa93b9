// A line table as CPython 3.11 and 3.13 write it gives the line of each code unit; damaged ones give any line or none.
#include "python/line_table.h"

#include <stdlib.h>

#include "../unit.h"

// The table of a function with a loop, a call over several lines, an exception and a comprehension; and what co_lines() gives.
static const uint8_t of_311[] = {
    128, 0, 224, 8,   9,   128, 65,  144, 1,   216, 9,   10,  240, 3,   1,   16,  12,  136, 49, 245,
    6,   0, 14,  19,  144, 49,  137, 88,  140, 88,  240, 0,   2,   5,   15,  240, 0,   2,   5,  15,
    136, 1, 216, 8,   9,   136, 81,  137, 6,   136, 1,   144, 1,   151, 8,   146, 8,   216, 12, 13,
    241, 3, 1,   17,  15,  244, 0,   1,   17,  15,  240, 0,   1,   17,  15,  240, 0,   1,   17, 15,
    224, 7, 8,   240, 0,   6,   5,   23,  240, 2,   5,   9,   23,  221, 18,  28,  216, 16,  17, 241,
    3,   1, 19,  19,  244, 0,   1,   19,  19,  240, 0,   1,   13,  19,  248,
};
static const struct {
    unsigned end; // of a range of code bytes
    uint32_t line;
} lines_311[] = {
    {2, 1},
    {8, 3},
    {10, 4},
    {14, 3},
    {48, 6},
    {82, 7},
    {84, 8},
    {102, 7},
    {106, 9},
    {108, 10},
    {120, 11},
    {122, 12},
    {138, 11},
    {140, 0},
};

static const uint8_t of_313[] = {
    128, 0,   224, 8,  9,   128, 65,  144, 1,   216, 9,   10, 240, 3,   1,   16,  12, 136, 49, 244,
    6,   0,   14,  19, 144, 49,  142, 88,  136, 1,   216, 8,  9,   137, 6,   136, 1,  151, 8,  145,
    8,   216, 12,  13, 246, 3,   1,   17,  15,  241, 3,   0,  14,  22,  246, 6,   0,  8,   9,
};
static const struct {
    unsigned end;
    uint32_t line;
} lines_313[] = {
    {2, 1}, {8, 3}, {10, 4}, {14, 3}, {42, 6}, {70, 7}, {72, 8}, {86, 7}, {90, 6}, {104, 9}};

#define CHECK(lines, table)                                                                        \
    do {                                                                                           \
        unsigned at = 0;                                                                           \
        for (size_t i = 0; i < sizeof(lines) / sizeof *(lines); i++) {                             \
            for (; at < (lines)[i].end; at += 2) {                                                 \
                UNIT_EQUAL(hak_line_table_line(table, sizeof(table), 1, at / 2), (lines)[i].line); \
            }                                                                                      \
        }                                                                                          \
        UNIT_EQUAL(hak_line_table_line(table, sizeof(table), 1, at / 2), 0);                       \
    } while (0)

int main(void)
{
    CHECK(lines_311, of_311);
    CHECK(lines_313, of_313);
    UNIT_EQUAL(hak_line_table_line(of_313, sizeof of_313, 100, 1), 102);
    UNIT_EQUAL(hak_line_table_line(NULL, 0, 1, 0), 0);

    // The long form, without columns and with them; lines that go back; and line numbers that do not exist.
    static const uint8_t back[] = {0x80 | 13 << 3, 11, 0x80 | 14 << 3, 0x40 | 1, 1, 0, 0, 0};
    UNIT_EQUAL(hak_line_table_line(back, sizeof back, 10, 0), 5);
    UNIT_EQUAL(hak_line_table_line(back, sizeof back, 100, 1), 63);
    UNIT_EQUAL(hak_line_table_line(back, sizeof back, 10, 1), 0);

    srand(7);
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t table[40];
        const size_t bytes = (size_t)rand() % sizeof table;
        for (size_t i = 0; i < bytes; i++) {
            table[i] = (uint8_t)rand();
        }
        (void)hak_line_table_line(table, bytes, (uint32_t)rand(), (uint64_t)rand() % 64);
    }
    return 0;
}
