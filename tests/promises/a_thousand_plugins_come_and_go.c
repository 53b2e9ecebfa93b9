// glibc only: musl never unmaps a library
// preload only
// native only
// timeout: 120
// with features
// A program opens a thousand libraries, each with thread-local storage that the C library allocates from us, and closes them in
// another order; meanwhile threads allocate, and rules are set for functions that many of the libraries have, or none.
// Nothing is lost, and the memory comes back.
#include "../support/beside.h"
#include "../support/crowd.h"
#include "../support/memory.h"

#include <hakmem/hakmem.h>

#include <malloc.h>
#include <stdatomic.h>
#include <sys/stat.h>

enum { PLUGINS = 1000, STORAGE = 5000, RULES_EVERY = 100 };

static void *plugins[PLUGINS];
static atomic_bool stop;
static __typeof__(hak_site_rule) *add_rule;

static void *churn(void *seed)
{
    while (!atomic_load(&stop)) {
        ht_crowd_work(seed);
    }
    return NULL;
}

// Another file each time, or the dynamic linker would open the same library again.
static void *plugin_open(const char *folder, const char *image, size_t bytes, size_t number)
{
    char path[256];
    snprintf(path, sizeof path, "%s/plugin%zu.so", folder, number);
    const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    HT_CHECK(file >= 0 && write(file, image, bytes) == (ssize_t)bytes, "cannot write %s", path);
    close(file);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    HT_CHECK(plugin != NULL, "dlopen: %s", dlerror());
    return plugin;
}

static void touch(void *plugin, int number)
{
    int *(*storage)(void);
    *(void **)(&storage) = dlsym(plugin, "ht_thread_storage");
    HT_CHECK(storage != NULL, "dlsym: %s", dlerror());
    HT_CHECK(storage()[0] == 0 && storage()[STORAGE - 1] == 0, "new storage is not zero");
    storage()[0] = number;
    storage()[STORAGE - 1] = number;
}

static void set_rules(void)
{
    HT_CHECK(add_rule("ht_thread_storage", "long"), "a rule was refused");
    HT_CHECK(add_rule("ht_no_such_function", "short"), "a rule was refused");
}

static void come_and_go(const char *folder, const char *image, size_t bytes)
{
    for (size_t i = 0; i < PLUGINS; i++) {
        plugins[i] = plugin_open(folder, image, bytes, i);
        touch(plugins[i], (int)i + 1);
        if (i % RULES_EVERY == 0 && i < 2 * RULES_EVERY) {
            set_rules();
        }
    }
    struct ht_random random = {7};
    for (size_t left = PLUGINS; left > 0; left--) {
        const size_t i = ht_random_below(&random, left);
        HT_CHECK(dlclose(plugins[i]) == 0, "dlclose: %s", dlerror());
        plugins[i] = plugins[left - 1];
    }
}

int main(void)
{
    ht_start();
    *(void **)(&add_rule) = dlsym(RTLD_DEFAULT, "hak_site_rule");
    HT_CHECK(add_rule != NULL, "not there");
    char folder[] = "/tmp/plugins.XXXXXX";
    HT_CHECK(mkdtemp(folder) != NULL, "no folder");
    char path[HT_BESIDE_PATH];
    const int file = open(ht_beside("libthread_storage.so", path), O_RDONLY | O_CLOEXEC);
    struct stat of_file;
    HT_CHECK(file >= 0 && fstat(file, &of_file) == 0, "%s is missing", path);
    const size_t bytes = (size_t)of_file.st_size;
    const char *image = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    HT_CHECK(image != MAP_FAILED, "cannot map %s", path);
    come_and_go(folder, image, bytes);
    const long before = ht_rss_kib();
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0, "no thread");
    }
    come_and_go(folder, image, bytes);
    atomic_store(&stop, true);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    malloc_trim(0);
    const long after = ht_rss_kib();
    HT_CHECK(after <= before + 4096, "%ld KiB resident, %ld before", after, before);
    rmdir(folder);
    return 0;
}
