//! Recognises the allocator that a file is or contains, by names and texts that only this allocator has.

use std::collections::BTreeSet;

/// The name for glibc's own malloc.
pub const LIBC_OF_GNU: &str = "the C library (glibc)";

pub const GO: &str = "the Go runtime";

/// Since 3.13, Python contains mimalloc, for PYTHONMALLOC=mimalloc and for builds without the global lock. What it requests
/// from malloc still comes from malloc.
const PYTHON: &str = "the Python runtime's mimalloc";
const MIMALLOC: &str = "mimalloc";

/// The marks of one allocator.
struct Marks {
    name: &'static str,
    /// Whole symbols.
    symbols: &'static [&'static str],
    /// Parts of symbols: C++ namespaces.
    inside_symbols: &'static [&'static str],
    /// If the allocator is inside, all of these texts are in the file, even if it is stripped.
    texts: &'static [&'static str],
}

const KNOWN: [Marks; 19] = [
    Marks {
        name: "hakmem",
        symbols: &["hak_version", "hak_malloc"],
        inside_symbols: &[],
        texts: &["<malloc version=\"1\" allocator=\"hakmem "],
    },
    Marks {
        name: "jemalloc",
        symbols: &[
            "je_malloc",
            "je_mallocx",
            "je_mallctl",
            "mallctl",
            "malloc_stats_print",
        ],
        inside_symbols: &["_rjem_mallo", "_rjem_je_", "je_arrow_mallo"],
        texts: &["<jemalloc>: ", "background_thread", "dirty_decay_ms"],
    },
    Marks {
        name: MIMALLOC,
        symbols: &["mi_malloc", "mi_version", "_mi_malloc_generic"],
        inside_symbols: &[],
        texts: &["mimalloc: ", "mimalloc_", "purge_delay"],
    },
    Marks {
        name: "tcmalloc",
        symbols: &["MallocExtension_Internal_GetNumericProperty"],
        inside_symbols: &["17tcmalloc_internal"],
        texts: &[
            "tcmalloc.max_total_thread_cache_bytes",
            "tcmalloc.per_cpu_caches_active",
        ],
    },
    Marks {
        name: "gperftools",
        symbols: &["tc_malloc", "tc_version"],
        inside_symbols: &[],
        texts: &[
            "TCMALLOC_RELEASE_RATE",
            "tcmalloc.max_total_thread_cache_bytes",
        ],
    },
    Marks {
        name: "snmalloc",
        symbols: &["sn_malloc", "sn_rust_alloc"],
        inside_symbols: &["N8snmalloc", "NK8snmalloc"],
        texts: &[],
    },
    Marks {
        name: "rpmalloc",
        symbols: &["rpmalloc", "rpmalloc_initialize"],
        inside_symbols: &[],
        texts: &[],
    },
    Marks {
        name: "scudo",
        symbols: &["__scudo_default_options", "__scudo_print_stats"],
        inside_symbols: &["5scudo9Allocator"],
        texts: &["Scudo ERROR", "SCUDO_OPTIONS"],
    },
    Marks {
        name: "AddressSanitizer",
        symbols: &["__asan_init"],
        inside_symbols: &[],
        texts: &[],
    },
    Marks {
        name: "ThreadSanitizer",
        symbols: &["__tsan_init"],
        inside_symbols: &[],
        texts: &[],
    },
    Marks {
        name: "MemorySanitizer",
        symbols: &["__msan_init"],
        inside_symbols: &[],
        texts: &[],
    },
    Marks {
        name: "LeakSanitizer",
        symbols: &["__lsan_init"],
        inside_symbols: &[],
        texts: &[],
    },
    Marks {
        name: "HWAddressSanitizer",
        symbols: &["__hwasan_init"],
        inside_symbols: &[],
        texts: &[],
    },
    Marks {
        name: "dlmalloc",
        symbols: &["dlmalloc"],
        inside_symbols: &[],
        texts: &[],
    },
    Marks {
        name: "nedmalloc",
        symbols: &["nedmalloc"],
        inside_symbols: &[],
        texts: &[],
    },
    Marks {
        name: LIBC_OF_GNU,
        symbols: &["gnu_get_libc_version"],
        inside_symbols: &[],
        texts: &[
            "malloc(): corrupted top size",
            "malloc_consolidate(): invalid chunk size",
        ],
    },
    Marks {
        name: "the C library (musl)",
        symbols: &["__libc_malloc_impl"],
        inside_symbols: &[],
        texts: &["musl libc (", "MUSL_LOCPATH"],
    },
    Marks {
        name: PYTHON,
        symbols: &[],
        inside_symbols: &[],
        texts: &["mimalloc: ", "purge_delay", "pymalloc_debug"],
    },
    Marks {
        name: GO,
        symbols: &["runtime.mallocgc"],
        inside_symbols: &[],
        texts: &["sweep increased allocation count", "malloc deadlock"],
    },
];

