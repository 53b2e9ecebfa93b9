#include "proof.h"

#include "elf_file.h"
#include "json.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    // Limits on what is read from a process that may be broken.
    OBJECTS_MAX = 1024,
    HEADERS_MAX = 128,
    DYNAMIC_MAX = 256,
    SLOTS_MAX = 4096,
    AUXV_MAX = 64,
};

static const char *const family[] = {
    "malloc",
    "free",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "malloc_usable_size",
};
enum { FAMILY_COUNT = sizeof(family) / sizeof(family[0]) };

struct mapping {
    uint64_t start;
    uint64_t end;
    char *path; // "" when anonymous
};

struct object {
    uint64_t base;
    const char *path; // owned by the mapping
    struct elf_file file;
};

// What is known of the stopped process while it is examined.
struct view {
    pid_t pid;
    int memory; // its /proc/PID/mem
    struct mapping *mappings;
    size_t mapping_count;
    struct object *objects; // in lookup order; the program first
    size_t object_count;
};

static void set_add(struct string_set *set, const char *text)
{
    for (size_t index = 0; index < set->count; index++) {
        if (strcmp(set->texts[index], text) == 0) {
            return;
        }
    }
    char **texts = realloc(set->texts, (set->count + 1) * sizeof(*texts));
    char *copy = strdup(text);
    if (texts == NULL || copy == NULL) {
        fputs("measure: out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    texts[set->count++] = copy;
    set->texts = texts;
}

static void set_free(struct string_set *set)
{
    for (size_t index = 0; index < set->count; index++) {
        free(set->texts[index]);
    }
    free(set->texts);
}

static bool read_memory(const struct view *view, uint64_t address, void *target, size_t bytes)
{
    return pread(view->memory, target, bytes, (off_t)address) == (ssize_t)bytes;
}

static bool read_mappings(struct view *view)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)view->pid);
    FILE *stream = fopen(path, "re");
    if (stream == NULL) {
        return false;
    }
    char *line = NULL;
    size_t line_bytes = 0;
    while (getline(&line, &line_bytes, stream) > 0) {
        unsigned long start = 0;
        unsigned long end = 0;
        int name_at = 0;
        if (sscanf(line, "%lx-%lx %*s %*x %*s %*u %n", &start, &end, &name_at) < 2) {
            continue;
        }
        line[strcspn(line, "\n")] = '\0';
        size_t bytes = (view->mapping_count + 1) * sizeof(struct mapping);
        struct mapping *grown = realloc(view->mappings, bytes);
        char *copy = strdup(name_at > 0 ? line + name_at : "");
        if (grown == NULL || copy == NULL) {
            fputs("measure: out of memory\n", stderr);
            exit(EXIT_FAILURE);
        }
        view->mappings = grown;
        view->mappings[view->mapping_count++] = (struct mapping){start, end, copy};
    }
    free(line);
    fclose(stream);
    return view->mapping_count > 0;
}

// The file that is mapped at `address`; "" for anonymous memory, NULL for none.
static const char *path_at(const struct view *view, uint64_t address)
{
    for (size_t index = 0; index < view->mapping_count; index++) {
        if (address >= view->mappings[index].start && address < view->mappings[index].end) {
            return view->mappings[index].path;
        }
    }
    return NULL;
}

