// contention.c -- what the build `contention` has counted, written when the process ends.
//
// A forked process inherits its parent's counts, and writes nothing.
#include "base/contention.h"

#include <stdarg.h>
#include <string.h>

#include "base/atomic.h"
#include "base/format.h"
#include "cache/registry.h"
#include "cache/sweeper.h"
#include "front/environment.h"
#include "meta/pool.h"
#include "os/os.h"
#include "owner/watch.h"
#include "profile/sample.h"
#include "slab/arena.h"

struct hak_call_place hak_call_places[HAK_CALL_PLACES];
HAK_TLS char hak_call_thread;

// The linker's names of where a section begins and ends.
HAK_INTERNAL extern struct hak_write_place __start_hak_writes[];
HAK_INTERNAL extern struct hak_write_place __stop_hak_writes[];

static struct {
    int process;
    uint64_t ns;
    uint64_t cycles;
    char file[4096]; // where the counts go; a copy, because PHP's environment is gone at the end
} began;

static char line[1 << 17];
static size_t length;

static void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    length += hak_format_list(line + length, sizeof line - length, format, list);
    va_end(list);
}

static void say_lock(const char *name, const struct hak_lock_counts *counts)
{
    say("\"%s\": {\"takings\": %z, \"contended\": %z, \"held_cycles\": %z, ",
        name,
        (size_t)counts->takings,
        (size_t)counts->contended,
        (size_t)counts->held_cycles);
    say("\"long_takings\": %z, \"long_cycles\": %z}, ",
        (size_t)counts->long_takings,
        (size_t)counts->long_cycles);
}

// Add to the counts of all caches (or shards), and keep those of the lock that was held longest.
static void add_counts(const struct hak_lock_counts *counts,
                       struct hak_lock_counts *all,
                       struct hak_lock_counts *busiest)
{
    all->takings += counts->takings;
    all->contended += counts->contended;
    all->held_cycles += counts->held_cycles;
    all->long_takings += counts->long_takings;
    all->long_cycles += counts->long_cycles;
    *busiest = counts->held_cycles > busiest->held_cycles ? *counts : *busiest;
}

static void say_caches(void)
{
    struct hak_lock_counts all = {0};
    struct hak_lock_counts busiest = {0};
    HAK_EACH_CACHE (cache) {
        add_counts(&cache->owner.lock.counts, &all, &busiest);
    }
    say_lock("cache", &all);
    say_lock("busiest cache", &busiest);
}

static void say_shards(void)
{
    struct hak_lock_counts all = {0};
    struct hak_lock_counts busiest = {0};
    for (unsigned i = 0; i <= hak_arena.shard_mask; i++) {
        add_counts(&hak_arena.shards[i].lock.counts, &all, &busiest);
    }
    say_lock("shard", &all);
    say_lock("busiest shard", &busiest);
}

static void say_writes(void)
{
    for (struct hak_write_place *place = __start_hak_writes; place < __stop_hak_writes; place++) {
        const size_t count = (size_t)hak_load_relaxed(&place->count);
        if (count != 0) {
            say("{\"file\": \"%s\", \"word\": \"%s\", \"count\": %z}, ",
                place->file,
                place->word,
                count);
        }
    }
}

__attribute__((constructor(102))) static void begin(void)
{
    began.process = hak_os_process_id();
    began.ns = hak_os_now_ns();
    began.cycles = HAK_CYCLES();
    const char *file = hak_environment_value("HAK_CONTENTION");
    if (file != NULL && strlen(file) < sizeof began.file) {
        memcpy(began.file, file, strlen(file) + 1);
    }
    // The tables are about programs with many threads, which have a sweeper: count an idle thread, so that there is one.
    hak_sweeper_thread_came(false);
}

// Before the caches are flushed, which is not the program's work.
__attribute__((destructor(102))) static void end(void)
{
    if (began.file[0] == '\0' || began.process != hak_os_process_id()) {
        return;
    }
    uint64_t cpu_ns;
    uint64_t faults;
    hak_os_usage(&cpu_ns, &faults);
    size_t calls = 0;
    for (size_t i = 0; i < HAK_CALL_PLACES; i++) {
        calls += (size_t)hak_load_relaxed(&hak_call_places[i].count);
    }
    say("{\"wall_ns\": %z, \"cycles\": %z, \"cpu_ns\": %z, \"calls\": %z, \"locks\": {",
        (size_t)(hak_os_now_ns() - began.ns),
        (size_t)(HAK_CYCLES() - began.cycles),
        (size_t)cpu_ns,
        calls);
    say_lock("sweep", &hak_watch.lock.counts);
    say_lock("registry", &hak_registry.lock.counts);
    say_caches();
    say_lock("shared", &hak_cache_shared.owner.lock.counts);
    say_shards();
    say_lock("arena", &hak_arena.lock.counts);
    say_lock("samples", &hak_samples.lock.counts);
    say_lock("pool", &hak_pool.lock.counts);
    length -= 2; // the last comma
    say("}, \"writes\": [");
    const size_t without = length;
    say_writes();
    length -= length > without ? 2 : 0;
    say("]}\n");
    hak_os_append_or_say(began.file, line, length);
}
