// control.c -- the control block, the root of the metadata, made from layout.def by the compiler. It has no code,
// and no relocations except for the addresses of the roots.
#include "hakmem/control.h"

#include "base/options.h"
#include "base/timing.h"
#include "cache/cache.h"
#include "cache/due.h"
#include "cache/reclaim.h"
#include "cache/registry.h"
#include "failures/cause.h"
#include "failures/failure.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "meta/size_class.h"
#include "os/os.h"
#include "owner/inbox.h"
#include "policy/decisions.h"
#include "policy/trial.h"
#include "policy/tuner.h"
#include "profile/sample.h"
#include "profile/sampler.h"
#include "python/functions.h"
#include "python/python.h"
#include "secure/guard.h"
#include "secure/harden.h"
#include "secure/states.h"
#include "slab/arena.h"
#include "slab/slab.h"
#include "stacks/code.h"

// All texts, one behind the other. A table has the offset of a text, which needs no relocation, as its
// address would.
struct texts {
    char release[sizeof HAKMEM_VERSION];
#define HAK_STRUCT(of)          char of##_struct[sizeof #of];
#define HAK_STRUCT_AS(of, name) char of##_struct[sizeof #name];
#define HAK_FIELD(of, member, kind, about, help) \
    char of##_##member##_name[sizeof #member];   \
    char of##_##member##_about[sizeof about];    \
    char of##_##member##_help[sizeof help];
#define HAK_CONSTANT(name, value, help) \
    char name##_constant[sizeof #name]; \
    char name##_constant_help[sizeof help];
#define HAK_ROOT(name, of, count, help) \
    char name##_root[sizeof #name];     \
    char name##_root_help[sizeof help];
#include "observe/layout.def"
};

enum {
#define HAK_STRUCT(of) STRUCT_##of,
#include "observe/layout.def"
    STRUCTS
};
enum {
#define HAK_FIELD(of, member, kind, about, help) FIELD_##of##_##member,
#include "observe/layout.def"
    FIELDS
};
enum {
#define HAK_CONSTANT(name, value, help) CONSTANT_##name,
#include "observe/layout.def"
    CONSTANTS
};
enum {
#define HAK_ROOT(name, of, count, help) ROOT_##name,
#include "observe/layout.def"
    ROOTS
};

struct control {
    struct hak_control head;
    struct hak_control_root roots[ROOTS];
    struct hak_control_constant constants[CONSTANTS];
    struct hak_control_struct structs[STRUCTS];
    struct hak_control_field fields[FIELDS];
    struct texts texts;
};

#define TABLE(name, count, record) {offsetof(struct control, name), (count), record}
#define TEXT(name)                 offsetof(struct texts, name)
#define OFFSET(of, name)           offsetof(struct of, name)
#define MEMBER(of, name)           (((const struct of *)0)->name)

HAK_IN_CORE static const struct control control HAK_ALIGNED(16) = {
    .head =
        {
            .magic = HAK_CONTROL_MAGIC,
            .version = HAK_CONTROL_VERSION,
            .bytes = sizeof(struct control),
            .self = &control.head,
            .structs = TABLE(structs, STRUCTS, sizeof(struct hak_control_struct)),
            .fields = TABLE(fields, FIELDS, sizeof(struct hak_control_field)),
            .constants = TABLE(constants, CONSTANTS, sizeof(struct hak_control_constant)),
            .roots = TABLE(roots, ROOTS, sizeof(struct hak_control_root)),
            .texts = TABLE(texts, sizeof(struct texts), 1),
            .release = TEXT(release),
        },
    .roots =
        {
#define HAK_ROOT(name, of, count, help) \
    {&name, TEXT(name##_root), TEXT(of##_struct), (count), TEXT(name##_root_help)},
#include "observe/layout.def"
        },
    .constants =
        {
#define HAK_CONSTANT(name, value, help) \
    {(value), TEXT(name##_constant), TEXT(name##_constant_help)},
#include "observe/layout.def"
        },
    .structs =
        {
#define HAK_STRUCT(of) {TEXT(of##_struct), sizeof(struct of)},
#include "observe/layout.def"
        },
    .fields =
        {
#define RECORD(of, member, kind, bytes, count) \
    {TEXT(of##_struct),                        \
     TEXT(of##_##member##_name),               \
     TEXT(of##_##member##_about),              \
     TEXT(of##_##member##_help),               \
     OFFSET(of, member),                       \
     (bytes),                                  \
     (count),                                  \
     HAK_CONTROL_##kind},
#define HAK_FIELD(of, member, kind, about, help) \
    RECORD(of, member, kind, sizeof MEMBER(of, member), 1)
#define HAK_ARRAY(of, member, kind, about, help) \
    RECORD(of,                                   \
           member,                               \
           kind,                                 \
           sizeof MEMBER(of, member)[0],         \
           sizeof MEMBER(of, member) / sizeof MEMBER(of, member)[0])
#define HAK_TAIL(of, member, kind, about, help) \
    RECORD(of, member, kind, sizeof MEMBER(of, member)[0], 0)
#include "observe/layout.def"
        },
    .texts =
        {
            .release = HAKMEM_VERSION,
#define HAK_STRUCT(of)          .of##_struct = #of,
#define HAK_STRUCT_AS(of, name) .of##_struct = #name,
#define HAK_FIELD(of, member, kind, about, help) \
    .of##_##member##_name = #member, .of##_##member##_about = about, .of##_##member##_help = help,
#define HAK_CONSTANT(name, value, help) .name##_constant = #name, .name##_constant_help = help,
#define HAK_ROOT(name, of, count, help) .name##_root = #name, .name##_root_help = help,
#include "observe/layout.def"
        },
};

extern const struct hak_control hak_control __attribute__((alias("control")));
