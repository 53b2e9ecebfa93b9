//! The names of the functions that allocate and free memory.

/// These must all come from one allocator: otherwise a block of one would be passed to another.
pub const CORE: [&str; 8] = [
    "malloc",
    "free",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "malloc_usable_size",
];

/// More names: functions that an allocator may leave to the C library, which then reports on a heap that the program does not
/// use; and the operators of C++.
const REST: [&str; 18] = [
    "reallocarray",
    "valloc",
    "pvalloc",
    "cfree",
    "free_sized",
    "free_aligned_sized",
    "malloc_trim",
    "mallinfo",
    "mallinfo2",
    "mallopt",
    "malloc_stats",
    "malloc_info",
    "_Znwm",
    "_Znam",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
];

/// The whole family, in the order in which it is shown.
pub fn all() -> impl Iterator<Item = &'static str> {
    CORE.into_iter().chain(REST)
}

/// The family's constant for a symbol's name, if it belongs to the family.
pub fn find(symbol: &[u8]) -> Option<&'static str> {
    all().find(|name| name.as_bytes() == symbol)
}

pub fn is_core(name: &str) -> bool {
    CORE.contains(&name)
}

/// The name as a programmer writes it.
pub fn shown(name: &'static str) -> &'static str {
    match name {
        "_Znwm" => "operator new",
        "_Znam" => "operator new[]",
        "_ZdlPv" | "_ZdlPvm" => "operator delete",
        "_ZdaPv" | "_ZdaPvm" => "operator delete[]",
        other => other,
    }
}
