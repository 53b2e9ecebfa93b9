// The frames of a made-up interpreter: functions and lines are right, also of code at the address of earlier code, of threads that
// run copies of their instructions, and of more places than are remembered; and what cannot be read ends the walk.
#include "python/python.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../unit.h"
#include "meta/table.h"
#include "python/functions.h"
#include "python/interpreter.h"
#include "stacks/code.h"

enum { OBJECT = 1, LINES = 40, FRAMES = 200, FUNCTIONS = 3000, PAGE = 4096 };

struct text {
    uintptr_t type;
    uint64_t length;
    uint32_t state;
    char letters[60];
};

struct lines {
    uintptr_t type;
    uint64_t count;
    uint8_t table[2 * LINES];
};

struct copies {
    uint64_t count;
    const void *starts[2];
};

struct code {
    uintptr_t type;
    struct text *file;
    struct text *name;
    struct lines *lines;
    struct copies *copies;
    uint32_t first_line;
    uint16_t units[LINES];
};

struct frame {
    struct frame *previous;
    uintptr_t code;
    const void *instruction;
    uint32_t copy;
    uint8_t owner;
};

static uintptr_t code_type;
static struct frame frames[FRAMES];
static struct state {
    uintptr_t id;
    struct frame *frame;
} state;
static uintptr_t places[1 + HAK_PYTHON_FRAMES];
static uint64_t now_ns = UINT64_C(1) << 40;

static void *current(void)
{
    return &state;
}

// Of the kernel itself, as sanitizers watch what is written.
static int looks[2];

static bool can_read(const void *address)
{
    char byte;
    return syscall(SYS_write, looks[1], address, 1) == 1 && read(looks[0], &byte, 1) == 1;
}

static void set_up(void)
{
    static struct hak_code_object program; // number 1, which has no interpreter in it
    hak_store_relaxed(&hak_code.entries[1], &program);
    UNIT_CHECK(pipe(looks) == 0);
    hak_fake.on_look = can_read;
    const uint16_t at[HAK_PYTHON_FIELDS] = {
        [HAK_PYTHON_FRAME] = offsetof(struct state, frame),
        [HAK_PYTHON_PREVIOUS] = offsetof(struct frame, previous),
        [HAK_PYTHON_CODE] = offsetof(struct frame, code),
        [HAK_PYTHON_INSTRUCTION] = offsetof(struct frame, instruction),
        [HAK_PYTHON_OWNER] = offsetof(struct frame, owner),
        [HAK_PYTHON_COPY] = offsetof(struct frame, copy),
        [HAK_PYTHON_FILE] = offsetof(struct code, file),
        [HAK_PYTHON_NAME] = offsetof(struct code, name),
        [HAK_PYTHON_LINES] = offsetof(struct code, lines),
        [HAK_PYTHON_FIRST_LINE] = offsetof(struct code, first_line),
        [HAK_PYTHON_START] = offsetof(struct code, units),
        [HAK_PYTHON_COPIES] = offsetof(struct code, copies),
        [HAK_PYTHON_TYPE] = offsetof(struct code, type),
        [HAK_PYTHON_BYTES_COUNT] = offsetof(struct lines, count),
        [HAK_PYTHON_BYTES] = offsetof(struct lines, table),
        [HAK_PYTHON_STATE] = offsetof(struct text, state),
        [HAK_PYTHON_LENGTH] = offsetof(struct text, length),
        [HAK_PYTHON_TEXT] = offsetof(struct text, letters),
    };
    memcpy(hak_interpreter.at, at, sizeof at);
    hak_interpreter.current = current;
    hak_interpreter.own = current;
    hak_interpreter.code_type = (uintptr_t)&code_type;
    hak_interpreter.frame_bytes = sizeof(struct frame);
    hak_interpreter.code_bytes = offsetof(struct code, units);
    hak_interpreter.wide_bytes = 2 * sizeof(void *);
    hak_interpreter.kind_shift = 2;
    hak_store_release(&hak_interpreter.number, OBJECT);
    places[0] = (uintptr_t)OBJECT << HAK_CODE_SHIFT | 1;
}

static void *take(size_t bytes)
{
    static _Alignas(16) char room[4 << 20];
    static size_t taken;
    void *made = room + taken;
    taken += (bytes + 15) / 16 * 16;
    UNIT_CHECK(taken <= sizeof room);
    return made;
}

static struct text *text(const char *letters)
{
    struct text *made = take(sizeof *made);
    made->length = strlen(letters);
    enum { OF_BYTES = 1, IS_COMPACT = 8, IS_ASCII = 16 };
    made->state = (uint32_t)(OF_BYTES | IS_COMPACT | IS_ASCII) << hak_interpreter.kind_shift;
    memcpy(made->letters, letters, made->length);
    return made;
}

