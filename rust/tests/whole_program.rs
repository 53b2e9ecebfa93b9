//! A program that declares hakmem as its allocator uses it everywhere.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

unsafe extern "C" {
    fn strdup(text: *const c_char) -> *mut c_char;
    fn free(block: *mut c_void);
}

#[test]
fn blocks_of_rust_and_of_c_are_hakmems() {
    let boxed = Box::new(7);
    assert!(hakmem::owns(&raw const *boxed));
    // SAFETY: the text ends with a NUL, and the block is freed once.
    unsafe {
        let copy = strdup(c"made by the C library".as_ptr());
        assert!(hakmem::owns(copy));
        free(copy.cast());
    }
    static OUTSIDE: i32 = 0;
    assert!(!hakmem::owns(&raw const OUTSIDE));
}

#[test]
fn every_alignment_is_kept_and_so_are_the_contents() {
    for alignment in (0..=16).map(|log2| 1usize << log2) {
        for bytes in [1, 8, 100, 5000, 100_000] {
            let layout = Layout::from_size_align(bytes, alignment).unwrap();
            // SAFETY: writes stay within the blocks' sizes, and each block is freed once with its layout.
            unsafe {
                let zeros = alloc_zeroed(layout);
                assert!((0..bytes).all(|at| *zeros.add(at) == 0));
                dealloc(zeros, layout);
                let block = alloc(layout);
                block.write_bytes(0xa5, bytes);
                let grown = realloc(block, layout, bytes * 3);
                assert_eq!(grown.addr() % alignment, 0);
                assert!((0..bytes).all(|at| *grown.add(at) == 0xa5));
                let grown_layout = Layout::from_size_align(bytes * 3, alignment).unwrap();
                let shrunk = realloc(grown, grown_layout, bytes);
                assert_eq!(shrunk.addr() % alignment, 0);
                dealloc(shrunk, layout);
            }
        }
    }
}

#[test]
fn blocks_go_from_thread_to_thread() {
    let (sender, receiver) = std::sync::mpsc::channel::<BTreeMap<usize, String>>();
    let makers: Vec<_> = (0..4usize)
        .map(|first| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for start in 0..50 {
                    let words = (0..100).map(|at| (at, format!("{} {}", first, start * at)));
                    sender.send(words.collect()).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let words: usize = receiver.iter().map(|map| map.len()).sum();
    makers.into_iter().for_each(|maker| maker.join().unwrap());
    assert_eq!(words, 4 * 50 * 100);
}

#[test]
fn more_than_there_is_is_refused_and_no_crash() {
    let mut bytes: Vec<u8> = Vec::new();
    assert!(bytes.try_reserve(isize::MAX as usize).is_err());
}

#[test]
fn the_library_is_the_one_of_this_version() {
    assert_eq!(hakmem::version(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn statistics_count_what_is_held() {
    let held = vec![1u8; 3 << 20];
    let text = hakmem::stats_json();
    let after = text.split("\"live_bytes\":").nth(1).unwrap();
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    assert!(digits.parse::<usize>().unwrap() >= held.len(), "{text}");
    assert!(text.starts_with('{') && text.trim_end().ends_with('}'));
    drop(held);
    hakmem::trim();
}
