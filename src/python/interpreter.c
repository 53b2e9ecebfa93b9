// interpreter.c -- see interpreter.h.
#include "python/interpreter.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "front/exports.h"
#include "os/os.h"
#include "stacks/code.h"

struct hak_interpreter hak_interpreter;

// Where the fields lie, in the order of enum hak_interpreter_field.
static const uint16_t at_311[HAK_PYTHON_FIELDS] = {
    24, 56, 8, 152, 48, 32, 56, 69, 68, 0, 112, 128, 136, 72, 184, 0, 8, 16, 32, 32, 16, 48,
};
static const uint16_t at_312[HAK_PYTHON_FIELDS] = {
    24, 56, 0, 136, 8, 0, 56, 70, 0, 0, 112, 128, 136, 68, 192, 0, 8, 16, 32, 32, 16, 40,
};

// Which word of _Py_DebugOffsets says where they lie; 0: none does.
static const uint8_t word_313[HAK_PYTHON_FIELDS] = {
    4, 0, 23, 24, 29, 30, 31, 33, 0, 0, 35, 37, 38, 39, 43, 0, 45, 65, 66, 68, 69, 70,
};
static const uint8_t word_314[HAK_PYTHON_FIELDS] = {
    4, 0, 26, 27, 32, 33, 34, 36, 0, 38, 40, 42, 43, 44, 48, 49, 51, 75, 76, 78, 79, 80,
};
static const uint8_t word_315[HAK_PYTHON_FIELDS] = {
    4, 0, 26, 30, 40, 41, 42, 44, 0, 46, 48, 50, 51, 52, 56, 57, 59, 87, 88, 90, 91, 92,
};

#define MINOR(version) ((version) >> 16)
enum {
    VERSION_311 = 0x030B,
    VERSION_312 = 0x030C,
    VERSION_313 = 0x030D,
    VERSION_314 = 0x030E,
    VERSION_315 = 0x030F,
    OFFSET_MAX = 1 << 12,
};

static const uint8_t *words_of(uint64_t version)
{
    switch (MINOR(version)) {
    case VERSION_313:
        return word_313;
    case VERSION_314:
        return word_314;
    case VERSION_315:
        return word_315;
    default:
        return NULL;
    }
}

// Read what the interpreter publishes: "xdebugpy", its version, whether it has no global lock, and offsets.
static bool read_published(struct hak_interpreter *found, struct hak_pages *pages, uint64_t version)
{
    enum { IS_FREE_THREADED = 2, WORDS_MAX = 93 };
    static const char cookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};
    const uint8_t *words = words_of(version);
    const uint64_t *said = (const uint64_t *)found->runtime;
    if (words == NULL || found->runtime % sizeof *said != 0 ||
        !hak_pages_are_readable(pages, found->runtime, WORDS_MAX * sizeof *said) ||
        memcmp(said, cookie, sizeof cookie) != 0 || said[1] != version) {
        return false;
    }
    for (unsigned field = 0; field < HAK_PYTHON_FIELDS; field++) {
        const uint64_t offset = words[field] != 0 ? said[words[field]] : 0;
        if (offset >= OFFSET_MAX) {
            return false;
        }
        found->at[field] = (uint16_t)offset;
    }
    if (said[IS_FREE_THREADED] != 0 && MINOR(version) >= VERSION_314) {
        found->has_copies = true;
        found->kind_shift = 8;
    }
    return true;
}

static bool read_layout(struct hak_interpreter *found, struct hak_pages *pages, uint64_t version)
{
    found->wide_bytes = 2 * sizeof(void *);
    found->kind_shift = 2;
    if (MINOR(version) == VERSION_311) {
        found->wide_bytes = 3 * sizeof(void *);
        found->has_global_current = true;
        memcpy(found->at, at_311, sizeof found->at);
        return true;
    }
    if (MINOR(version) == VERSION_312) {
        memcpy(found->at, at_312, sizeof found->at);
        return true;
    }
    return read_published(found, pages, version);
}

// Find what the loaded object exports. Its first page and its tables can be read: the dynamic linker has read them.
static bool exports_of(const struct hak_code_object *object, struct hak_exports *exports)
{
    const ElfW(Ehdr) *head = (const void *)object->start;
    if (object->end - object->start < HAK_CODE_HEAD_BYTES || !hak_os_can_read(head) ||
        memcmp(head, ELFMAG, SELFMAG) != 0 || head->e_phentsize != sizeof(ElfW(Phdr)) ||
        head->e_phoff + head->e_phnum * sizeof(ElfW(Phdr)) > HAK_CODE_HEAD_BYTES) {
        return false;
    }
    const ElfW(Phdr) *segments = (const void *)(object->start + head->e_phoff);
    const ElfW(Phdr) *dynamic = NULL;
    const ElfW(Phdr) *first = NULL;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        dynamic = segments[i].p_type == PT_DYNAMIC ? &segments[i] : dynamic;
        first = first == NULL && segments[i].p_type == PT_LOAD ? &segments[i] : first;
    }
    if (dynamic == NULL || first == NULL) {
        return false;
    }
    const uintptr_t base = object->start - (first->p_vaddr - first->p_offset);
    const uintptr_t start = base + dynamic->p_vaddr;
    return start > object->start && start < object->end &&
           hak_exports_read(exports, base, (const ElfW(Dyn) *)start);
}

