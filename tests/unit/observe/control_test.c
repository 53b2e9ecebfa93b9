// The control block is right: a reader that knows only its layout finds every text, every field
// inside its struct, and behind each root what the allocator itself has there.
#include <hakmem/control.h>

#include "../census.h"
#include "slab/arena.h"

static const char *text_at(uint32_t offset)
{
    UNIT_CHECK(offset < hak_control.texts.count);
    return (const char *)&hak_control + hak_control.texts.offset + offset;
}

static const void *record(const struct hak_control_table *table, uint32_t index)
{
    const size_t end = table->offset + (size_t)table->count * table->record_bytes;
    UNIT_CHECK(index < table->count && end <= hak_control.bytes);
    return (const char *)&hak_control + table->offset + (size_t)index * table->record_bytes;
}

static const struct hak_control_struct *struct_named(const char *name)
{
    for (uint32_t i = 0; i < hak_control.structs.count; i++) {
        const struct hak_control_struct *one = record(&hak_control.structs, i);
        if (strcmp(text_at(one->name), name) == 0) {
            return one;
        }
    }
    return NULL;
}

static const struct hak_control_field *field_named(const char *of, const char *name)
{
    for (uint32_t i = 0; i < hak_control.fields.count; i++) {
        const struct hak_control_field *one = record(&hak_control.fields, i);
        if (strcmp(text_at(one->of), of) == 0 && strcmp(text_at(one->name), name) == 0) {
            return one;
        }
    }
    fprintf(stderr, "no field %s.%s\n", of, name);
    _Exit(1);
}

static uint64_t number_in(const void *start, const char *of, const char *name)
{
    const struct hak_control_field *field = field_named(of, name);
    uint64_t value = 0; // little-endian
    UNIT_CHECK(field->bytes <= sizeof value);
    memcpy(&value, (const char *)start + field->offset, field->bytes);
    return value;
}

static const void *root_named(const char *name)
{
    for (uint32_t i = 0; i < hak_control.roots.count; i++) {
        const struct hak_control_root *root = record(&hak_control.roots, i);
        if (strcmp(text_at(root->name), name) == 0) {
            UNIT_CHECK(struct_named(text_at(root->of)) != NULL);
            return root->address;
        }
    }
    fprintf(stderr, "no root %s\n", name);
    _Exit(1);
}

static void the_head_names_itself(void)
{
    UNIT_CHECK(memcmp(hak_control.magic, HAK_CONTROL_MAGIC, sizeof hak_control.magic) == 0);
    UNIT_CHECK(hak_control.self == &hak_control && (uintptr_t)&hak_control % 16 == 0);
    UNIT_EQUAL(hak_control.version, HAK_CONTROL_VERSION);
    UNIT_CHECK(strcmp(text_at(hak_control.release), HAKMEM_VERSION) == 0);
}

static void every_field_lies_in_its_struct(void)
{
    for (uint32_t i = 0; i < hak_control.fields.count; i++) {
        const struct hak_control_field *field = record(&hak_control.fields, i);
        const struct hak_control_struct *of = struct_named(text_at(field->of));
        UNIT_CHECK(of != NULL);
        UNIT_CHECK(field->offset + field->bytes * field->count <= of->bytes);
        const char *about = text_at(field->about);
        const struct hak_control_struct *led_to = struct_named(about);
        if (field->kind == HAK_CONTROL_STRUCT) {
            UNIT_CHECK(led_to != NULL && field->bytes == led_to->bytes);
        } else if (field->kind == HAK_CONTROL_ADDRESS) {
            UNIT_CHECK(field->bytes == sizeof(void *) && (led_to != NULL || *about == '\0'));
        } else {
            UNIT_CHECK(field->kind == HAK_CONTROL_NUMBER && field->bytes <= 8);
        }
    }
}

static void a_reader_sees_what_the_allocator_sees(void)
{
    enum { CLASS = 6, BLOCKS = 100 };
    struct hak_cache *cache = new_thread();
    for (size_t i = 0; i < BLOCKS; i++) {
        alloc(CLASS);
    }
    UNIT_EQUAL(number_in(root_named("hak_registry"), "hak_registry", "all"), (uintptr_t)cache);
    UNIT_EQUAL(number_in(&cache->owner, "hak_owner", "tag"), cache->owner.tag);
    const void *arena = root_named("hak_arena");
    UNIT_EQUAL(number_in(arena, "hak_arena", "super_bytes"), HAK_SUPER_BYTES);
    const char *link = (const char *)number_in(
        (const char *)arena + field_named("hak_arena", "all")->offset, "hak_list", "next");
    const char *super = link - field_named("hak_super", "all_link")->offset;
    const char *slab = super + field_named("hak_super", "slabs")->offset;
    UNIT_EQUAL(number_in(slab, "hak_slab", "owner"), (uintptr_t)&cache->owner);
    UNIT_EQUAL(number_in(slab, "hak_slab", "size_class"), CLASS);
    const struct hak_control_field *magazines = field_named("hak_cache", "magazines");
    const char *of_class = (const char *)cache + magazines->offset + CLASS * magazines->bytes +
                           field_named("hak_magazine", "counts")->offset;
    UNIT_EQUAL(number_in(of_class, "hak_class_counts", "refilled_blocks"),
               number_in(slab, "hak_slab", "fresh"));
}

int main(void)
{
    the_head_names_itself();
    every_field_lies_in_its_struct();
    a_reader_sees_what_the_allocator_sees();
    return 0;
}