// Each code unit has a line of its own: the one after the line of the unit before.
static void make_code(struct code *code, const char *file, const char *name, uint32_t first_line)
{
    enum { OF_ONE_UNIT = 0x80 | 13 << 3, ONE_LINE_ON = 2 };
    struct lines *lines = take(sizeof *lines);
    lines->count = sizeof lines->table;
    for (unsigned i = 0; i < LINES; i++) {
        lines->table[2 * i] = OF_ONE_UNIT;
        lines->table[2 * i + 1] = ONE_LINE_ON;
    }
    *code = (struct code){.type = (uintptr_t)&code_type,
                          .file = text(file),
                          .name = text(name),
                          .lines = lines,
                          .first_line = first_line};
}

static struct frame *call(struct frame *frame,
                          struct frame *caller,
                          struct code *code,
                          unsigned unit)
{
    *frame = (struct frame){
        .previous = caller, .code = (uintptr_t)code, .instruction = &code->units[unit]};
    return frame;
}

static unsigned walk(struct frame *innermost)
{
    state.frame = innermost;
    return hak_python_add(places, 1, now_ns);
}

static const struct hak_function *function_of(uintptr_t place)
{
    UNIT_EQUAL(place >> HAK_CODE_SHIFT, HAK_CODE_OF_FUNCTION);
    const uintptr_t number =
        place >> HAK_FUNCTION_LINE_BITS & ((1U << HAK_FUNCTION_NUMBER_BITS) - 1);
    struct hak_function_table *table = hak_table_find(&hak_functions.table);
    return hak_load_relaxed(&table->entries[number]);
}

static unsigned line_of(uintptr_t place)
{
    return (unsigned)(place & ((1U << HAK_FUNCTION_LINE_BITS) - 1));
}

static bool is_called(uintptr_t place)
{
    return (place >> HAK_PYTHON_CALLED_BIT & 1) != 0;
}

// The frame with this number is in this function ("views.pyexport"), which starts at `first_line`, and in this line.
static void check(unsigned frame, const char *names, unsigned first_line, unsigned line)
{
    const struct hak_function *function = function_of(places[1 + frame]);
    UNIT_EQUAL(function->file_bytes + function->name_bytes, strlen(names));
    UNIT_CHECK(memcmp(function->text, names, strlen(names)) == 0);
    UNIT_EQUAL(function->first_line, first_line);
    UNIT_EQUAL(line_of(places[1 + frame]), line);
}

static void without_memory_functions_have_no_number(void)
{
    static struct code code, none;
    make_code(&code, "short.py", "short", 1);
    struct frame *frame = call(&frames[0], NULL, &code, 2);
    hak_fake.refuse_asks = true;
    for (unsigned round = 1; round <= 3; round++) {
        UNIT_EQUAL(walk(frame), 1);
        const uintptr_t called = (uintptr_t)1 << HAK_PYTHON_CALLED_BIT;
        UNIT_EQUAL(places[1] & ~called, (uintptr_t)HAK_CODE_OF_FUNCTION << HAK_CODE_SHIFT);
        UNIT_EQUAL(hak_load_relaxed(&hak_functions.dropped), round);
    }
    UNIT_EQUAL(walk(call(&frames[0], NULL, &none, 2)), 0); // it is no code object
    UNIT_EQUAL(hak_load_relaxed(&hak_functions.count), 0);
    hak_fake.refuse_asks = false;
}

static void functions_and_lines_are_right(void)
{
    static struct code export, module;
    make_code(&export, "views.py", "export", 110);
    make_code(&module, "app.py", "<module>", 1);
    struct frame *outer = call(&frames[0], NULL, &module, 3);
    struct frame *nobodys = call(&frames[1], outer, &module, 0);
    nobodys->owner = HAK_PYTHON_OWNER_NONE;
    struct frame *middle = call(&frames[2], nobodys, &export, 1);
    struct frame *inner = call(&frames[3], middle, &export, 7);
    inner->code |= 3; // as its own reference count says
    for (unsigned round = 0; round < 3; round++) {
        UNIT_EQUAL(walk(inner), 3);
        check(0, "views.pyexport", 110, 118);
        check(1, "views.pyexport", 110, 112);
        check(2, "app.py<module>", 1, 5);
        UNIT_CHECK(!is_called(places[1]) && is_called(places[2]) && !is_called(places[3]));
        UNIT_EQUAL(hak_load_relaxed(&hak_functions.count), 2);
    }
    inner->instruction = &export.first_line;
    UNIT_EQUAL(walk(inner), 3);
    check(0, "views.pyexport", 110, 110); // it has not started
}

// The frame has the same address as before; so have its code object and the instruction.
static void other_code_at_the_same_place_is_another_function(void)
{
    static struct code code;
    make_code(&code, "views.py", "one", 10);
    struct frame *frame = call(&frames[0], NULL, &code, 2);
    UNIT_EQUAL(walk(frame), 1);
    check(0, "views.pyone", 10, 13);
    const uint32_t count = hak_load_relaxed(&hak_functions.count);
    code.name = text("other");
    UNIT_EQUAL(walk(frame), 1);
    check(0, "views.pyother", 10, 13);
    code.file = text("pages.py");
    UNIT_EQUAL(walk(frame), 1);
    check(0, "pages.pyother", 10, 13);
    code.first_line = 20;
    UNIT_EQUAL(walk(frame), 1);
    check(0, "pages.pyother", 20, 23);
    UNIT_EQUAL(hak_load_relaxed(&hak_functions.count), count + 3);
    make_code(&code, "pages.py", "other", 20); // the same source again
    code.lines->table[5] = 0;
    UNIT_EQUAL(walk(frame), 1);
    check(0, "pages.pyother", 20, 22);
    UNIT_EQUAL(hak_load_relaxed(&hak_functions.count), count + 3);
}

