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
//! Then the whole program uses it: `malloc` in its C code and in the libraries linked with it is hakmem's, too. A crate that
//! only depends on this one and declares no allocator changes nothing.
//!
//! Environment variables set options, as for any program that uses hakmem: `docs/options.md`.
#![no_std]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{CStr, c_char, c_void};
use core::ptr;

/// The alignment of every block of malloc.
const MALLOC_ALIGNMENT: usize = 16;
/// More bytes than the statistics need, according to `hakmem.h`.
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

// SAFETY: blocks have the requested size and alignment, none of the functions unwinds, and each returns NULL or a block that
// stays valid until it is freed.
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
        // SAFETY: the caller's promise: a live block of ours, with this layout.
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
            // SAFETY: both blocks have at least the copied bytes, and the caller gives up the old one.
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
    // SAFETY: the library returns a constant text.
    unsafe { CStr::from_ptr(hak_version()) }
        .to_str()
        .unwrap_or_default()
}

/// Whether an address lies in memory that hakmem manages; any address is allowed.
pub fn owns<T: ?Sized>(address: *const T) -> bool {
    hak_owns(address.cast())
}

/// Gives as much free memory of all threads as possible back to the system at once; returns how many bytes.
pub fn trim() -> usize {
    hak_trim()
}

/// What the heap consists of, as one line of JSON; `docs/statistics.md` explains each name.
pub fn stats_json() -> String {
    let mut text: Vec<u8> = Vec::with_capacity(STATISTICS_BYTES);
    loop {
        // SAFETY: the call writes at most `capacity` bytes, and the length covers only bytes that it wrote.
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