static uintptr_t address_of(const struct hak_exports *exports, const char *name)
{
    const uint32_t index = hak_exports_next(exports, name, 0);
    const ElfW(Sym) *symbol = &exports->symbols[index];
    return index != 0 && symbol->st_shndx != SHN_UNDEF ? exports->base + symbol->st_value : 0;
}

static void *(*function_of(const struct hak_exports *exports, const char *name))(void)
{
    void *(*function)(void);
    const uintptr_t address = address_of(exports, name);
    memcpy(&function, &address, sizeof function);
    return function;
}

// How many bytes of a struct hold its fields from `first` to `last`.
static uint16_t extent_of(const struct hak_interpreter *found, unsigned first, unsigned last)
{
    unsigned most = 0;
    for (unsigned field = first; field <= last; field++) {
        most = found->at[field] > most ? found->at[field] : most;
    }
    return (uint16_t)(most + sizeof(uint64_t));
}

static bool read_object(struct hak_interpreter *found, const struct hak_code_object *object)
{
    struct hak_exports exports;
    struct hak_pages pages = hak_pages_at(0);
    if (!exports_of(object, &exports)) {
        return false;
    }
    const uintptr_t version = address_of(&exports, "Py_Version");
    found->runtime = address_of(&exports, "_PyRuntime");
    found->code_type = address_of(&exports, "PyCode_Type");
    found->current = function_of(&exports, "PyThreadState_GetUnchecked");
    if (found->current == NULL) {
        found->current = function_of(&exports, "_PyThreadState_UncheckedGet");
    }
    found->own = function_of(&exports, "PyGILState_GetThisThreadState");
    if (version == 0 || found->runtime == 0 || found->code_type == 0 || found->current == NULL ||
        found->own == NULL ||
        !read_layout(found, &pages, hak_pages_number(&pages, version, sizeof(unsigned long)))) {
        return false;
    }
    found->frame_bytes = extent_of(found, HAK_PYTHON_PREVIOUS, HAK_PYTHON_COPY);
    found->code_bytes = extent_of(found, HAK_PYTHON_FILE, HAK_PYTHON_TYPE);
    return true;
}

// One thread looks into each object, and the first one that finds an interpreter notes it.
static HAK_COLD void look_into(uint32_t number)
{
    static _Atomic(uint32_t) is_taken;
    uint32_t free_still = 0;
    struct hak_interpreter found = {.number = 0};
    if (read_object(&found, hak_code_entry(number)) && hak_cas_relaxed(&is_taken, &free_still, 1)) {
        memcpy(&hak_interpreter, &found, sizeof found);
        hak_store_release(&hak_interpreter.number, number); // pairs with: hak_interpreter_is_on
    }
}

bool hak_interpreter_is_on(const uintptr_t *places, unsigned count)
{
    static _Atomic(uint8_t) is_seen[HAK_CODE_OBJECTS];
    bool is_on = false;
    uint32_t before = 0;
    for (unsigned i = 0; i < count; i++) {
        const uint32_t number = (uint32_t)(places[i] >> HAK_CODE_SHIFT);
        if (number == before || number == HAK_CODE_UNTOLD || number >= HAK_CODE_OBJECTS) {
            continue;
        }
        before = number;
        if (HAK_UNLIKELY(hak_load_relaxed(&is_seen[number]) == 0)) {
            hak_store_relaxed(&is_seen[number], 1);
            look_into(number);
        }
        // pairs with: look_into
        is_on |= hak_load_acquire(&hak_interpreter.number) == number;
    }
    return is_on;
}

// The state of this thread, if it runs Python or has done so. A thread that has released the global lock keeps its frames. But
// the thread that ends the interpreter may free the state, so it is not read then.
static uintptr_t state_of_thread(struct hak_pages *pages)
{
    const uintptr_t current = (uintptr_t)hak_interpreter.current();
    const uintptr_t own = (uintptr_t)hak_interpreter.own();
    if (current != 0 &&
        (!hak_interpreter.has_global_current || current == own ||
         hak_interpreter_word(pages, current, HAK_PYTHON_THREAD) == (uintptr_t)pthread_self())) {
        return current;
    }
    const bool is_ending =
        hak_interpreter_word(pages, hak_interpreter.runtime, HAK_PYTHON_FINALIZING) != 0;
    return is_ending ? 0 : own;
}

uintptr_t hak_interpreter_frame(struct hak_pages *pages)
{
    uintptr_t state = state_of_thread(pages);
    if (state != 0 && hak_interpreter.at[HAK_PYTHON_CFRAME] != 0) {
        state = hak_interpreter_word(pages, state, HAK_PYTHON_CFRAME);
    }
    return state != 0 ? hak_interpreter_word(pages, state, HAK_PYTHON_FRAME) : 0;
}
