//! Functions that are not interesting as the place of an allocation, as they allocate for others. Languages have a dozen of
//! them between a program's own line and malloc, always the same ones.

use super::interpreters::is_always_machinery;

/// The role of a frame for a user who looks for the place of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A function of the program, or of a library that is not known here.
    Own,
    /// A function with which a language or the C library allocates.
    Machinery,
    /// Code that runs before the program's first line, in a process or a thread.
    Beginning,
}

/// Functions of C, and languages' names for calling them.
const ALLOCATING: [&str; 54] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "hak_malloc",
    "hak_calloc",
    "hak_realloc",
    "hak_reallocarray",
    "hak_aligned_alloc",
    "hak_posix_memalign",
    "hak_replaced_malloc",
    "hak_heap_malloc",
    "hak_heap_calloc",
    "hak_heap_aligned_alloc",
    "strdup",
    "strndup",
    "wcsdup",
    "asprintf",
    "vasprintf",
    "getline",
    "getdelim",
    "xmalloc",
    "xcalloc",
    "xrealloc",
    "xzalloc",
    "xstrdup",
    "xstrndup",
    "xmemdup",
    "g_malloc",
    "g_malloc0",
    "g_malloc_n",
    "g_malloc0_n",
    "g_realloc",
    "g_realloc_n",
    "g_try_malloc",
    "g_slice_alloc",
    "g_slice_alloc0",
    "g_strdup",
    "g_strndup",
    "g_strdup_printf",
    "g_memdup2",
    "PyMem_Malloc",
    "PyMem_RawMalloc",
    "PyObject_Malloc",
    "crosscall2",
    "allocate_dtv",
    "allocate_stack",
    "pthread_create",
    "operator new",
];

/// The beginnings of machinery's names: C++ (Itanium names are those that were not demangled), Rust's glue, cgo, Swift.
const BEGINNINGS_OF_NAMES: [&str; 21] = [
    "operator new",
    "__gnu_cxx::",
    "_ZSt",
    "_ZNSt",
    "_ZNKSt",
    "_ZN9__gnu_cxx",
    "_M_",
    "_S_",
    "_IO_",
    "_dl_",
    "_cgo_",
    "x_cgo_",
    "_PyMem_",
    "_PyObject_Malloc",
    "_PyObject_Realloc",
    "swift::",
    "swift_",
    "_swift_",
    "Swift.",
    "$ss",
    "$sS",
];

/// Namespaces and crates that allocate for others. Rust's names may begin with `<`.
const LIBRARIES: [&str; 7] = [
    "std",
    "alloc",
    "core",
    "hashbrown",
    "__gnu_cxx",
    "__rustc",
    "allocator_api2",
];

/// The beginnings of names of Rust's own functions of such types.
const PRIMITIVE_OF_RUST: [&str; 8] = ["str", "u8", "u16", "u32", "u64", "char", "T", "_"];

/// Headers of the C++ library. Debugging information may name their functions without their scopes.
const HEADERS: [&str; 32] = [
    "alloc_traits.h",
    "allocator.h",
    "basic_string.h",
    "basic_string.tcc",
    "deque.tcc",
    "forward_list.h",
    "functional",
    "functional_hash.h",
    "future",
    "hashtable.h",
    "hashtable_policy.h",
    "invoke.h",
    "list.tcc",
    "move.h",
    "new_allocator.h",
    "node_handle.h",
    "ptr_traits.h",
    "shared_ptr.h",
    "shared_ptr_atomic.h",
    "shared_ptr_base.h",
    "sstream",
    "std_function.h",
    "std_thread.h",
    "streambuf",
    "string_conversions.h",
    "thread",
    "tuple",
    "unique_ptr.h",
    "unordered_map.h",
    "unordered_set.h",
    "variant",
    "vector.tcc",
];

/// Libraries of languages and of the system; used for frames without a name.
const MODULES: [&str; 10] = [
    "libhakmem",
    "libstdc++.so",
    "libc++.so",
    "libc++abi.so",
    "libgcc_s.so",
    "libc.so",
    "libpthread.so",
    "ld-linux",
    "ld-musl",
    "libswiftCore.so",
];

const BEFORE_THE_PROGRAM: [&str; 16] = [
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "__libc_start_main_impl",
    "__libc_csu_init",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "call_init",
    "_dl_init",
    "_dl_start_user",
    "__static_initialization_and_destruction_0",
    "runtime.goexit",
    "runtime.main",
];

