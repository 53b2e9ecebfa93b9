// recorder.c -- how processes and threads introduce themselves, and what happens when a ring is full.
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "codes.h"
#include "next.h"
#include "stacks.h"

HAK_TLS struct recorder hak_recorder;
struct process *hak_process;

static struct channel *channel; // NULL: nothing is recorded
static pthread_key_t ending;
static char own_program[PROGRAM_CHARS]; // in a forked child without /proc the parent's
static uint32_t own_number; // hak_process->number; in a forked child the parent's until it has one
static char channel_path[64];
static bool with_stacks;
static bool with_clock;
static bool collector_is_gone;

// The longest group of long events that belong together: a thread, a new stack, a size, the event.
#define GROUP_EVENTS (4 + 1 + (HAK_STACK_FRAMES_MAX + 1) / 2)
#define LONG_WORDS   (sizeof(struct long_event) / sizeof(uint64_t))

static struct process_entry *process_entries(void)
{
    return (struct process_entry *)(void *)((char *)channel + CHANNEL_PROCESSES_AT);
}

static struct ring *rings(void)
{
    return (struct ring *)(void *)((char *)channel + CHANNEL_RINGS_AT);
}

static uint64_t *words_of(const struct ring *ring)
{
    uint64_t *first = (uint64_t *)(void *)((char *)channel + CHANNEL_WORDS_AT);
    return first + (uint64_t)(ring - rings()) * RING_WORDS;
}

// Give a ring to the recorder; NULL: it has none any more.
static void use_ring(struct recorder *recorder, struct ring *ring)
{
    recorder->ring = ring;
    if (ring != NULL) {
        recorder->words = words_of(ring);
        recorder->head = hak_load_relaxed(&ring->head);
    }
    recorder->room_until = recorder->short_until = recorder->head;
}

// Processes share the channel, so the futexes are not private.
static void sleep_while(_Atomic(uint32_t) *word, uint32_t value, long milliseconds)
{
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
}

static void wake(_Atomic(uint32_t) *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wake_collector(void)
{
    if (hak_load_relaxed(&channel->collector_sleeps) != 0) {
        hak_store_relaxed(&channel->collector_sleeps, 0);
        wake(&channel->collector_sleeps);
    }
}

static void lock_process(void)
{
    uint32_t expected = 0;
    while (!hak_cas_acquire(&hak_process->lock, &expected, 1)) { // pairs with: unlock_process
        expected = 0;
        sched_yield();
    }
}

static void unlock_process(void)
{
    hak_store_release(&hak_process->lock, 0); // pairs with: lock_process
}

static uint64_t time_now(void)
{
    if (HAK_UNLIKELY(with_clock)) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    }
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

// ---- start ----

static struct channel *open_channel(const char *path)
{
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        return NULL;
    }
    const size_t bytes = (size_t)lseek(file, 0, SEEK_END);
    struct channel *opened = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (opened == MAP_FAILED) {
        return NULL;
    }
    if (opened->magic == CHANNEL_MAGIC && opened->version == CHANNEL_VERSION) {
        return opened;
    }
    munmap(opened, bytes);
    return NULL;
}

// Map the struct of this process. A forked child finds it zeroed.
static struct process *map_process(void)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, bytes, MADV_WIPEONFORK) != 0) {
        return NULL;
    }
    return page;
}

static void end_thread(void *self_pointer)
{
    struct recorder *self = self_pointer;
    // Other destructors free blocks, too, so this one asks to be called again until the last round.
    if (++self->endings < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(ending, self);
        return;
    }
    if (self->ring != NULL && self->process == hak_load_relaxed(&hak_process->number)) {
        hak_store_release(&self->ring->state, RING_CLOSED); // pairs with: the collector's take
    }
    use_ring(self, NULL); // later events of the thread go into the shared ring
}

