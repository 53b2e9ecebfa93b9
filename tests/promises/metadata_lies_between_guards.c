// preload only
//
// The allocator's metadata has inaccessible pages before and behind it: an overflow of
// a neighbouring mapping, whoever made it, ends there.
#include "../support/promise.h"

enum { FIRST_CHUNK = 256 * 1024 };

struct mapping {
    size_t start;
    size_t end;
    char rights[5];
    bool is_file;
};

static bool next_mapping(FILE *maps, struct mapping *mapping)
{
    char line[512];
    char name[256] = "";
    if (fgets(line, sizeof line, maps) == NULL) {
        return false;
    }
    sscanf(line,
           "%zx-%zx %4s %*s %*s %*s %255s",
           &mapping->start,
           &mapping->end,
           mapping->rights,
           name);
    mapping->is_file = name[0] != '\0';
    return true;
}

static bool is_guard(const struct mapping *mapping)
{
    return strcmp(mapping->rights, "---p") == 0;
}

int main(void)
{
    ht_start();
    char buffer[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    setvbuf(maps, buffer, _IOFBF, sizeof buffer);
    struct mapping before = {0};
    struct mapping one = {0};
    struct mapping behind;
    while (next_mapping(maps, &behind)) {
        if (one.end - one.start == FIRST_CHUNK && strcmp(one.rights, "rw-p") == 0 && !one.is_file &&
            is_guard(&before) && before.end == one.start && is_guard(&behind) &&
            behind.start == one.end) {
            return 0;
        }
        before = one;
        one = behind;
    }
    HT_BREAK("the first descriptors lie between no guards");
}
