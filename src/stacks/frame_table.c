// frame_table.c -- see frame_table.h.
#include "stacks/frame_table.h"

#include <string.h>

#include "stacks/find_object.h"

// The registers' numbers in these tables, by the processors' ABI supplements.
#if defined(__x86_64__)
enum { POINTER = 6, STACK = 7, RETURN = 16 };
#else
enum { POINTER = 29, STACK = 31, RETURN = 30 };
#endif

// A place in a table; everything behind `end` reads as 0.
struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

static uint64_t take(struct cursor *cursor, unsigned bytes)
{
    uint64_t value = 0;
    if ((size_t)(cursor->end - cursor->at) < bytes) {
        cursor->at = cursor->end;
        return 0;
    }
    memcpy(&value, cursor->at, bytes);
    cursor->at += bytes;
    return value;
}

static uint64_t take_uleb(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = take(cursor, 1);
        value |= (byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            break;
        }
    }
    return value;
}

static int64_t take_sleb(struct cursor *cursor)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint64_t byte;
    do {
        byte = take(cursor, 1);
        value |= (byte & 0x7F) << shift;
        shift += 7;
    } while ((byte & 0x80) != 0 && shift < 64);
    if ((byte & 0x40) != 0 && shift < 64) {
        value |= ~UINT64_C(0) << shift;
    }
    return (int64_t)value;
}

// An address in one of the encodings that compilers use (DW_EH_PE_*). `base`: what it may be relative to.
static uintptr_t take_address(struct cursor *cursor, unsigned encoding, uintptr_t base)
{
    const uintptr_t here = (uintptr_t)cursor->at;
    uint64_t value;
    switch (encoding & 0x0F) {
    case 0x00: // a pointer
    case 0x04: // 8 bytes
    case 0x0C: // the same with a sign
        value = take(cursor, 8);
        break;
    case 0x03: // 4 bytes
        value = take(cursor, 4);
        break;
    case 0x0B: // the same with a sign
        value = (uint64_t)(int64_t)(int32_t)take(cursor, 4);
        break;
    default:
        return 0;
    }
    switch (encoding & 0x70) {
    case 0x10: // relative to where it stands
        return here + value;
    case 0x30: // relative to the table
        return base + value;
    default:
        return value;
    }
}

// The block that begins at a place, with its length: an expression, an augmentation's data.
static struct cursor take_block(struct cursor place)
{
    const uint64_t bytes = take_uleb(&place);
    const uint64_t most = (uint64_t)(place.end - place.at);
    place.end = place.at + (bytes < most ? bytes : most);
    return place;
}

static void skip_block(struct cursor *program)
{
    program->at = take_block(*program).end;
}

// What all functions of a file or a part of it have in common (a CIE).
struct common {
    struct cursor program;
    uint64_t code_step;
    int64_t data_step;
    unsigned address_encoding;
    bool has_augmentation;
    bool is_known;
};

// The record that begins at `at`, without its length.
static struct cursor record_at(const uint8_t *at)
{
    struct cursor record = {at, at + 4};
    uint64_t bytes = take(&record, 4);
    if (bytes == UINT32_MAX) {
        record.end += 8;
        bytes = take(&record, 8);
    }
    record.end = record.at + bytes;
    return record;
}

static struct common read_common(const uint8_t *at)
{
    struct common common = {.is_known = false};
    struct cursor record = record_at(at);
    take(&record, 4); // 0, which tells it from a function's record
    const uint64_t version = take(&record, 1);
    const char *augmentation = (const char *)record.at;
    while (take(&record, 1) != 0) {
    }
    common.code_step = take_uleb(&record);
    common.data_step = take_sleb(&record);
    const uint64_t return_register = version == 1 ? take(&record, 1) : take_uleb(&record);
    common.is_known = return_register == RETURN;
    if (*augmentation == 'z') {
        common.has_augmentation = true;
        struct cursor data = take_block(record);
        skip_block(&record);
        while (*++augmentation != '\0') {
            if (*augmentation == 'R') {
                common.address_encoding = (unsigned)take(&data, 1);
            } else if (*augmentation == 'P') {
                const unsigned encoding = (unsigned)take(&data, 1);
                take_address(&data, encoding, 0);
            } else if (*augmentation == 'L') {
                take(&data, 1);
            } else if (*augmentation == 'S') {
                common.is_known = false; // a signal's frame: registers lie elsewhere
            }
        }
    }
    common.program = record;
    return common;
}

// The result of the instructions that were run so far.
struct row {
    struct hak_frame_rule rule;
    bool is_odd; // it has something that a rule cannot express
};

enum { ROWS_MAX = 4 }; // remembered at a time; compilers need one

struct machine {
    struct row row, initial;
    struct row remembered[ROWS_MAX];
    unsigned remembered_count;
    uint64_t code_step;
    int64_t data_step;
};

