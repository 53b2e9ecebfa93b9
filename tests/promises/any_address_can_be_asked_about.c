// preload only
// with features
// hak_owns and hak_describe tell for any address whether it is hakmem's and which
// block contains it; hak_version and the options answer, too.
#include "../support/api.h"

#include "../support/memory.h"

int main(void)
{
    ht_start();
    HT_API(hak_version);
    HT_API(hak_owns);
    HT_API(hak_describe);
    HT_API(hak_usable_size);
    HT_API(hak_option_get);
    HT_API(hak_option_set);
    char version[32];
    snprintf(version,
             sizeof version,
             "%d.%d.%d",
             HAKMEM_VERSION_MAJOR,
             HAKMEM_VERSION_MINOR,
             HAKMEM_VERSION_PATCH);
    HT_CHECK(strcmp(api_hak_version(), version) == 0,
             "version %s, header %s",
             api_hak_version(),
             version);
    struct hak_block_info info;
    for (size_t size = 1; size < 2 * HT_GIB; size += size / 2 + 1) {
        char *block = malloc(size);
        HT_CHECK(block != NULL || size > HT_GIB, "malloc(%zu) failed", size);
        if (block == NULL) {
            break;
        }
        size_t places[] = {0, size / 2, size - 1};
        for (size_t i = 0; i < 3; i++) {
            HT_CHECK(
                api_hak_owns(block + places[i]), "byte %zu of %zu is not owned", places[i], size);
            HT_CHECK(api_hak_describe(block + places[i], &info),
                     "byte %zu of %zu is unknown",
                     places[i],
                     size);
            HT_CHECK(info.start == block,
                     "byte %zu of %zu: start %p, not %p",
                     places[i],
                     size,
                     info.start,
                     (void *)block);
            HT_CHECK(info.bytes >= size && info.bytes == api_hak_usable_size(block),
                     "%zu: %zu bytes",
                     size,
                     info.bytes);
            HT_CHECK(info.kind != HAK_BLOCK_FOREIGN && !info.is_free,
                     "%zu: kind %d",
                     size,
                     (int)info.kind);
        }
        free(block);
    }
    static char variable;
    void *const wild[] = {
        &variable, &info, NULL, (void *)1, (void *)0xdeadbeefdeadbeefu, (void *)UINTPTR_MAX};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        HT_CHECK(!api_hak_owns(wild[i]), "%p is claimed", wild[i]);
        HT_CHECK(!api_hak_describe(wild[i], &info), "%p is described", wild[i]);
        HT_CHECK(api_hak_usable_size(wild[i]) == 0, "%p has usable bytes", wild[i]);
    }
    uint64_t value = 7;
    HT_CHECK(!api_hak_option_get("no such option", &value),
             "an option that does not exist has a value");
    HT_CHECK(!api_hak_option_set("no such option", 1), "an option that does not exist was set");
    return 0;
}