/// `name`: the function's, without its return type; empty if there is none. `place`: its source file and line, or its library.
pub fn role(name: &str, place: &str) -> Role {
    let base = name
        .split(['<', '(', '['])
        .next()
        .unwrap_or_default()
        .trim_end();
    if BEFORE_THE_PROGRAM.contains(&base)
        || name.starts_with("std::rt::")
        || name.starts_with("_GLOBAL__sub_I_")
    {
        return Role::Beginning;
    }
    let file = place.split(':').next().unwrap_or_default();
    let is_machinery = ALLOCATING.contains(&base)
        || BEGINNINGS_OF_NAMES
            .iter()
            .any(|begin| name.starts_with(begin))
        || is_of_language(name, file)
        || is_reserved(name)
        || is_cgo(name)
        || is_our_operator(name, place)
        || is_always_machinery(name, place)
        || HEADERS.contains(&file)
        || file.starts_with("stl_")
        || MODULES.iter().any(|module| place.starts_with(module));
    if is_machinery {
        Role::Machinery
    } else {
        Role::Own
    }
}

/// Is it a part of hakmem's operator new? hakmem's debugging information has such names.
pub fn is_our_operator(name: &str, place: &str) -> bool {
    name.starts_with("new_") && place.starts_with("operators.c:")
}

/// The C standard reserves names with two underscores for implementations. Fortran's modules use them, too: "__pool_MOD_grow".
fn is_reserved(name: &str) -> bool {
    name.starts_with("__") && !name.contains("_MOD_")
}

/// Go: the runtime, and the functions that cgo generates for calls of C.
fn is_cgo(name: &str) -> bool {
    name.starts_with("runtime.")
        || name.starts_with("runtime/")
        || name.contains("._Cfunc_")
        || name.contains("._C2func_")
}

/// "std::vector<…>::push_back", "<alloc::vec::Vec<T> as core::clone::Clone>::clone". If a program implements something for a
/// language's type, or a language's trait for its own type, the function is the program's.
fn is_of_language(name: &str, file: &str) -> bool {
    let library = |path: &str| {
        let path = path.trim_start_matches(['<', '&', '*', '[', '(']);
        let path = path.strip_prefix("mut ").unwrap_or(path);
        let path = path.strip_prefix("dyn ").unwrap_or(path);
        match path.split_once("::") {
            Some((first, _)) => {
                let first = first.trim_end_matches(['>', ']']); // "<[u8]>::to_vec"
                LIBRARIES.contains(&first)
                    || (file.ends_with(".rs") && PRIMITIVE_OF_RUST.contains(&first))
            }
            // "u8", "T", "fn()": types of no crate.
            None => true,
        }
    };
    if !name.starts_with('<') {
        return name.contains("::") && library(name);
    }
    match name[1..].split_once(" as ") {
        Some((own, interface)) => library(own) && library(interface),
        None => library(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_allocate_for_programs() {
        for (name, place) in [
            ("malloc", "libhakmem.so.1.0.0"),
            ("operator new", "new_op.cc:50"),
            ("std::__new_allocator<int>::allocate", "new_allocator.h:137"),
            (
                "_ZSt11make_sharedISt6vectorIiSaIiEEJRS2_EE",
                "shared_ptr.h:1010",
            ),
            ("operator()", "std_thread.h:259"),
            ("_M_run", "std_thread.h:210"),
            ("", "libstdc++.so.6.0.30+0xd44a2"),
            ("alloc::alloc::alloc", "alloc.rs:95"),
            (
                "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
                "alloc.rs:429",
            ),
            (
                "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem",
                "spec_from_elem.rs:53",
            ),
            (
                "<&dyn core::ops::function::Fn<(), Output = i32> as core::ops::function::FnOnce<()>>::call_once",
                "function.rs:287",
            ),
            ("__rust_try", "r"),
            ("str::repeat", "str.rs:707"),
            ("<[u8]>::to_vec", "slice.rs:448"),
            ("main._Cfunc__CMalloc", "_cgo_gotypes.go:50"),
            ("runtime.asmcgocall", "asm_amd64.s:923"),
            ("swift_allocObject", "libswiftCore.so"),
            ("allocate_dtv", "dl-tls.c:401"),
        ] {
            assert_eq!(role(name, place), Role::Machinery, "{name} ({place})");
        }
    }

    #[test]
    fn what_a_program_implements_is_its_own() {
        for (name, place) in [
            ("main", "m.cpp:15"),
            ("app::Cache<std::string>::put", "m.cpp:11"),
            ("<r::Square<i32> as r::Shape>::name", "r.rs:3"),
            ("<r::Square<i32> as core::clone::Clone>::clone", "r.rs:3"),
            ("<alloc::vec::Vec<u8> as r::Shape>::name", "r.rs:3"),
            ("main.main", "main.go:12"),
            ("unicode_repeat", "unicodeobject.c:12022"),
            ("", "program+0x1234"),
            ("stdout_of", "program"),
            ("__pool_MOD_grow", "m.f90:10"),
            ("str::join", "m.cpp:3"),
        ] {
            assert_eq!(role(name, place), Role::Own, "{name} ({place})");
        }
        assert_eq!(
            role("__libc_start_main_impl", "libc-start.c:360"),
            Role::Beginning
        );
    }
}
