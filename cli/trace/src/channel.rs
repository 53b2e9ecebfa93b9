//! The memory that recorded programs share with the collector; its layout is in `record/channel.h`.

use crate::event::Event;
use crate::words::{Extra, News, Words, short_event};
#[cfg(test)]
use crate::{event::Kind, words};
use hakmem_heap::live::check_proc;
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

const MAGIC: u64 = 0x314e_4148_4352_4b48;
const VERSION: u32 = 5;
const PROCESSES: usize = 1024;
const RINGS_MOST: usize = 512;
pub const RING_WORDS: usize = 65536;
/// After this many words, the writer gets their space back.
const ROOM_WORDS: u64 = RING_WORDS as u64 / 4;
const PROGRAM_CHARS: usize = 224;
const PROCESSES_AT: usize = 4096;
const RINGS_AT: usize = PROCESSES_AT + PROCESSES * size_of::<ProcessEntry>();
const WORDS_AT: usize = RINGS_AT + RINGS_MOST * size_of::<Ring>();
const RING_BYTES: usize = RING_WORDS * size_of::<u64>();
/// Of them, 32 are for threads that find no other ring.
const RINGS_LEAST: usize = 64;
/// Times are in units of 16 ticks of the processor's counter.
pub const TIME_SHIFT: u32 = 4;

#[repr(C)]
pub struct Head {
    magic: u64,
    version: u32,
    stack_frames: u32,
    use_clock: u32,
    collector: i32,
    rings: u32,
    burst_ticks: u64,
    pub is_stopped: AtomicU32,
    pub next_process: AtomicU32,
    pub collector_sleeps: AtomicU32,
    pub processes_missed: AtomicU32,
    pub events_missed: AtomicU64,
}

pub const PROCESS_FREE: u32 = 0;
pub const PROCESS_LIVE: u32 = 2;
pub const PROCESS_KNOWN: u32 = 3;

#[repr(C)]
pub struct ProcessEntry {
    pub state: AtomicU32,
    pub id: i32,
    pub number: u32,
    pub parent: u32,
    pub start: u64,
    unused: u64,
    program: [u8; PROGRAM_CHARS],
}

impl ProcessEntry {
    /// The program's file; a long path is cut.
    pub fn program(&self) -> &Path {
        let end = self
            .program
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(PROGRAM_CHARS);
        Path::new(OsStr::from_bytes(&self.program[..end]))
    }
}

/// A program's path, cut as in an entry.
pub fn cut(program: &Path) -> PathBuf {
    let name = program.as_os_str().as_bytes();
    let end = name.len().min(PROGRAM_CHARS - 1);
    PathBuf::from(OsStr::from_bytes(&name[..end]))
}

pub const RING_FREE: u32 = 0;
#[cfg(test)]
const RING_TAKEN: u32 = 1;
pub const RING_CLOSED: u32 = 2;

#[repr(C, align(64))]
struct Line<T>(T);

#[repr(C)]
pub struct Ring {
    pub state: AtomicU32,
    pub process: u32,
    /// 0: several threads write here, and each event names its thread.
    pub thread: u32,
    pub id: i32,
    head: Line<AtomicU64>,
    tail: Line<(AtomicU64, AtomicU32)>,
}

const _: () = assert!(size_of::<ProcessEntry>() == 256 && size_of::<Ring>() == 192);
const _: () = assert!(size_of::<Head>() <= PROCESSES_AT);

/// Receives a ring's events. If it is inlined into the loop, it receives them in registers.
pub trait Visitor {
    fn visit(&mut self, thread: u32, event: Event);
}

impl<F: FnMut(u32, Event)> Visitor for F {
    fn visit(&mut self, thread: u32, event: Event) {
        self(thread, event);
    }
}

pub struct Channel {
    file: File,
    memory: NonNull<u8>,
    rings: usize,
}

