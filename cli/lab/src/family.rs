//! The names by which programs ask for memory.

/// These must all come from one allocator, or a block of one would be given to another.
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

/// Beyond them: what an allocator may leave to the C library, which then answers for a heap that
/// the program does not use, and C++'s operators.
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

/// The family's own text for a symbol's name, if it belongs to it.
pub fn find(symbol: &[u8]) -> Option<&'static str> {
    all().find(|name| name.as_bytes() == symbol)
}

pub fn is_core(name: &str) -> bool {
    CORE.contains(&name)
}

/// As a programmer writes it.
pub fn shown(name: &'static str) -> &'static str {
    match name {
        "_Znwm" => "operator new",
        "_Znam" => "operator new[]",
        "_ZdlPv" | "_ZdlPvm" => "operator delete",
        "_ZdaPv" | "_ZdaPvm" => "operator delete[]",
        other => other,
    }
}
