// json.h -- JSON text on a stream: enough for flat reports, and no more.
#ifndef MEASURE_JSON_H
#define MEASURE_JSON_H

#include <stddef.h>
#include <stdio.h>

// Write `text` in quotes. Bytes that are not ASCII are escaped one by one, so
// that a path in any encoding still gives a valid document.
void json_string(FILE *stream, const char *text);

// Write `count` strings as an array.
void json_strings(FILE *stream, char *const *texts, size_t count);

#endif
