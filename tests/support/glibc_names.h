// What the library defines under the names of glibc's malloc.h, for tests built for another C library, whose malloc.h lacks them.
#ifndef HAK_TESTS_GLIBC_NAMES_H
#define HAK_TESTS_GLIBC_NAMES_H

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>

#define M_ARENA_MAX      (-8)
#define M_PERTURB        (-6)
#define M_MMAP_THRESHOLD (-3)
#define M_TOP_PAD        (-2)
#define M_TRIM_THRESHOLD (-1)

struct mallinfo {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

struct mallinfo mallinfo(void);
struct mallinfo2 mallinfo2(void);
int malloc_info(int options, FILE *stream);
int malloc_trim(size_t pad);
int mallopt(int parameter, int value);
void malloc_stats(void);
void *pvalloc(size_t bytes);

#endif
