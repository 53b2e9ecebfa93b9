#include "json.h"

void json_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            fprintf(stream, "\\%c", *at);
        } else if (*at < 0x20 || *at >= 0x7f) {
            fprintf(stream, "\\u%04x", *at);
        } else {
            fputc(*at, stream);
        }
    }
    fputc('"', stream);
}

void json_strings(FILE *stream, char *const *texts, size_t count)
{
    fputc('[', stream);
    for (size_t index = 0; index < count; index++) {
        if (index > 0) {
            fputc(',', stream);
        }
        json_string(stream, texts[index]);
    }
    fputc(']', stream);
}