/// The most bytes of addresses that a process may map; 0: this process, whose limit its programs inherit.
pub fn address_limit(id: i32) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: sets no limit; the kernel writes the present one to a live variable.
    let result = unsafe { libc::prlimit(id, libc::RLIMIT_AS, ptr::null(), &raw mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// How many rings take an eighth of the addresses that a program may have.
fn rings_within(address_limit: Option<u64>) -> usize {
    let rings = address_limit.map_or(RINGS_MOST, |bytes| bytes as usize / 8 / RING_BYTES);
    rings.clamp(RINGS_LEAST, RINGS_MOST)
}

// SAFETY: all that several threads or processes write is atomic, or handed over by an atomic.
unsafe impl Send for Channel {}

impl Channel {
    /// Events within `burst_ticks` of each other need not all have a time.
    pub fn create(stack_frames: u32, burst_ticks: u64) -> Result<Channel> {
        // The program opens the channel by a name in /proc.
        check_proc().map_err(|error| failed!("{error}"))?;
        // By its number: glibc has a function for it only since 2.27.
        // SAFETY: a system call with a constant name.
        let number = unsafe {
            let name = c"hakmem-record".as_ptr();
            libc::syscall(libc::SYS_memfd_create, name, libc::MFD_CLOEXEC)
        };
        if number < 0 {
            let error = io::Error::last_os_error();
            let hint = match error.raw_os_error() {
                Some(libc::ENOSYS) => ": hakmem record needs Linux 3.17",
                _ => "",
            };
            return Err(failed!("cannot make shared memory: {error}{hint}"));
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let file = unsafe { File::from_raw_fd(number as i32) };
        let rings = rings_within(address_limit(0));
        let bytes = WORDS_AT + rings * RING_BYTES;
        let wrap = |error: io::Error| {
            let limit = match error.raw_os_error() {
                Some(libc::EFBIG) => ": 'ulimit -f' counts it",
                Some(libc::ENOMEM) => ": 'ulimit -v' counts it",
                _ => "",
            };
            failed!(
                "cannot make {} MiB of shared memory: {error}{limit}",
                bytes >> 20
            )
        };
        file.set_len(bytes as u64).map_err(wrap)?;
        // SAFETY: a new mapping of a file of that length.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(wrap(io::Error::last_os_error()));
        }
        let memory = NonNull::new(memory.cast()).expect("mmap returns no null");
        let channel = Channel {
            file,
            memory,
            rings,
        };
        // SAFETY: nobody else knows of the memory yet.
        unsafe {
            let head = channel.memory.cast::<Head>().as_mut();
            head.version = VERSION;
            head.stack_frames = stack_frames;
            head.burst_ticks = burst_ticks;
            head.use_clock = u32::from(!clock::is_steady());
            head.collector = std::process::id() as i32;
            head.rings = rings as u32;
            head.magic = MAGIC;
        }
        Ok(channel)
    }

    /// The length of its mapping.
    pub fn bytes(&self) -> usize {
        WORDS_AT + self.rings * RING_BYTES
    }

    /// The path by which programs open it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    pub fn head(&self) -> &Head {
        // SAFETY: mapped for as long as self is, and of this layout.
        unsafe { self.memory.cast::<Head>().as_ref() }
    }

    pub fn with_stacks(&self) -> bool {
        self.head().stack_frames != 0
    }

    pub fn processes(&self) -> &[ProcessEntry] {
        // SAFETY: as above; an entry's plain fields do not change while its state is LIVE or KNOWN.
        unsafe {
            std::slice::from_raw_parts(self.memory.add(PROCESSES_AT).cast().as_ptr(), PROCESSES)
        }
    }

    pub fn rings(&self) -> &[Ring] {
        // SAFETY: as above; a ring's plain fields are written before its first event is published.
        unsafe { std::slice::from_raw_parts(self.memory.add(RINGS_AT).cast().as_ptr(), self.rings) }
    }

    /// A ring's words.
    fn words(&self, ring: usize) -> *mut u64 {
        // SAFETY: in the mapping.
        unsafe {
            self.memory
                .add(WORDS_AT)
                .cast::<u64>()
                .add(ring * RING_WORDS)
        }
        .as_ptr()
    }

    pub fn pending(&self, ring: usize) -> u64 {
        self.end(ring) - self.rings()[ring].tail.0.0.load(Ordering::Relaxed)
    }

    /// How far the ring has been written.
    pub fn end(&self, ring: usize) -> u64 {
        let head = &self.rings()[ring].head;
        head.0.load(Ordering::Acquire) // pairs with: write_events in recorder.c
    }

    /// Takes the events of a ring up to `end`, in order, and frees their space. Passes on each event with its thread, and adds
    /// new call stacks and files to the news. `now` is in the events' units; `last` is the time of the last event before, and
    /// is updated.
    pub fn take(
        &self,
        ring: usize,
        end: u64,
        now: u64,
        last: &mut u64,
        news: &mut News,
        mut visitor: impl Visitor,
    ) {
        let Ring { thread, tail, .. } = &self.rings()[ring];
        // SAFETY: `end` was published by the release of `head`; nothing before it is written again before `tail`
        // has passed it.
        let words = unsafe { Words::new(self.words(ring)) };
        let mut time = *last;
        let mut index = tail.0.0.load(Ordering::Relaxed);
        while index < end {
            let until = end.min((index / ROOM_WORDS + 1) * ROOM_WORDS);
            while index < until {
                if let Some(event) = short_event(words.at(index), time) {
                    index += 1;
                    visitor.visit(*thread, event);
                    continue;
                }
                let mut extra = Extra::of(*thread);
                if words.long(index).kind().is_none() {
                    if let Some((code, next)) = words.code(index, end) {
                        news.codes.push(code);
                        index = next;
                        continue;
                    }
                    (index, extra) = words.extra(index, end, extra, news);
                }
                let long = words.long(index);
                index += 2;
                time = long.time(now);
                if let Some(event) = extra.event(long, time) {
                    visitor.visit(extra.thread, event);
                }
            }
            self.make_room(ring, index.min(end));
        }
        *last = time;
    }

    /// Everything before `tail` has been taken: the writer may reuse its space.
    fn make_room(&self, ring: usize, until: u64) {
        let Line((tail, writer_waits)) = &self.rings()[ring].tail;
        tail.store(until, Ordering::SeqCst); // pairs with: wait_for_room in recorder.c
        if writer_waits.load(Ordering::SeqCst) != 0 {
            writer_waits.store(0, Ordering::Relaxed);
            futex_wake(writer_waits);
        }
    }

    /// Gives a closed and emptied ring to the next thread.
    pub fn release(&self, ring: usize) {
        self.rings()[ring].state.store(RING_FREE, Ordering::Release); // pairs with: take_ring
    }

    /// The inode of the shared memory, as in /proc/PID/maps.
    pub fn inode(&self) -> u64 {
        self.file.metadata().map_or(0, |data| data.ino())
    }

    /// Waits until a program has work for the collector, but not longer than `at_most`.
    pub fn sleep(&self, at_most: Duration) {
        let word = &self.head().collector_sleeps;
        word.store(1, Ordering::SeqCst);
        if (0..self.rings).any(|ring| self.pending(ring) as usize >= RING_WORDS / 2) {
            word.store(0, Ordering::Relaxed);
            return;
        }
        futex_wait(word, 1, at_most);
        word.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
impl Channel {
    /// Does what a program does: gives a ring to a thread, or to several (0).
    pub fn begin_ring(&self, ring: usize, process: u32, thread: u32) {
        // SAFETY: in the mapping; the test that calls this has no other thread.
        unsafe {
            let at = self.memory.add(RINGS_AT).cast::<Ring>().add(ring).as_ptr();
            (*at).process = process;
            (*at).thread = thread;
        }
        self.rings()[ring]
            .state
            .store(RING_TAKEN, Ordering::Relaxed);
    }

    /// Writes one free into a ring; `by` names the thread if the ring is shared.
    pub fn write_free(&self, ring: usize, by: Option<u32>, time: u64, address: u64) {
        let place = |kind: u8, address: u64| u64::from(kind) << 56 | address;
        let name = by.map(|thread| [place(words::EXTRA_THREAD, thread.into()), 0]);
        let free = [place(Kind::Free as u8, address), time << words::SIZE_BITS];
        for word in name.into_iter().chain([free]).flatten() {
            let head = &self.rings()[ring].head.0;
            let index = head.load(Ordering::Relaxed);
            // SAFETY: in the ring; the test that calls this has no other thread.
            unsafe {
                self.words(ring)
                    .add(index as usize % RING_WORDS)
                    .write(word)
            };
            head.store(index + 1, Ordering::Release);
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: the mapping that create() made; the references into it have ended.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes()) };
    }
}

pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the address of a live word; the kernel only reads it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

fn futex_wait(word: &AtomicU32, value: u32, at_most: Duration) {
    let time = libc::timespec {
        tv_sec: at_most.as_secs() as _,
        tv_nsec: at_most.subsec_nanos().into(),
    };
    // SAFETY: as above; the time lives until the call returns.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            &time,
        )
    };
}