static void start(void)
{
    hak_next_find();
    const char *path = getenv("HAKMEM_RECORD");
    channel = path != NULL ? open_channel(path) : NULL;
    hak_process = channel != NULL ? map_process() : NULL;
    if (hak_process == NULL || pthread_key_create(&ending, end_thread) != 0) {
        channel = NULL;
        return;
    }
    strncpy(channel_path, path, sizeof channel_path - 1);
    with_clock = channel->use_clock != 0;
    with_stacks = channel->stack_frames != 0 && hak_stacks_start(channel->stack_frames);
}

// Start at the first call, which may come before any constructor. A program usually has one thread
// then; any other one waits here.
static void start_once(void)
{
    enum { NOT_YET, STARTING, STARTED };
    static _Atomic(uint32_t) progress;
    uint32_t expected = NOT_YET;
    if (hak_cas_acquire(&progress, &expected, STARTING)) { // pairs with: start_once
        start();
        hak_store_release(&progress, STARTED); // pairs with: start_once
    }
    while (atomic_load_explicit(&progress, memory_order_acquire) != STARTED) {
        sched_yield();
    }
}

bool hak_recorder_enter_slow(struct recorder *self)
{
    if (self->state != RECORDER_NEW) {
        return false;
    }
    self->state = RECORDER_WRITING;
    const int error = errno;
    start_once();
    errno = error;
    self->state = channel != NULL ? RECORDER_BUSY : RECORDER_OFF;
    return channel != NULL;
}

// ---- introductions ----

static void fill_in(struct process_entry *entry, uint64_t time)
{
    entry->id = getpid();
    entry->parent = own_number;
    entry->start = time;
    const ssize_t length = readlink("/proc/self/exe", own_program, PROGRAM_CHARS - 1);
    own_program[length > 0 ? length : PROGRAM_CHARS - 1] = '\0';
    memcpy(entry->program, own_program, PROGRAM_CHARS);
    entry->number = 1 + hak_add_relaxed(&channel->next_process, 1);
}

// Fill in an entry for the process. Without a free one it is not recorded; its number says so.
static void introduce_process_locked(void)
{
    for (unsigned i = 0; i < CHANNEL_PROCESSES; i++) {
        struct process_entry *entry = &process_entries()[i];
        uint32_t expected = PROCESS_FREE;
        if (!hak_cas_acquire(
                &entry->state, &expected, PROCESS_BEGINS)) { // pairs with: the collector
            continue;
        }
        fill_in(entry, time_now());
        hak_store_release(&entry->state, PROCESS_LIVE); // pairs with: the collector's look
        wake_collector();
        if (with_stacks) {
            // The collector has to open the files of this process before the process may end.
            sleep_while(&entry->state, PROCESS_LIVE, 1000);
            hak_stacks_reset();
        }
        own_number = entry->number;
        hak_store_relaxed(&hak_process->standing, own_number << 1 | STANDING_ALONE);
        hak_store_release(&hak_process->number, own_number); // pairs with: introduce
        return;
    }
    hak_add_relaxed(&channel->processes_missed, 1);
    own_number = UINT32_MAX;
    hak_store_release(&hak_process->number, own_number); // pairs with: introduce
}

// Take a ring for a thread; 0: one that several threads share.
static struct ring *take_ring(uint32_t thread)
{
    const struct ring *end = rings() + channel->rings - (thread != 0 ? CHANNEL_SHARED_RINGS : 0);
    for (struct ring *ring = rings(); ring < end; ring++) {
        uint32_t expected = RING_FREE;
        if (hak_load_relaxed(&ring->state) == RING_FREE &&
            hak_cas_acquire(&ring->state, &expected, RING_TAKEN)) { // pairs with: the collector
            ring->process = own_number;
            ring->thread = thread;
            ring->id = (int32_t)syscall(SYS_gettid);
            return ring;
        }
    }
    return NULL;
}

