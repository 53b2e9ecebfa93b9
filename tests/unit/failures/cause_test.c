// The limit that explains why the kernel refused a call.
#include "failures/cause.h"

#include <errno.h>

#include "../unit.h"
#include "base/bits.h"

#define LIMITS                                                                    \
    "Limit                     Soft Limit           Hard Limit           Units\n" \
    "Max locked memory         65536                65536                bytes\n"
#define STATUS "Name:\tprogram\nVmLck:\t      64 kB\nVmData:\t   500 kB\n"
#define MEMORY                  \
    "CommitLimit:     900 kB\n" \
    "Committed_AS:    800 kB\n"

static void expect(const struct hak_fake_file *files,
                   struct hak_refusal refusal,
                   enum hak_limit limit,
                   uint64_t value,
                   uint64_t use)
{
    hak_fake.files = files;
    hak_fake.now_ns += UINT64_C(2000000000); // mappings are counted once a second
    const struct hak_cause cause = hak_cause_of(refusal, true);
    UNIT_EQUAL(cause.limit, limit);
    UNIT_EQUAL(cause.value, value);
    UNIT_EQUAL(cause.use, use);
}

static void the_limit_that_is_exceeded_is_named(void)
{
    static const struct hak_fake_file files[] = {{"/proc/self/limits", LIMITS},
                                                 {"/proc/self/statm", "250 100 50 1 0 125 0\n"},
                                                 {"/proc/self/status", STATUS},
                                                 {NULL, NULL}};
    hak_fake.address_limit = 1500000;
    hak_fake.data_limit = 800000;
    expect(files, (struct hak_refusal){ENOMEM, 500000}, HAK_LIMIT_AS, 1500000, 1024000);
    expect(files, (struct hak_refusal){ENOMEM, 400000}, HAK_LIMIT_DATA, 800000, 512000);
    expect(files, (struct hak_refusal){ENOMEM, 200000}, HAK_LIMIT_UNKNOWN, 0, 0);
    expect(files, (struct hak_refusal){EAGAIN, 200000}, HAK_LIMIT_MEMLOCK, 65536, 65536);
    hak_fake.address_limit = SIZE_MAX;
    hak_fake.data_limit = SIZE_MAX;
}

// The kernel gives EAGAIN only at this limit, but a filter of system calls gives it at any time.
static void locked_memory_is_named_only_at_its_limit(void)
{
    static const struct hak_fake_file room[] = {{"/proc/self/limits", LIMITS},
                                                {"/proc/self/status", "VmLck:\t       4 kB\n"},
                                                {NULL, NULL}};
    static const struct hak_fake_file unlimited[] = {
        {"/proc/self/limits", "Max locked memory         unlimited            unlimited  bytes\n"},
        {"/proc/self/status", STATUS},
        {NULL, NULL}};
    static const struct hak_fake_file none[] = {{NULL, NULL}};
    expect(room, (struct hak_refusal){EAGAIN, 61440}, HAK_LIMIT_UNKNOWN, 0, 0);
    expect(room, (struct hak_refusal){EAGAIN, 61441}, HAK_LIMIT_MEMLOCK, 65536, 4096);
    expect(unlimited, (struct hak_refusal){EAGAIN, 200000}, HAK_LIMIT_UNKNOWN, 0, 0);
    expect(none, (struct hak_refusal){EAGAIN, 200000}, HAK_LIMIT_UNKNOWN, 0, 0);
}

// A thread that meets a limit asks again; files that the kernel takes long to write are not read then.
static void a_limit_is_found_with_one_short_file(void)
{
    static const struct hak_fake_file files[] = {{"/proc/self/statm", "250 100 50 1 0 125 0\n"},
                                                 {"/proc/sys/vm/overcommit_memory", "0\n"},
                                                 {NULL, NULL}};
    hak_fake.address_limit = 1500000;
    const size_t before = hak_fake.file_reads;
    expect(files, (struct hak_refusal){ENOMEM, 500000}, HAK_LIMIT_AS, 1500000, 1024000);
    UNIT_EQUAL(hak_fake.file_reads - before, 1);
    expect(files, (struct hak_refusal){ENOMEM, 1500001}, HAK_LIMIT_AS, 1500000, 1024000);
    UNIT_EQUAL(hak_fake.file_reads - before, 2);
    hak_fake.address_limit = SIZE_MAX;
    expect(files, (struct hak_refusal){ENOMEM, HAK_GIB(64)}, HAK_LIMIT_OVERCOMMIT, HAK_GIB(3), 0);
    UNIT_EQUAL(hak_fake.file_reads - before, 3);
}

static void what_no_process_has_addresses_for_is_named(void)
{
    hak_fake.files = NULL;
    const struct hak_refusal refusal = {ENOMEM, (size_t)1 << 50};
    UNIT_EQUAL(hak_cause_of(refusal, false).limit, HAK_LIMIT_ADDRESSES);
}

static void overcommit_is_explained_as_the_kernel_decides_it(void)
{
    static const struct hak_fake_file guesses[] = {
        {"/proc/sys/vm/overcommit_memory", "0\n"}, {"/proc/meminfo", MEMORY}, {NULL, NULL}};
    static const struct hak_fake_file counts[] = {
        {"/proc/sys/vm/overcommit_memory", "2\n"}, {"/proc/meminfo", MEMORY}, {NULL, NULL}};
    const size_t most = HAK_GIB(3); // memory and swap
    expect(guesses, (struct hak_refusal){ENOMEM, most + 1}, HAK_LIMIT_OVERCOMMIT, most, 0);
    expect(guesses, (struct hak_refusal){ENOMEM, most}, HAK_LIMIT_UNKNOWN, 0, 0);
    expect(counts, (struct hak_refusal){ENOMEM, 102401}, HAK_LIMIT_COMMIT, 921600, 819200);
    expect(counts, (struct hak_refusal){ENOMEM, 102400}, HAK_LIMIT_UNKNOWN, 0, 0);
}

static void a_full_table_of_mappings_is_named(void)
{
    static const struct hak_fake_file full[] = {{"/proc/sys/vm/max_map_count", "5\n"},
                                                {"/proc/self/maps", "a\nb\nc\nd\ne\nf\n"},
                                                {NULL, NULL}};
    static const struct hak_fake_file room[] = {{"/proc/sys/vm/max_map_count", "50\n"},
                                                {"/proc/self/maps", "a\nb\nc\nd\ne\nf\n"},
                                                {NULL, NULL}};
    expect(full, (struct hak_refusal){ENOMEM, 4096}, HAK_LIMIT_MAPPINGS, 5, 6);
    expect(room, (struct hak_refusal){ENOMEM, 4096}, HAK_LIMIT_UNKNOWN, 0, 0);
}

int main(void)
{
    hak_fake.memory_bytes = HAK_GIB(2);
    hak_fake.swap_bytes = HAK_GIB(1);
    the_limit_that_is_exceeded_is_named();
    locked_memory_is_named_only_at_its_limit();
    a_limit_is_found_with_one_short_file();
    what_no_process_has_addresses_for_is_named();
    overcommit_is_explained_as_the_kernel_decides_it();
    a_full_table_of_mappings_is_named();
    return 0;
}
