//! Memory that languages and the C library allocate once and keep until a process ends. It is in every list of what is still
//! allocated, but is no leak.

use super::Frame;

/// Where in a stack a function must be.
enum At {
    /// Anywhere, whatever it called to allocate.
    Anywhere(&'static str),
    /// Innermost: only the malloc family is further inside.
    Innermost(&'static str),
}

use At::{Anywhere, Innermost};

/// Functions, and the memory that they keep.
const KEPT: [(At, &str); 27] = [
    (Anywhere("(anonymous namespace)::pool::pool"), POOL),
    (Anywhere("_GLOBAL__sub_I_eh_alloc.cc"), POOL),
    (Anywhere("__cxa_get_globals"), EXCEPTIONS),
    (Anywhere("allocate_dtv"), THREADS),
    (Anywhere("_dl_allocate_tls"), THREADS),
    (Anywhere("_dl_allocate_tls_init"), THREADS),
    (Anywhere("__tls_get_addr"), THREADS),
    (Anywhere("tls_get_addr_tail"), THREADS),
    (Anywhere("hak_os_start_thread"), "hakmem's own thread"),
    (Innermost("__new_exitfn"), EXIT),
    (Innermost("__cxa_atexit"), EXIT),
    (Innermost("__cxa_thread_atexit_impl"), EXIT),
    (Anywhere("setlocale"), LOCALE),
    (Anywhere("__libc_setlocale"), LOCALE),
    (Anywhere("_nl_find_locale"), LOCALE),
    (Anywhere("_nl_load_domain"), LOCALE),
    (Anywhere("_nl_find_domain"), LOCALE),
    (Anywhere("tzset_internal"), TIME),
    (Anywhere("__tzset"), TIME),
    (Anywhere("__tzfile_read"), TIME),
    (Anywhere("__nss_database_get"), NAMES),
    (Anywhere("__nss_module_load"), NAMES),
    (Anywhere("__res_vinit"), NAMES),
    (Innermost("gomp_malloc"), OPENMP),
    (Innermost("gomp_malloc_cleared"), OPENMP),
    (Anywhere("std::io::stdio::stdout"), STREAMS),
    (Anywhere("std::io::stdio::stdin"), STREAMS),
];

const POOL: &str = "libstdc++'s memory for exceptions";
const EXCEPTIONS: &str = "the C++ library's state of exceptions";
const THREADS: &str = "variables of threads";
const EXIT: &str = "functions to call at exit";
const LOCALE: &str = "the locale";
const TIME: &str = "the time zone";
const NAMES: &str = "how the C library finds names";
const OPENMP: &str = "OpenMP's threads";
const STREAMS: &str = "buffers of standard streams";
const LINKER: &str = "the dynamic linker's lists";
const RUST: &str = "Rust's main thread";

/// The function by which stdio makes a stream's buffer. A program may leak streams, but then more than one.
const STREAM_BUFFER: &str = "_IO_file_doallocate";
/// Rust: every stack of the main thread contains it. Only a stack that has not called the program's main belongs to the
/// runtime.
const RUST_START: &str = "std::rt::lang_start_internal";
const RUST_CALLS_MAIN: &str = "__rust_begin_short_backtrace";

/// What known memory a stack with this many blocks is; None if it is not known.
pub fn known(frames: &[String], blocks: f64) -> Option<&'static str> {
    let frames: Vec<Frame> = frames.iter().map(|text| Frame::of(text)).collect();
    let names: Vec<String> = frames.iter().map(|frame| frame.own_name()).collect();
    let first = names.iter().position(|name| !is_malloc(name))?;
    let listed = KEPT.iter().find(|(at, _)| match at {
        Anywhere(function) => names.iter().any(|name| name == function),
        Innermost(function) => names[first] == *function,
    });
    if let Some((_, what)) = listed {
        return Some(what);
    }
    let has = |function: &str| names.iter().any(|name| name.starts_with(function));
    if blocks < 1.5 && has(STREAM_BUFFER) {
        return Some(STREAMS);
    }
    let calls_main = names.iter().any(|name| name.contains(RUST_CALLS_MAIN));
    if has(RUST_START) && !calls_main {
        return Some(RUST);
    }
    let asked = &frames[first];
    let is_start = |frame: &Frame| frame.is_of_linker() || frame.is_beginning();
    if asked.place.starts_with("libstdc++.so") && frames[first + 1..].iter().all(is_start) {
        return (first + 1 < frames.len()).then_some(POOL);
    }
    asked.is_of_linker().then_some(LINKER)
}

fn is_malloc(name: &str) -> bool {
    matches!(
        name,
        "malloc" | "calloc" | "realloc" | "memalign" | "aligned_alloc" | "posix_memalign"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, blocks: f64) -> Option<&'static str> {
        let frames: Vec<String> = text.split(" < ").map(String::from).collect();
        known(&frames, blocks)
    }

    #[test]
    fn what_every_program_has_is_known() {
        for (stack, what) in [
            (
                "libstdc++.so.6.0.30+0xa57b9 < call_init (dl-init.c:74) < _dl_init (dl-init.c:121) < ld-linux-x86-64.so.2+0x1ab9f",
                POOL,
            ),
            (
                "(anonymous namespace)::pool::pool() (eh_alloc.cc:189) < _GLOBAL__sub_I_eh_alloc.cc (eh_alloc.cc:400) < call_init (dl-init.c:74)",
                POOL,
            ),
            (
                "calloc (libhakmem.so.1) < allocate_dtv (dl-tls.c:401) < allocate_stack (allocatestack.c:423) < main (m.cpp:17)",
                THREADS,
            ),
            (
                "_IO_file_doallocate (filedoalloc.c:101) < _IO_doallocbuf (genops.c:342) < puts (ioputs.c:40) < main (a.c:3)",
                STREAMS,
            ),
            (
                "alloc::alloc::alloc (alloc.rs:95) < std::rt::lang_start_internal (rt.rs:171) < main (r) < _start (r)",
                RUST,
            ),
            (
                "ld-linux-x86-64.so.2+0x1234 < ld-linux-x86-64.so.2+0x99 < main (a.c:3)",
                LINKER,
            ),
        ] {
            assert_eq!(of(stack, 1.0), Some(what), "{stack}");
        }
    }

    #[test]
    fn what_a_program_leaks_is_not() {
        for (stack, blocks) in [
            (
                "main (a.c:3) < __libc_start_call_main (libc_start_call_main.h:58)",
                1.0,
            ),
            (
                "_IO_file_doallocate (filedoalloc.c:101) < fgets (iofgets.c:53) < read_all (a.c:9)",
                17.0,
            ),
            (
                "alloc::alloc::alloc (alloc.rs:95) < r::main (r.rs:2) < std::sys::backtrace::__rust_begin_short_backtrace (backtrace.rs:166) < std::rt::lang_start_internal (rt.rs:171)",
                1.0,
            ),
            ("libstdc++.so.6.0.30+0x1 < main (a.cpp:3)", 1.0),
            (
                "std::string::string (libstdc++.so.6) < f (a.cpp:2) < call_init (dl-init.c:74)",
                1.0,
            ),
            ("malloc (libhakmem.so.1)", 1.0),
        ] {
            assert_eq!(of(stack, blocks), None, "{stack}");
        }
    }
}