// Introduce this thread, and its process. In a forked child the thread still has its parent's state.
static void introduce(struct recorder *self)
{
    if (atomic_load_explicit(&hak_process->number, memory_order_acquire) == 0) {
        lock_process();
        if (hak_load_relaxed(&hak_process->number) == 0) {
            introduce_process_locked();
        }
        unlock_process();
    }
    self->process = hak_load_relaxed(&hak_process->number);
    self->thread = 1 + hak_add_relaxed(&hak_process->threads, 1);
    if (self->thread > 1) {
        // Set before this thread's first event gets its time: a thread that reads it later takes times, too.
        hak_or_relaxed(&hak_process->standing, STANDING_THREADS);
    }
    self->endings = 0;
    self->time = 0;
    use_ring(self, NULL);
    if (self->process != UINT32_MAX) {
        use_ring(self, take_ring(self->thread));
        pthread_setspecific(ending, self);
    }
}

// ---- writing ----

// Is the collector alive? When a process ends, its files go before its number does. Without /proc, as
// in a changed root, the number has to do.
static bool collector_lives(void)
{
    if (kill(channel->collector, 0) != 0 && errno == ESRCH) {
        return false;
    }
    return access("/proc/self", F_OK) != 0 || access(channel_path, F_OK) == 0;
}

// Sleep until the collector has made room for `count` words. False: it is gone or wants no more.
static bool wait_for_room(const struct recorder *recorder, unsigned count)
{
    struct ring *ring = recorder->ring;
    for (unsigned tries = 1;; tries++) {
        const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (recorder->head + count <= tail + RING_WORDS) {
            return true;
        }
        wake_collector();
        if (hak_load_relaxed(&channel->is_stopped) != 0) {
            return false;
        }
        if (tries % 20 == 0 && !collector_lives()) {
            collector_is_gone = true;
            return false;
        }
        atomic_store_explicit(&ring->writer_waits, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&ring->tail, memory_order_seq_cst) == tail) {
            sleep_while(&ring->writer_waits, 1, 50);
        }
    }
}

// Check the ring again when another quarter of it is full, as the collector may sleep.
#define QUARTER (RING_WORDS / 4)

// The ring must have room.
static void write_event(struct recorder *recorder, struct long_event event)
{
    recorder->words[recorder->head % RING_WORDS] = event.first;
    recorder->words[(recorder->head + 1) % RING_WORDS] = event.second;
    recorder->head += LONG_WORDS;
}

static void publish(const struct recorder *recorder)
{
    hak_store_release(&recorder->ring->head, recorder->head); // pairs with: the collector's take
}

static void write_events(struct recorder *recorder, const struct long_event *events, unsigned count)
{
    const unsigned words = count * LONG_WORDS;
    if (!wait_for_room(recorder, words)) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        write_event(recorder, events[i]);
    }
    publish(recorder);
    const uint64_t full = hak_load_relaxed(&recorder->ring->tail) + RING_WORDS;
    const uint64_t next_quarter = (recorder->head / QUARTER + 1) * QUARTER;
    recorder->room_until = next_quarter < full ? next_quarter : full;
    if (with_stacks) {
        recorder->room_until = 0; // each event takes this path
    }
    if (recorder->head % QUARTER < words) {
        wake_collector();
    }
}

static bool has_shared_ring_locked(void)
{
    struct recorder *shared = &hak_process->shared;
    if (shared->ring == NULL) {
        use_ring(shared, take_ring(0));
    }
    return shared->ring != NULL;
}

static void write_shared(struct recorder *self, struct long_event *events, unsigned count)
{
    // The first event of each group is left free for the thread's number.
    events[0] = (struct long_event){.first = first_word(EVENT_THREAD, self->thread, 0)};
    lock_process();
    if (has_shared_ring_locked()) {
        write_events(&hak_process->shared, events, count);
    } else {
        hak_add_relaxed(&channel->events_missed, 1);
    }
    unlock_process();
}

static void put_word(void *data, uint64_t word)
{
    struct recorder *recorder = data;
    recorder->words[recorder->head++ % RING_WORDS] = word;
}

static void write_code(struct recorder *recorder, uint32_t number)
{
    if (wait_for_room(recorder, hak_code_words(number))) {
        hak_code_tell(number, put_word, recorder);
        publish(recorder);
        recorder->room_until = 0;
    }
}