/// Run-time libraries of sanitizers that define malloc: gcc's, and clang's with -shared-libasan. UndefinedBehaviorSanitizer
/// leaves malloc to the program's allocator.
const SANITIZERS: [(&str, &str, &str); 5] = [
    ("AddressSanitizer", "libasan.so", "libclang_rt.asan"),
    ("LeakSanitizer", "liblsan.so", "libclang_rt.lsan"),
    ("ThreadSanitizer", "libtsan.so", "libclang_rt.tsan"),
    ("HWAddressSanitizer", "libhwasan.so", "libclang_rt.hwasan"),
    ("MemorySanitizer", "libmsan.so", "libclang_rt.msan"),
];

pub fn sanitizer_of_library(file_name: &[u8]) -> Option<&'static str> {
    SANITIZERS
        .into_iter()
        .find(|(_, gcc, clang)| {
            file_name.starts_with(gcc.as_bytes()) || file_name.starts_with(clang.as_bytes())
        })
        .map(|(name, _, _)| name)
}

pub fn is_sanitizer(allocator: &str) -> bool {
    SANITIZERS.into_iter().any(|(name, _, _)| name == allocator)
}

/// This program has all of these texts in its table, but contains none of the allocators.
const TABLE: &[u8] = b"the marks by which hakmem recognises an allocator";

/// The allocator that defines this symbol.
pub fn of_symbol(symbol: &[u8]) -> Option<&'static str> {
    let symbol = std::str::from_utf8(symbol).ok()?;
    KNOWN
        .iter()
        .find(|marks| {
            marks.symbols.contains(&symbol)
                || marks
                    .inside_symbols
                    .iter()
                    .any(|part| symbol.contains(part))
        })
        .map(|marks| marks.name)
}

/// Does every program of a language contain it, so that it is no choice of this program?
pub fn is_of_language(name: &str) -> bool {
    name.starts_with("the ")
}

/// The allocators whose texts are all among a file's constants.
pub fn of_constants(constants: &[u8]) -> Vec<&'static str> {
    if memchr::memmem::find(constants, TABLE).is_some() {
        return Vec::new();
    }
    KNOWN
        .iter()
        .filter(|marks| {
            !marks.texts.is_empty()
                && marks
                    .texts
                    .iter()
                    .all(|text| memchr::memmem::find(constants, text.as_bytes()).is_some())
        })
        .map(|marks| marks.name)
        .collect()
}

/// Drops findings that are a part of another finding.
pub fn leave_out_parts(found: &mut BTreeSet<&'static str>) {
    if found.contains(PYTHON) {
        found.remove(MIMALLOC);
    }
}

/// Does a file's name contradict the allocators that were recognised in it? mimalloc3 is a mimalloc, and a name that says
/// nothing contradicts nothing.
pub fn contradicts(name: &str, found: &[&str]) -> bool {
    let claimed = KNOWN
        .iter()
        .map(|marks| marks.name)
        .find(|known| name.starts_with(known));
    match claimed {
        // Both Google's and gperftools' are called tcmalloc.
        Some("tcmalloc") => {
            !found.is_empty()
                && !found
                    .iter()
                    .any(|one| matches!(*one, "tcmalloc" | "gperftools"))
        }
        Some(claimed) => !found.is_empty() && !found.contains(&claimed),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_names_its_allocator() {
        assert_eq!(of_symbol(b"_rjem_malloc"), Some("jemalloc"));
        assert_eq!(of_symbol(b"mi_malloc"), Some("mimalloc"));
        assert_eq!(of_symbol(b"_ZN8snmalloc4FlagE"), Some("snmalloc"));
        assert_eq!(of_symbol(b"malloc"), None);
        assert_eq!(of_symbol(b"_ZN4mine8snmalloc17h5c2e3d1a0b9f8e7dE"), None);
    }

    #[test]
    fn all_of_an_allocators_texts_are_needed() {
        assert!(of_constants(b"see <jemalloc>: in the manual").is_empty());
        let all = b"<jemalloc>: \0background_thread\0dirty_decay_ms\0";
        assert_eq!(of_constants(all), ["jemalloc"]);
        let shared = b"musl libc (x86_64)\nVersion %s\n\0MUSL_LOCPATH\0";
        assert_eq!(of_constants(shared), ["the C library (musl)"]);
    }

    #[test]
    fn pythons_mimalloc_is_no_allocator_of_the_program() {
        let texts = b"mimalloc: \0mimalloc_\0purge_delay\0pymalloc_debug\0";
        let mut found: BTreeSet<_> = of_constants(texts).into_iter().collect();
        found.extend(of_symbol(b"mi_malloc"));
        leave_out_parts(&mut found);
        assert!(found.iter().all(|name| is_of_language(name)) && !found.is_empty());
    }

    #[test]
    fn a_name_may_not_promise_another_allocator() {
        assert!(contradicts("jemalloc", &["mimalloc"]));
        assert!(!contradicts("mimalloc3", &["mimalloc"]));
        assert!(!contradicts("tcmalloc", &["gperftools"]));
        assert!(!contradicts("mine", &["mimalloc"]));
        assert!(!contradicts("jemalloc", &[]));
    }
}
