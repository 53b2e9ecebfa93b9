// not tagged: the C library clears some by lines (cmake/tests.cmake)
//
// What libc's functions allocate for their caller, the caller can free;
// and what they allocate for themselves, they free themselves.
#include "../support/promise.h"

#include <dirent.h>
#include <glob.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <wchar.h>

// Not in musl.
extern int argz_create_sep(const char *text, int separator, char **list, size_t *length)
    __attribute__((weak));
extern int argz_add(char **list, size_t *length, const char *text) __attribute__((weak));
extern int backtrace(void **frames, int room) __attribute__((weak));
extern char **backtrace_symbols(void *const *frames, int count) __attribute__((weak));

static void free_found(void *block, const char *from)
{
    HT_CHECK(block != NULL, "%s gave NULL", from);
    HT_CHECK(ht_is_any() || hak_owns == NULL || hak_owns(block), "%s: not hakmem's block", from);
    HT_CHECK(malloc_usable_size(block) > 0, "%s: a block of no bytes", from);
    free(block);
}

static void check_strings(void)
{
    char *text = NULL;
    free_found(strdup("duplicate"), "strdup");
    free_found(strndup("duplicate", 4), "strndup");
    free_found(wcsdup(L"duplicate"), "wcsdup");
    HT_CHECK(asprintf(&text, "%d %1000s", 42, "wide") == 1003, "asprintf failed");
    free_found(text, "asprintf");
    const char *format = ht_hide((char *)"%ms"); // POSIX's format, which -Wpedantic refuses
    HT_CHECK(sscanf("word", format, &text) == 1, "sscanf failed");
    free_found(text, "sscanf %ms");
    size_t length = 0;
    if (argz_create_sep != NULL) {
        HT_CHECK(argz_create_sep("a:b:c", ':', &text, &length) == 0, "argz_create_sep failed");
        HT_CHECK(argz_add(&text, &length, "and a longer word") == 0, "argz_add failed");
        free_found(text, "argz_add");
    }
    static char wide[20000];
    HT_CHECK(snprintf(wide, sizeof wide, "%.*f", 15000, 1.0 / 3) == 15002, "a long float");
}

static void check_files(void)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    HT_CHECK(file != NULL, "fopen failed");
    while (getline(&line, &room, file) > 0) {
    }
    rewind(file);
    while (getdelim(&line, &room, ' ', file) > 0) {
    }
    free_found(line, "getline");
    fclose(file);
    char *text = NULL;
    size_t length = 0;
    file = open_memstream(&text, &length);
    HT_CHECK(file != NULL, "open_memstream failed");
    for (int i = 0; i < 10000; i++) {
        fprintf(file, "%d,", i);
    }
    fclose(file);
    HT_CHECK(length == 48890, "open_memstream holds %zu bytes", length);
    free_found(text, "open_memstream");
    file = fmemopen(NULL, 5000, "w+");
    HT_CHECK(file != NULL && fputs("memory", file) >= 0, "fmemopen failed");
    fclose(file);
    free_found(getcwd(NULL, 0), "getcwd");
    free_found(get_current_dir_name(), "get_current_dir_name");
    free_found(realpath("/proc/../proc", NULL), "realpath");
}

static void check_folders(void)
{
    DIR *folder = opendir("/proc/self");
    HT_CHECK(folder != NULL && readdir(folder) != NULL, "opendir failed");
    closedir(folder);
    struct dirent **entries;
    int count = scandir("/proc/self", &entries, NULL, alphasort);
    HT_CHECK(count > 10, "scandir found %d", count);
    for (int i = 0; i < count; i++) {
        free_found(entries[i], "scandir's entry");
    }
    free_found(entries, "scandir");
    glob_t found;
    HT_CHECK(glob("/proc/*", 0, NULL, &found) == 0, "glob failed");
    globfree(&found);
}

static void check_names(void)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
    struct addrinfo *addresses = NULL;
    HT_CHECK(getaddrinfo("127.0.0.1", "80", &hints, &addresses) == 0, "getaddrinfo failed");
    freeaddrinfo(addresses);
    HT_CHECK(getpwuid(0) != NULL || errno != ENOMEM, "getpwuid has no memory");
    locale_t names = newlocale(LC_ALL_MASK, "C", NULL);
    HT_CHECK(names != NULL, "newlocale failed");
    freelocale(duplocale(names));
    freelocale(names);
    setlocale(LC_ALL, "");
    iconv_t conversion = iconv_open("UTF-16", "UTF-8");
    if (conversion != (iconv_t)-1) {
        iconv_close(conversion);
    }
    void *frames[20];
    if (backtrace != NULL) {
        int depth = backtrace(frames, 20);
        free_found(backtrace_symbols(frames, depth), "backtrace_symbols");
    }
}

static int compare(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(int));
}

static void check_data(void)
{
    regex_t expression;
    HT_CHECK(regcomp(&expression, "(a|b)*[0-9]{2,20}(c+|d?)", REG_EXTENDED) == 0, "regcomp failed");
    HT_CHECK(regexec(&expression, "abab1234ccc", 0, NULL, 0) == 0, "regexec failed");
    regfree(&expression);
    static int numbers[100000];
    void *tree = NULL;
    for (int i = 0; i < 100000; i++) {
        numbers[i] = i * 7919 % 100003;
    }
    for (int i = 0; i < 1000; i++) {
        HT_CHECK(tsearch(&numbers[i], &tree, compare) != NULL, "tsearch failed");
    }
    while (tree != NULL) {
        tdelete(*(void **)tree, &tree, compare);
    }
    HT_CHECK(hcreate(1000) != 0, "hcreate failed");
    hdestroy();
    qsort(numbers, 100000, sizeof *numbers, compare); // uses a block of its own to sort
    HT_CHECK(setenv("HAK_TEST_VARIABLE", "value", 1) == 0, "setenv failed");
    HT_CHECK(unsetenv("HAK_TEST_VARIABLE") == 0, "unsetenv failed");
    char *entry = strdup("HAK_TEST_ENTRY=1");
    HT_CHECK(entry != NULL && putenv(entry) == 0, "putenv failed");
    unsetenv("HAK_TEST_ENTRY");
    free_found(entry, "strdup");
}

int main(void)
{
    ht_start();
    for (int round = 0; round < 3; round++) {
        check_strings();
        check_files();
        check_folders();
        check_names();
        check_data();
    }
    return 0;
}