static void set_base(struct row *row, uint64_t base)
{
    row->rule.kind = base == STACK     ? HAK_FRAME_STACK
                     : base == POINTER ? HAK_FRAME_POINTER
                                       : HAK_FRAME_UNKNOWN;
}

static void set_saved(struct row *row, uint64_t which, int64_t offset)
{
    if (which == RETURN) {
        row->rule.return_offset = (int32_t)offset;
    } else if (which == POINTER) {
        row->rule.pointer_offset = (int32_t)offset;
    } else if (which == STACK) {
        row->is_odd = true;
    }
}

static void set_as_before(struct machine *machine, uint64_t which)
{
    if (which == RETURN) {
        machine->row.rule.return_offset = machine->initial.rule.return_offset;
    } else if (which == POINTER) {
        machine->row.rule.pointer_offset = machine->initial.rule.pointer_offset;
    }
}

// A register is saved where no rule can express it.
static void set_elsewhere(struct row *row, uint64_t which)
{
    row->is_odd |= which == RETURN || which == POINTER || which == STACK;
}

enum {
    OP_POINTER = 0x70 + POINTER,
    OP_WHAT_LIES_THERE = 0x06
}; // DW_OP_breg0 + register, DW_OP_deref

// In functions that align their stack, the end of the caller's frame is stored at frame pointer + offset.
// No other expression is understood.
static void set_base_expression(struct row *row, struct cursor expression)
{
    const bool is_of_pointer = take(&expression, 1) == OP_POINTER;
    row->rule.offset = (int32_t)take_sleb(&expression);
    const bool is_what_lies_there = take(&expression, 1) == OP_WHAT_LIES_THERE;
    row->rule.kind = is_of_pointer && is_what_lies_there && expression.at == expression.end
                         ? HAK_FRAME_SAVED
                         : HAK_FRAME_UNKNOWN;
}

// In these functions the caller's frame pointer lies where their own points to. False: another expression.
static bool set_saved_at_pointer(struct row *row, uint64_t which, struct cursor expression)
{
    const bool is_known = which == POINTER && take(&expression, 1) == OP_POINTER &&
                          take_sleb(&expression) == 0 && expression.at == expression.end;
    if (is_known) {
        row->rule.pointer_offset = HAK_FRAME_AT_POINTER;
    }
    return is_known;
}

// Run an instruction that says where the caller's frame ends. False: it is another one.
static bool run_base(struct machine *machine, unsigned code, struct cursor *program)
{
    struct row *row = &machine->row;
    switch (code) {
    case 0x0C: // def_cfa
        set_base(row, take_uleb(program));
        row->rule.offset = (int32_t)take_uleb(program);
        return true;
    case 0x12: // def_cfa_sf
        set_base(row, take_uleb(program));
        row->rule.offset = (int32_t)(take_sleb(program) * machine->data_step);
        return true;
    case 0x0D: // def_cfa_register
        set_base(row, take_uleb(program));
        return true;
    case 0x0E: // def_cfa_offset
        row->rule.offset = (int32_t)take_uleb(program);
        return true;
    case 0x13: // def_cfa_offset_sf
        row->rule.offset = (int32_t)(take_sleb(program) * machine->data_step);
        return true;
    case 0x0F: // def_cfa_expression
        set_base_expression(row, take_block(*program));
        skip_block(program);
        return true;
    default:
        return false;
    }
}

// Run another instruction, except those that advance in the code. False: it is unknown.
static bool run_one(struct machine *machine, unsigned code, struct cursor *program)
{
    struct row *row = &machine->row;
    uint64_t which;
    switch (code) {
    case 0x00: // nop
        return true;
    case 0x05: // offset_extended
        which = take_uleb(program);
        set_saved(row, which, (int64_t)take_uleb(program) * machine->data_step);
        return true;
    case 0x11: // offset_extended_sf
        which = take_uleb(program);
        set_saved(row, which, take_sleb(program) * machine->data_step);
        return true;
    case 0x06: // restore_extended
        set_as_before(machine, take_uleb(program));
        return true;
    case 0x07: // undefined: for the return address, the end of the stack
        if (take_uleb(program) == RETURN) {
            row->rule.return_offset = 0;
        }
        return true;
    case 0x08: // same_value
        take_uleb(program);
        return true;
    case 0x09: // register
        set_elsewhere(row, take_uleb(program));
        take_uleb(program);
        return true;
    case 0x0A: // remember_state
        if (machine->remembered_count == ROWS_MAX) {
            return false;
        }
        machine->remembered[machine->remembered_count++] = *row;
        return true;
    case 0x0B: // restore_state
        if (machine->remembered_count == 0) {
            return false;
        }
        *row = machine->remembered[--machine->remembered_count];
        return true;
    case 0x10: // expression
        which = take_uleb(program);
        if (!set_saved_at_pointer(row, which, take_block(*program))) {
            set_elsewhere(row, which);
        }
        skip_block(program);
        return true;
    case 0x16: // val_expression
        set_elsewhere(row, take_uleb(program));
        skip_block(program);
        return true;
    case 0x2D: // aarch64: the return address is signed
        return true;
    case 0x2E: // GNU_args_size
        take_uleb(program);
        return true;
    default:
        return run_base(machine, code, program);
    }
}

