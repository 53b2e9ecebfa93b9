//! Memory that no allocator knows of, and how much memory the process has.

use hakmem_lab::error::Result;
use hakmem_lab::failed;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// An array of zeros in a mapping of its own, all of it resident. Never given back.
pub struct Pages<T> {
    start: NonNull<T>,
    count: usize,
}

// SAFETY: as a slice of T.
unsafe impl<T: Sync> Sync for Pages<T> {}
// SAFETY: likewise.
unsafe impl<T: Send> Send for Pages<T> {}

impl<T> Pages<T> {
    /// T has to be valid when all its bytes are zero.
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

/// Reads how much of this process is resident, without allocating.
pub struct Resident {
    statm: File,
    page_bytes: u64,
}

impl Resident {
    pub fn open() -> Result<Resident> {
        let statm = File::open("/proc/self/statm")
            .map_err(|error| failed!("cannot read /proc/self/statm: {error}"))?;
        // SAFETY: asks the system for a constant.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
        Ok(Resident { statm, page_bytes })
    }

    pub fn bytes(&self) -> u64 {
        let mut text = [0u8; 128];
        // SAFETY: reads into an array of that length.
        let length = unsafe {
            libc::pread(
                self.statm.as_raw_fd(),
                text.as_mut_ptr().cast(),
                text.len(),
                0,
            )
        };
        let digits = text[..length.max(0) as usize]
            .split(|&byte| byte == b' ')
            .nth(1);
        let number = |digits: &[u8]| {
            digits
                .iter()
                .fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0'))
        };
        digits.map_or(0, number) * self.page_bytes
    }

    /// Let the peak begin anew.
    pub fn forget_peak(&self) {
        let _ = fs::write("/proc/self/clear_refs", "5");
    }

    pub fn peak(&self) -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or(0) << 10
    }
}