// Write the files of a stack that the collector does not know yet.
static void write_codes(struct recorder *self, const uintptr_t *frames, unsigned frame_count)
{
    for (unsigned i = 0; i < frame_count; i++) {
        const uint32_t number = hak_code_untold(frames[i]);
        if (number != 0 && self->ring != NULL) {
            write_code(self, number);
        } else if (number != 0 && self->process != UINT32_MAX) {
            lock_process();
            if (has_shared_ring_locked()) {
                write_code(&hak_process->shared, number);
            }
            unlock_process();
        }
    }
}

// Fill in the events that precede an event with a stack. Returns how many there are.
static unsigned add_stack(struct recorder *self, struct long_event *events)
{
    uintptr_t frames[HAK_STACK_FRAMES_MAX];
    unsigned frame_count = 0;
    bool is_new = false;
    const uint32_t number = hak_stack_number(frames, &frame_count, &is_new);
    unsigned count = 0;
    if (is_new) {
        write_codes(self, frames, frame_count);
        events[count++].first = first_word(EVENT_NEW_STACK, number, frame_count);
        for (unsigned i = 0; i < frame_count; i += 2) {
            events[count].first = frames[i];
            events[count++].second = i + 1 < frame_count ? frames[i + 1] : 0;
        }
    }
    events[count++].first = first_word(EVENT_STACK, number, 0);
    return count;
}

// In a process with one thread, events that come fast need not have a time each.
static void note_time(struct recorder *self, uint64_t time)
{
    const bool is_fast = time - self->time < channel->burst_ticks;
    self->time = time;
    self->short_until = 0;
    if (is_fast && self->standing % 2 == STANDING_ALONE) {
        const uint64_t end = self->head + BURST_EVENTS - 1;
        self->short_until = end < self->room_until ? end : self->room_until;
    }
}

// Record a call that needs more than to write one event into the thread's own ring, with room in it.
static void record_slow(enum event_kind kind,
                        const void *block,
                        size_t bytes,
                        unsigned alignment_log2)
{
    struct recorder *self = &hak_recorder;
    if (self->process == 0 || self->process != hak_load_relaxed(&hak_process->number)) {
        introduce(self);
    }
    self->standing = hak_load_relaxed(&hak_process->standing);
    const uint64_t time = time_now();
    struct long_event events[GROUP_EVENTS] = {0};
    unsigned count = 1;
    if (with_stacks && kind != EVENT_FREE && kind != EVENT_REALLOC_FROM) {
        count += add_stack(self, events + count);
    }
    uint64_t size = bytes;
    if (bytes >= EVENT_SIZE_MAX) {
        events[count].first = first_word(EVENT_SIZE, 0, 0);
        events[count++].second = bytes;
        size = EVENT_SIZE_MAX;
    }
    events[count].first = first_word(kind, (uintptr_t)block, alignment_log2);
    events[count++].second = second_word(size, time);
    if (self->ring != NULL) {
        write_events(self, events + 1, count - 1);
    } else if (self->process != UINT32_MAX) {
        write_shared(self, events, count);
    }
    note_time(self, time);
}

void hak_record_long(enum event_kind kind, const void *block, size_t bytes, unsigned alignment_log2)
{
    struct recorder *self = &hak_recorder;
    const bool has_room = self->head + LONG_WORDS <= self->room_until;
    if (HAK_LIKELY(has_room && bytes < EVENT_SIZE_MAX &&
                   self->standing == hak_load_relaxed(&hak_process->standing))) {
        const uint64_t time = time_now();
        const struct long_event event = {first_word(kind, (uintptr_t)block, alignment_log2),
                                         second_word(bytes, time)};
        write_event(self, event);
        publish(self);
        note_time(self, time);
    } else if (!collector_is_gone && hak_load_relaxed(&channel->is_stopped) == 0) {
        const int error = errno;
        const uint8_t state = self->state;
        self->state = RECORDER_WRITING;
        record_slow(kind, block, bytes, alignment_log2);
        self->state = state;
        errno = error;
    }
}