// Run a program up to the instruction at `target`. It begins with the instruction at `at`.
static bool run(struct machine *machine, struct cursor program, uintptr_t at, uintptr_t target)
{
    while (program.at < program.end) {
        const unsigned code = (unsigned)take(&program, 1);
        const unsigned low = code & 0x3F;
        uint64_t steps = 0;
        switch (code >> 6) {
        case 1: // advance_loc
            steps = low;
            break;
        case 2: // offset
            set_saved(&machine->row, low, (int64_t)take_uleb(&program) * machine->data_step);
            continue;
        case 3: // restore
            set_as_before(machine, low);
            continue;
        default:
            if (code >= 0x02 && code <= 0x04) { // advance_loc1, 2 and 4
                steps = take(&program, 1U << (code - 2));
            } else if (run_one(machine, code, &program)) {
                continue;
            } else {
                return false;
            }
        }
        at += steps * machine->code_step;
        if (at > target) {
            return true;
        }
    }
    return true;
}

static struct hak_frame_rule rule_in(const uint8_t *function, uintptr_t address)
{
    const struct hak_frame_rule unknown = {.kind = HAK_FRAME_UNKNOWN};
    const struct hak_frame_rule odd = {.kind = HAK_FRAME_END};
    struct cursor record = record_at(function);
    const uint8_t *place = record.at;
    const struct common common = read_common(place - take(&record, 4));
    if (!common.is_known) {
        return odd;
    }
    const uintptr_t begin = take_address(&record, common.address_encoding, 0);
    const uintptr_t bytes = take_address(&record, common.address_encoding & 0x0F, 0);
    if (address - begin >= bytes) {
        return unknown;
    }
    if (common.has_augmentation) {
        skip_block(&record);
    }
    struct machine machine = {.code_step = common.code_step, .data_step = common.data_step};
    if (!run(&machine, common.program, 0, UINTPTR_MAX)) {
        return odd;
    }
    machine.initial = machine.row;
    if (!run(&machine, record, begin, address) || machine.row.is_odd ||
        machine.row.rule.kind == HAK_FRAME_UNKNOWN) {
        return odd;
    }
    if (machine.row.rule.return_offset == 0) {
        machine.row.rule.kind = HAK_FRAME_END;
    }
    return machine.row.rule;
}

// Find the function's record in the table that is sorted by address. An entry has 4 bytes each for the start
// of the function and for the place of its record, both relative to the table's start.
static const uint8_t *find_function(const uint8_t *table, uintptr_t address)
{
    enum { SORTED = 0x3B }; // the one encoding that linkers write
    struct cursor cursor = {table, table + 12};
    const uint64_t version = take(&cursor, 1);
    const unsigned start_encoding = (unsigned)take(&cursor, 1);
    const unsigned count_encoding = (unsigned)take(&cursor, 1);
    const unsigned encoding = (unsigned)take(&cursor, 1);
    if (version != 1 || encoding != SORTED || start_encoding != 0x1B || count_encoding != 0x03) {
        return NULL;
    }
    take(&cursor, 4);
    const uint32_t count = (uint32_t)take(&cursor, 4);
    const int32_t *entries = (const int32_t *)(const void *)cursor.at;
    const intptr_t wanted = (intptr_t)(address - (uintptr_t)table);
    size_t first = 0; // entries below it begin at or before the address
    for (size_t left = count; left > 0;) {
        const size_t half = left / 2;
        if (entries[2 * (first + half)] <= wanted) {
            first += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    return first > 0 ? table + entries[2 * (first - 1) + 1] : NULL;
}

// NULL if the C library cannot find a file's tables without a lock: then the walk uses frame pointers.
static const uint8_t *find_table(uintptr_t address)
{
    struct hak_found_object found;
    if (hak_find_object == NULL || hak_find_object((void *)address, &found) != 0) {
        return NULL;
    }
    return found.frame_table;
}

struct hak_frame_rule hak_frame_table_rule_of(uintptr_t return_address)
{
    const uintptr_t address =
        return_address - 1; // of the call: what follows may be another function
    const uint8_t *table = find_table(address);
    const uint8_t *function = table != NULL ? find_function(table, address) : NULL;
    return function != NULL ? rule_in(function, address)
                            : (struct hak_frame_rule){.kind = HAK_FRAME_UNKNOWN};
}