pub mod clock {
    //! The recorder's clock: the processor's counter where it is steady, else the system's.

    use std::fs;
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    pub fn is_steady() -> bool {
        static STEADY: OnceLock<bool> = OnceLock::new();
        *STEADY.get_or_init(|| {
            if cfg!(target_arch = "aarch64") {
                return true;
            }
            let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            let flags = text
                .lines()
                .find(|line| line.starts_with("flags"))
                .unwrap_or("");
            let has = |name| flags.split_whitespace().any(|flag| flag == name);
            has("constant_tsc") && has("nonstop_tsc")
        })
    }

    fn monotonic() -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the kernel fills in the structure.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    #[cfg(target_arch = "x86_64")]
    pub fn ticks() -> u64 {
        if !is_steady() {
            return monotonic();
        }
        // SAFETY: every processor of this architecture has the instruction.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    #[cfg(target_arch = "aarch64")]
    pub fn ticks() -> u64 {
        let ticks: u64;
        // SAFETY: reads the counter, which the kernel opens to programs.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks) };
        ticks
    }

    /// Measures the length of a tick between its creation and the question.
    pub struct Calibration {
        ticks: u64,
        instant: Instant,
    }

    impl Calibration {
        pub fn start() -> Calibration {
            Calibration {
                ticks: ticks(),
                instant: Instant::now(),
            }
        }

        pub fn ticks_per_second(&self) -> f64 {
            let passed = self.instant.elapsed().max(Duration::from_nanos(1));
            ticks().wrapping_sub(self.ticks) as f64 / passed.as_secs_f64()
        }
    }
}
