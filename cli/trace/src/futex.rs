//! Sleeps on a word of memory, and wakes threads that sleep there.

use std::sync::atomic::AtomicU32;

pub fn futex(word: &AtomicU32, operation: i32, value: u32) {
    // SAFETY: the address of a word that lives as long as the process.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            value,
            std::ptr::null::<libc::timespec>(),
        )
    };
}
