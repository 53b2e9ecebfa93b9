//! Lists every program that descendants of this process execute, as the kernel reports them (perf_event_open). This includes
//! programs that end before anybody could find them in /proc.

use perf_event_open_sys as sys;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::sync::atomic::{Ordering, fence};
use sys::bindings as kernel;

/// Pages of a ring. With the page before them, this is as much as the kernel lets any user lock.
const PAGES: usize = 64;
/// The most events to keep.
const EVENTS_MAX: usize = 1 << 20;
const HEAD_BYTES: usize = 8;

/// A program that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Born {
    pub id: i32,
    pub program: PathBuf,
    /// It had mapped a file whose name begins with `library`.
    pub has_library: bool,
}

enum What {
    Became,
    /// The process mapped this file's code.
    Mapped(PathBuf),
}

struct Event {
    time: u64,
    id: i32,
    what: What,
}

pub struct Births {
    rings: Vec<Ring>,
    events: Vec<Event>,
    /// Some events were lost; it is unknown which.
    has_lost: bool,
}

impl Births {
    /// Watches the processes that the calling thread starts from now on. An error if the kernel does not allow it.
    pub fn watch() -> io::Result<Births> {
        // SAFETY: a system call that returns a number.
        let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let rings = (0..processors as i32).filter_map(|number| match Ring::open(number) {
            // A processor that is offline.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => None,
            ring => Some(ring),
        });
        Ok(Births {
            rings: rings.collect::<io::Result<_>>()?,
            events: Vec::new(),
            has_lost: false,
        })
    }

    /// Reads the events so far. Must be called before a ring is full.
    pub fn take(&mut self) {
        for ring in &mut self.rings {
            while let Some(record) = ring.next() {
                match event(&record) {
                    Taken::Event(event) if self.events.len() < EVENTS_MAX => {
                        self.events.push(event);
                    }
                    Taken::Nothing => {}
                    Taken::Event(_) | Taken::Lost => self.has_lost = true,
                }
            }
        }
    }

    /// All programs that ran; None if some were missed.
    pub fn programs(mut self, library: &str) -> Option<Vec<Born>> {
        self.take();
        self.events.sort_by_key(|event| event.time);
        let mut all: Vec<Born> = Vec::new();
        let mut running: HashMap<i32, usize> = HashMap::new();
        for event in self.events {
            match event.what {
                What::Became => {
                    running.insert(event.id, all.len());
                    all.push(Born {
                        id: event.id,
                        program: PathBuf::new(),
                        has_library: false,
                    });
                }
                What::Mapped(file) => {
                    let Some(one) = running.get(&event.id).and_then(|at| all.get_mut(*at)) else {
                        continue; // a child before its exec: a copy of its parent
                    };
                    let is_it =
                        |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(library);
                    one.has_library |= file.file_name().is_some_and(is_it);
                    if one.program.as_os_str().is_empty() {
                        one.program = file; // the kernel maps the program first
                    }
                }
            }
        }
        (!self.has_lost).then_some(all)
    }
}

enum Taken {
    Event(Event),
    Lost,
    Nothing,
}

/// Parses a record: a header, the content, and the time.
fn event(record: &[u8]) -> Taken {
    let number = |at: usize, bytes: usize| {
        let mut value = [0; 8];
        let part = record.get(at..at + bytes).unwrap_or_default();
        value[..part.len()].copy_from_slice(part);
        u64::from_ne_bytes(value)
    };
    let (kind, flags) = (number(0, 4) as u32, number(4, 2) as u32);
    let id = number(HEAD_BYTES, 4) as i32;
    let time = number(record.len().saturating_sub(8), 8);
    let what = match kind {
        kernel::PERF_RECORD_LOST => return Taken::Lost,
        kernel::PERF_RECORD_COMM if flags & kernel::PERF_RECORD_MISC_COMM_EXEC != 0 => What::Became,
        kernel::PERF_RECORD_MMAP => {
            // The name follows two numbers, the address, the length and the file offset.
            let name = record.get(HEAD_BYTES + 32..).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            // Generated code has no file, and there may be a lot of it.
            if !name.starts_with(b"/") || name.starts_with(b"//") {
                return Taken::Nothing;
            }
            use std::os::unix::ffi::OsStrExt;
            What::Mapped(std::ffi::OsStr::from_bytes(name).into())
        }
        _ => return Taken::Nothing,
    };
    Taken::Event(Event { time, id, what })
}