static void copies_of_instructions_have_lines(void)
{
    static struct code code;
    static uint16_t copy[LINES];
    hak_interpreter.has_copies = true;
    hak_interpreter.kind_shift = 8;
    make_code(&code, "free.py", "threaded", 50);
    struct copies copies = {.count = 2, .starts = {code.units, copy}};
    code.copies = &copies;
    struct frame *frame = call(&frames[0], NULL, &code, 4);
    UNIT_EQUAL(walk(frame), 1);
    check(0, "free.pythreaded", 50, 55);
    frame->copy = 1;
    frame->instruction = &copy[6];
    UNIT_EQUAL(walk(frame), 1);
    check(0, "free.pythreaded", 50, 57);
    frame->copy = 2; // that copy does not exist
    UNIT_EQUAL(walk(frame), 1);
    check(0, "free.pythreaded", 50, 50);
    code.copies = (struct copies *)8;
    UNIT_EQUAL(walk(frame), 1);
    check(0, "free.pythreaded", 50, 50);
    hak_interpreter.has_copies = false;
    hak_interpreter.kind_shift = 2;
}

static void more_places_than_are_remembered_are_right(void)
{
    static struct code codes[FUNCTIONS];
    char name[20];
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        (void)snprintf(name, sizeof name, "f%u", i);
        make_code(&codes[i], "many.py", name, 1000 * i);
    }
    for (unsigned round = 0; round < 20 * FUNCTIONS; round++) {
        const unsigned which = round * 7919 % FUNCTIONS;
        const unsigned unit = round / FUNCTIONS % LINES;
        UNIT_EQUAL(walk(call(&frames[0], NULL, &codes[which], unit)), 1);
        (void)snprintf(name, sizeof name, "many.pyf%u", which);
        check(0, name, 1000 * which, 1000 * which + unit + 1);
    }
}

static void deep_stacks_are_cut(void)
{
    static struct code code;
    make_code(&code, "deep.py", "down", 1);
    struct frame *frame = NULL;
    for (unsigned i = 0; i < FRAMES; i++) {
        frame = call(&frames[i], frame, &code, i % LINES);
    }
    UNIT_EQUAL(walk(frame), HAK_PYTHON_FRAMES);
    check(0, "deep.pydown", 1, 2 + (FRAMES - 1) % LINES);
    const uintptr_t cut = (uintptr_t)1 << HAK_PYTHON_CUT_BIT;
    UNIT_CHECK((places[HAK_PYTHON_FRAMES] & cut) != 0 && (places[1] & cut) == 0);
    make_code(&code, "deep.py", "other", 1);
    code.type = 0;
    UNIT_EQUAL(walk(frame), 0);
}

// What could be read is not checked again for a second.
static void what_cannot_be_read_ends_the_walk(void)
{
    static struct code code;
    make_code(&code, "gone.py", "gone", 1);
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    UNIT_CHECK(page != MAP_FAILED);
    struct frame *outer = call((struct frame *)(void *)page, NULL, &code, 1);
    struct frame *inner = call(&frames[0], outer, &code, 2);
    UNIT_EQUAL(walk(inner), 2);
    UNIT_CHECK(mprotect(page, PAGE, PROT_NONE) == 0);
    now_ns += UINT64_C(4) << 30;
    UNIT_EQUAL(walk(inner), 1);
    inner->previous = (struct frame *)(void *)(page + PAGE - 8);
    UNIT_EQUAL(walk(inner), 1);
    const uintptr_t nowhere[] = {8,
                                 UINTPTR_MAX,
                                 UINTPTR_MAX - 4095,
                                 (uintptr_t)1 << 47,
                                 (uintptr_t)1 << 48,
                                 (uintptr_t)1 << 63};
    for (unsigned i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        inner->previous = (struct frame *)nowhere[i];
        inner->code = (uintptr_t)&code;
        UNIT_EQUAL(walk(inner), 1);
        inner->code = nowhere[i];
        UNIT_EQUAL(walk(inner), 0);
    }
    // The frame's page can be read, but the address has upper bits set that no address has.
    inner->code = (uintptr_t)&code;
    for (unsigned bit = 48; bit < 64; bit++) {
        inner->previous = (struct frame *)((uintptr_t)&frames[1] | (uintptr_t)1 << bit);
        UNIT_EQUAL(walk(inner), 1);
    }
}

int main(void)
{
    set_up();
    without_memory_functions_have_no_number();
    functions_and_lines_are_right();
    other_code_at_the_same_place_is_another_function();
    copies_of_instructions_have_lines();
    more_places_than_are_remembered_are_right();
    deep_stacks_are_cut();
    what_cannot_be_read_ends_the_walk();
    return 0;
}
