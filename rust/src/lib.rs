//! hakmem, a memory allocator for Linux, linked into a Rust program.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;
//!
//! let text = String::from("in a block of hakmem's");
//! assert!(hakmem::owns(text.as_ptr()));
//! ```
//!
//! With that the whole program has it: `malloc` of its C code and of the libraries that it is linked with
//! is hakmem's too. A crate that only depends on this one, and declares no allocator, changes nothing.
//!
//! The environment sets options, as for any program under hakmem: `docs/options.md`.
#![no_std]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{CStr, c_char, c_void};
use core::ptr;

/// Every block of malloc is aligned so.
const MALLOC_ALIGNMENT: usize = 16;
/// More than the statistics take, by the word of `hakmem.h`.
const STATISTICS_BYTES: usize = 32 << 10;

// include/hakmem/hakmem.h
unsafe extern "C" {
    safe fn hak_version() -> *const c_char;
    safe fn hak_malloc(bytes: usize) -> *mut c_void;
    safe fn hak_calloc(count: usize, bytes: usize) -> *mut c_void;
    safe fn hak_aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void;
    fn hak_realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    fn hak_free_sized(block: *mut c_void, bytes: usize);
    fn hak_free_aligned_sized(block: *mut c_void, alignment: usize, bytes: usize);
    safe fn hak_owns(address: *const c_void) -> bool;
    safe fn hak_trim() -> usize;
    fn hak_stats_json(text: *mut c_char, bytes: usize) -> usize;
}

/// The allocator, for `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hakmem;

fn is_ordinary(layout: Layout) -> bool {
    layout.align() <= MALLOC_ALIGNMENT
}

// SAFETY: blocks have the size and the alignment that are asked for, none of the functions unwinds, and what
// they return is NULL or a block that stays until it is freed.
unsafe impl GlobalAlloc for Hakmem {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_ordinary(layout) {
            hak_malloc(layout.size()).cast()
        } else {
            hak_aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise: a live block of ours, of this layout.
        unsafe {
            if is_ordinary(layout) {
                hak_free_sized(block.cast(), layout.size());
            } else {
                hak_free_aligned_sized(block.cast(), layout.align(), layout.size());
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_ordinary(layout) {
            return hak_calloc(1, layout.size()).cast();
        }
        let block: *mut u8 = hak_aligned_alloc(layout.align(), layout.size()).cast();
        if !block.is_null() {
            // SAFETY: the block has that many bytes.
            unsafe { ptr::write_bytes(block, 0, layout.size()) }
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if is_ordinary(layout) {
            // SAFETY: the caller's promise: a live block of ours.
            return unsafe { hak_realloc(block.cast(), bytes).cast() };
        }
        let target: *mut u8 = hak_aligned_alloc(layout.align(), bytes).cast();
        if !target.is_null() {
            // SAFETY: both blocks have the bytes that are copied, and the old one is the caller's to give up.
            unsafe {
                ptr::copy_nonoverlapping(block, target, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
        }
        target
    }
}

/// hakmem's version.
pub fn version() -> &'static str {
    // SAFETY: a constant text of the library's.
    unsafe { CStr::from_ptr(hak_version()) }
        .to_str()
        .unwrap_or_default()
}

/// Whether this is an address in memory that hakmem manages; any address may be asked about.
pub fn owns<T: ?Sized>(address: *const T) -> bool {
    hak_owns(address.cast())
}

/// Give back to the system, now, what can be given back, of all threads; how many bytes that was.
pub fn trim() -> usize {
    hak_trim()
}

/// What the heap is made of, as one line of JSON: `docs/statistics.md` says what each name means.
pub fn stats_json() -> String {
    let mut text: Vec<u8> = Vec::with_capacity(STATISTICS_BYTES);
    loop {
        // SAFETY: no more is written than there is room for, and that much is initialised then.
        unsafe {
            let bytes = hak_stats_json(text.as_mut_ptr().cast(), text.capacity());
            if bytes < text.capacity() {
                text.set_len(bytes);
                return String::from_utf8_lossy(&text).into_owned();
            }
            text.reserve_exact(bytes + 1);
        }
    }
}