static bool read_auxiliary(const struct view *view, uint64_t *headers, uint64_t *count)
{
    char path[64];
    Elf64_auxv_t entries[AUXV_MAX] = {0};
    snprintf(path, sizeof(path), "/proc/%d/auxv", (int)view->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t bytes = read(fd, entries, sizeof(entries));
    close(fd);
    for (size_t index = 0; bytes > 0 && index < (size_t)bytes / sizeof(entries[0]); index++) {
        if (entries[index].a_type == AT_PHDR) {
            *headers = entries[index].a_un.a_val;
        } else if (entries[index].a_type == AT_PHNUM) {
            *count = entries[index].a_un.a_val;
        }
    }
    return *headers != 0 && *count != 0 && *count <= HEADERS_MAX;
}

// The address of the program's dynamic section; 0 in a static program.
static uint64_t find_dynamic(const struct view *view, const char **error)
{
    uint64_t address = 0;
    uint64_t count = 0;
    Elf64_Phdr headers[HEADERS_MAX];
    if (!read_auxiliary(view, &address, &count) ||
        !read_memory(view, address, headers, count * sizeof(headers[0]))) {
        *error = "cannot read the program's headers";
        return 0;
    }
    uint64_t bias = 0;
    uint64_t dynamic = 0;
    bool has_interpreter = false;
    for (size_t index = 0; index < count; index++) {
        if (headers[index].p_type == PT_PHDR) {
            bias = address - headers[index].p_vaddr;
        } else if (headers[index].p_type == PT_DYNAMIC) {
            dynamic = headers[index].p_vaddr;
        } else if (headers[index].p_type == PT_INTERP) {
            has_interpreter = true;
        }
    }
    return has_interpreter && dynamic != 0 ? bias + dynamic : 0;
}

// The head of the dynamic linker's list of objects; 0 when it has none yet.
static uint64_t find_link_map(const struct view *view, uint64_t dynamic)
{
    for (size_t index = 0; index < DYNAMIC_MAX; index++) {
        Elf64_Dyn entry;
        if (!read_memory(view, dynamic + index * sizeof(entry), &entry, sizeof(entry)) ||
            entry.d_tag == DT_NULL) {
            return 0;
        }
        struct r_debug debug;
        if (entry.d_tag == DT_DEBUG) {
            return read_memory(view, entry.d_un.d_ptr, &debug, sizeof(debug))
                       ? (uint64_t)debug.r_map
                       : 0;
        }
    }
    return 0;
}

// Load the list of objects. Returns NULL, or why it cannot be trusted.
static const char *load_objects(struct view *view, uint64_t link)
{
    view->objects = calloc(OBJECTS_MAX, sizeof(struct object));
    if (view->objects == NULL) {
        return "out of memory";
    }
    while (link != 0) {
        struct link_map entry;
        if (view->object_count == OBJECTS_MAX || !read_memory(view, link, &entry, sizeof(entry))) {
            return "cannot read the list of loaded objects";
        }
        link = (uint64_t)entry.l_next;
        // By address, not by name: the name may be relative or a symbolic link.
        const char *path = path_at(view, (uint64_t)entry.l_ld);
        if (path == NULL || path[0] == '[') {
            continue; // the kernel's own object has no file
        }
        struct object *object = &view->objects[view->object_count];
        object->base = entry.l_addr;
        object->path = path;
        if (strstr(path, " (deleted)") != NULL) {
            return "a loaded library was replaced while the program ran";
        }
        if (!elf_open(&object->file, path)) {
            return "a loaded object cannot be read";
        }
        view->object_count++;
    }
    return view->object_count == 0 ? "the program has not reached its dynamic linker" : NULL;
}

// Where the object mapped from `path` has its own `name`; 0 when it has none.
static uint64_t address_of(const struct view *view, const char *path, const char *name)
{
    for (size_t index = 0; index < view->object_count; index++) {
        const struct object *object = &view->objects[index];
        if (strcmp(object->path, path) == 0) {
            uint64_t offset = elf_exported_at(&object->file, name);
            return offset == 0 ? 0 : object->base + offset;
        }
    }
    return 0;
}

static void add_first_definers(const struct view *view, struct proof *proof)
{
    for (size_t name = 0; name < FAMILY_COUNT; name++) {
        for (size_t index = 0; index < view->object_count; index++) {
            if (elf_exported_at(&view->objects[index].file, family[name]) != 0) {
                set_add(&proof->owners, view->objects[index].path);
                break;
            }
        }
    }
}

// A slot that points into the importing object or the program, but not at such a
// function there, still points at a stub: nothing was called through it so far.
static bool is_unresolved(const struct view *view,
                          const struct object *object,
                          uint64_t value,
                          const char *target,
                          const char *name)
{
    bool is_own = strcmp(target, object->path) == 0;
    bool is_program = strcmp(target, view->objects[0].path) == 0;
    return (is_own || is_program) && address_of(view, target, name) != value;
}

static void add_bound_slots(const struct view *view, struct proof *proof)
{
    static struct elf_slot slots[SLOTS_MAX];
    for (size_t index = 0; index < view->object_count; index++) {
        const struct object *object = &view->objects[index];
        size_t count = elf_find_slots(&object->file, family, FAMILY_COUNT, slots, SLOTS_MAX);
        for (size_t slot = 0; slot < count; slot++) {
            uint64_t value = 0;
            if (!read_memory(view, object->base + slots[slot].offset, &value, sizeof(value)) ||
                value == 0) {
                continue;
            }
            const char *target = path_at(view, value);
            target = target == NULL || target[0] == '\0' ? "[anonymous]" : target;
            if (is_unresolved(view, object, value, target, family[slots[slot].name])) {
                continue;
            }
            proof->bound_slots++;
            set_add(&proof->owners, target);
            if (strcmp(target, object->path) != 0) {
                set_add(&proof->importers, object->path);
            }
        }
    }
}

static const char *examine(struct view *view, struct proof *proof)
{
    const char *error = NULL;
    if (view->memory < 0 || !read_mappings(view)) {
        return "cannot read the process";
    }
    uint64_t dynamic = find_dynamic(view, &error);
    if (error != NULL) {
        return error;
    }
    if (dynamic == 0) {
        proof->is_static = true;
        return "the program is static: nothing can be preloaded";
    }
    error = load_objects(view, find_link_map(view, dynamic));
    if (error != NULL) {
        return error;
    }
    proof->has_private_malloc = elf_has_private_function(&view->objects[0].file, "malloc");
    add_first_definers(view, proof);
    add_bound_slots(view, proof);
    return NULL;
}

void proof_collect(struct proof *proof, pid_t pid)
{
    char path[64];
    struct view view = {.pid = pid};
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    view.memory = open(path, O_RDONLY | O_CLOEXEC);
    proof->error = examine(&view, proof);
    for (size_t index = 0; index < view.object_count; index++) {
        elf_close(&view.objects[index].file);
    }
    for (size_t index = 0; index < view.mapping_count; index++) {
        free(view.mappings[index].path);
    }
    free(view.mappings);
    free(view.objects);
    if (view.memory >= 0) {
        close(view.memory);
    }
}

void proof_free(struct proof *proof)
{
    set_free(&proof->owners);
    set_free(&proof->importers);
    memset(proof, 0, sizeof(*proof));
}

void proof_print(const struct proof *proof, FILE *stream)
{
    fputs("{\"owners\":", stream);
    json_strings(stream, proof->owners.texts, proof->owners.count);
    fputs(",\"importers\":", stream);
    json_strings(stream, proof->importers.texts, proof->importers.count);
    fprintf(stream,
            ",\"bound_slots\":%zu,\"static\":%s,\"private_malloc\":%s,\"error\":",
            proof->bound_slots,
            proof->is_static ? "true" : "false",
            proof->has_private_malloc ? "true" : "false");
    if (proof->error == NULL) {
        fputs("null}", stream);
    } else {
        json_string(stream, proof->error);
        fputc('}', stream);
    }
}