/// The kernel's events of one processor.
struct Ring {
    memory: *mut kernel::perf_event_mmap_page,
    bytes: usize,
    page: usize,
    _file: File,
}

impl Ring {
    fn open(processor: i32) -> io::Result<Ring> {
        let mut wanted = kernel::perf_event_attr {
            type_: kernel::PERF_TYPE_SOFTWARE,
            size: size_of::<kernel::perf_event_attr>() as u32,
            config: kernel::PERF_COUNT_SW_DUMMY.into(),
            sample_type: kernel::PERF_SAMPLE_TIME.into(),
            ..kernel::perf_event_attr::default()
        };
        wanted.set_inherit(1);
        wanted.set_comm(1);
        wanted.set_comm_exec(1);
        wanted.set_mmap(1);
        wanted.set_sample_id_all(1);
        wanted.set_exclude_kernel(1);
        wanted.set_exclude_hv(1);
        let flags = kernel::PERF_FLAG_FD_CLOEXEC.into();
        // SAFETY: the attributes live as long as the call.
        let number = unsafe { sys::perf_event_open(&raw mut wanted, 0, processor, -1, flags) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let file = unsafe { File::from_raw_fd(number) };
        // SAFETY: a system call that returns a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let bytes = page * (1 + PAGES);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of that file.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring {
            memory: memory.cast(),
            bytes,
            page,
            _file: file,
        })
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        // SAFETY: the kernel writes its head there, and reads our tail, which nobody else writes.
        let (head, tail) = unsafe {
            let head = (&raw const (*self.memory).data_head).read_volatile();
            (head, (*self.memory).data_tail)
        };
        fence(Ordering::Acquire); // orders the reads behind that of the head; pairs with the kernel's
        let first = self.copy(tail, (head - tail).min(HEAD_BYTES as u64) as usize)?;
        let length = u16::from_ne_bytes([first[6], first[7]]);
        let record = self.copy(tail, (head - tail).min(length.into()) as usize)?;
        fence(Ordering::Release); // the content is read before its space is given back
        // SAFETY: as above.
        unsafe {
            let tail = tail + u64::from(length).max(HEAD_BYTES as u64);
            (&raw mut (*self.memory).data_tail).write_volatile(tail);
        }
        Some(record)
    }

    /// Copies so many bytes from there on; they may wrap to the ring's beginning. None if fewer than a header.
    fn copy(&self, from: u64, count: usize) -> Option<Vec<u8>> {
        let ring = self.bytes - self.page;
        let at = |index: usize| (from as usize + index) % ring;
        // SAFETY: inside of the mapping, whose first page is not of the ring.
        let byte = |index| unsafe { *self.memory.cast::<u8>().add(self.page + at(index)) };
        (count >= HEAD_BYTES).then(|| (0..count).map(byte).collect())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody uses any more.
        unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_shortest_lives_are_seen() {
        let Ok(mut births) = Births::watch() else {
            eprintln!("left out: the kernel does not tell here");
            return;
        };
        let script = "for i in 1 2 3 4 5 6 7 8 9; do env true; done";
        for _ in 0..20 {
            let status = Command::new("sh").args(["-c", script]).status();
            assert!(status.unwrap().success());
            births.take();
        }
        let all = births.programs("libc.so").unwrap();
        let named = |name: &str| {
            let is_it = |one: &&Born| one.program.file_name().is_some_and(|file| file == name);
            all.iter().filter(is_it).count()
        };
        let real = std::fs::canonicalize("/usr/bin/true").unwrap();
        assert_eq!(named("env"), 180, "{all:?}");
        assert_eq!(named(&real.file_name().unwrap().to_string_lossy()), 180);
        assert!(all.iter().all(|one| one.has_library), "{all:?}");
    }
}
