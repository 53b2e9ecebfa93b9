// control.h -- the root of hakmem's metadata, for tools that read a process or a core dump from outside.
//
// The symbol `hak_control` begins with a struct hak_control. Tables follow that name everything a
// reader needs: structs with the offset, width, unit and meaning of each field, constants, and the
// addresses of the variables to start from. A reader finds all of it by name, so it may be older or
// newer than the library: it skips what it does not know, and it can name what it needs and does not
// find. No code of the process runs for that, and nothing is written.
//
// All of it lies in the data segment, and so in core dumps, even if the library's file is gone. A
// reader can find it without the symbol: `magic` stands at a multiple of 16 bytes in the data of a
// mapped file, and `self` tells it from a copy.
#ifndef HAKMEM_CONTROL_H
#define HAKMEM_CONTROL_H

#include <stdint.h>

#include "hakmem/hakmem.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HAK_CONTROL_MAGIC "hakmem\0"
// The version of the layout in this file. If it is another one, none of the tables can be read.
#define HAK_CONTROL_VERSION 2

// Where a table lies. Later releases may add to the end of its records: `record_bytes` is their length.
struct hak_control_table {
    uint32_t offset; // from the start of struct hak_control
    uint32_t count;
    uint32_t record_bytes;
};

struct hak_control {
    char magic[8];
    uint32_t version;
    uint32_t bytes; // of this struct and all tables
    const struct hak_control *self;
    struct hak_control_table structs;   // of struct hak_control_struct
    struct hak_control_table fields;    // of struct hak_control_field
    struct hak_control_table constants; // of struct hak_control_constant
    struct hak_control_table roots;     // of struct hak_control_root
    struct hak_control_table texts;     // of characters
    uint32_t release;                   // text: as hak_version()
};

// Each text below is given by its offset in the table of texts, and ends with a 0.

struct hak_control_struct {
    uint32_t name;
    uint32_t bytes;
};

enum hak_control_kind {
    HAK_CONTROL_NUMBER, // unsigned; `about` is its unit
    HAK_CONTROL_ADDRESS, // of the struct, or the array of structs, that `about` names; empty: of bytes
    HAK_CONTROL_STRUCT, // the struct that `about` names lies here
};

struct hak_control_field {
    uint32_t of; // text: the struct's name
    uint32_t name;
    uint32_t about;
    uint32_t help;
    uint32_t offset;
    uint32_t bytes; // of one element
    uint32_t count; // of elements, 1 unless it is an array; 0: as many as follow
    uint32_t kind;  // enum hak_control_kind
};

struct hak_control_constant {
    uint64_t value;
    uint32_t name;
    uint32_t help;
};

// A variable that is a struct, or an array of structs.
struct hak_control_root {
    const void *address;
    uint32_t name;
    uint32_t of; // text: the struct's name
    uint32_t count;
    uint32_t help;
};

HAKMEM_API extern const struct hak_control hak_control;

#ifdef __cplusplus
}
#endif

#endif
