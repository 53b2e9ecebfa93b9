//! Memory outside of any allocator, and how much memory this process has.

use hakmem_lab::error::Result;
use hakmem_lab::failed;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

/// An array of zeros in its own mapping, entirely resident. Never unmapped.
pub struct Pages<T> {
    start: NonNull<T>,
    count: usize,
}

// SAFETY: as a slice of T.
unsafe impl<T: Sync> Sync for Pages<T> {}
// SAFETY: likewise.
unsafe impl<T: Send> Send for Pages<T> {}

impl<T> Pages<T> {
    /// T must be valid if all its bytes are zero.
    pub fn new(count: usize) -> Result<Pages<T>> {
        if count == 0 {
            return Ok(Pages {
                start: NonNull::dangling(),
                count,
            });
        }
        let bytes = count * size_of::<T>();
        // SAFETY: a new mapping.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        match NonNull::new(memory.cast()) {
            Some(start) if memory != libc::MAP_FAILED => Ok(Pages { start, count }),
            _ => Err(failed!(
                "no memory for the replay's own tables, {} MiB: {}",
                bytes >> 20,
                io::Error::last_os_error()
            )),
        }
    }

    pub fn start(&self) -> *mut T {
        self.start.as_ptr()
    }
}

impl<T> AsRef<[T]> for Pages<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: mapped for ever, with so many Ts.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl<T> AsMut<[T]> for Pages<T> {
    fn as_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed by the caller alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.count) }
    }
}

/// Reads how much of this process is resident, without any allocation.
pub struct Resident {
    statm: File,
    status: File,
    /// None if the kernel does not let us reset the peak.
    clear_refs: Option<File>,
    page_bytes: u64,
}

impl Resident {
    pub fn open() -> Result<Resident> {
        let open = |path| File::open(path).map_err(|error| failed!("cannot read {path}: {error}"));
        // SAFETY: asks the system for a constant.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
        Ok(Resident {
            statm: open("/proc/self/statm")?,
            status: open("/proc/self/status")?,
            clear_refs: File::create("/proc/self/clear_refs").ok(),
            page_bytes,
        })
    }

    pub fn bytes(&self) -> u64 {
        let mut text = [0; 128];
        let text = read_into(&self.statm, &mut text);
        let digits = text.split(|&byte| byte == b' ').nth(1);
        digits.map_or(0, number) * self.page_bytes
    }

    /// Resets the peak.
    pub fn forget_peak(&self) {
        let _ = self.clear_refs.as_ref().map(|mut file| file.write(b"5"));
    }

    pub fn peak(&self) -> u64 {
        let mut text = [0; 4096];
        let text = read_into(&self.status, &mut text);
        let mut lines = text.split(|&byte| byte == b'\n');
        let line = lines.find_map(|line| line.strip_prefix(b"VmHWM:"));
        line.map_or(0, number) << 10
    }
}

/// Reads such a file's current content, as far as it fits.
fn read_into<'a>(file: &File, text: &'a mut [u8]) -> &'a [u8] {
    let length = file.read_at(text, 0).unwrap_or(0);
    &text[..length]
}

/// The digits of a text as a number.
fn number(text: &[u8]) -> u64 {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
