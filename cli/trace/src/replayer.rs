//! Executes a plan inside the measured process: `hakmem replay` starts itself again with each allocator, and that process runs
//! this.
//!
//! While threads work, nothing here allocates: slots, operations and histograms are in mappings of their own, which were
//! touched before. Threads begin and end between windows.

mod watch;

use crate::channel::clock;
use crate::futex::futex;
use crate::own_malloc::{owned_by_hakmem, owner_of};
use crate::pages::{Pages, Resident};
use crate::plan::{At, Call, OPERATION_BYTES, Operation, Plan, Share};
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use serde::{Deserialize, Serialize};
use std::ffi::c_void;
use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use watch::{Excess, Searching, Timed, Untimed, WORKER_BUCKETS, Watch, clock_cost};
pub use watch::{Latency, Wanted};

/// What a replay writes to blocks, in place of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Touch {
    /// The first byte of each page.
    #[default]
    Pages,
    All,
    None,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    pub touch: Touch,
    /// Measures each call; if false, only all of them together.
    pub latencies: bool,
    /// Look for the call that first makes more than this resident, and end there.
    pub wanted: Option<Wanted>,
    pub plan: Plan,
}

/// The limits of the size groups for latencies.
pub const SIZE_LIMITS: [u64; 7] = [64, 256, 1024, 4096, 32768, 262_144, 1 << 20];
pub const SIZE_GROUPS: usize = SIZE_LIMITS.len() + 1;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Replayed {
    /// The file that defines malloc in the measured process.
    pub owner: String,
    /// Does hakmem's address map know a block of it? None if hakmem is not loaded.
    pub owned_by_hakmem: Option<bool>,
    pub seconds: f64,
    /// Resident bytes after each window, minus those before the first window.
    pub resident: Vec<u64>,
    /// The highest value in each window, minus the same.
    pub peaks: Vec<u64>,
    pub resident_peak: u64,
    pub failed: u64,
    /// The call that was looked for.
    pub excess: Option<At>,
    pub latencies: Vec<Latency>,
    pub ticks_per_second: f64,
    /// The cost of reading the clock, which every latency includes.
    pub clock_ticks: u64,
}

/// The block in a slot, and how many calls were made on it.
#[repr(C)]
struct Slot {
    block: AtomicU64,
    turn: AtomicU32,
    size: AtomicU32, // the touched part is enough: at most 4 GiB
}

#[repr(C, align(64))]
struct Worker {
    /// The window to work on; u32::MAX: the thread must end. A futex.
    window: AtomicU32,
    is_done: AtomicU32,
    first: AtomicU64,
    count: AtomicU64,
    started: AtomicU64,
    ended: AtomicU64,
    failed: AtomicU64,
}

const WAIT: i32 = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
const END: u32 = u32::MAX;
const STACK_BYTES: usize = 128 << 10;
const PAGE: usize = 4096;

/// What the threads share; it is never freed.
struct Stage {
    slots: Pages<Slot>,
    operations: Pages<Operation>,
    workers: Pages<Worker>,
    histograms: Pages<u64>, // by worker, call, size group, bucket
    running: AtomicU32,     // workers that are not done with the window; a futex
    touch: Touch,
    with_latencies: bool,
    /// Set when the search for the excess begins.
    excess: OnceLock<Excess>,
}

static STAGE: OnceLock<Stage> = OnceLock::new();

impl Stage {
    fn of(task: &Task) -> Result<Stage> {
        let plan = &task.plan;
        let histograms = if task.latencies {
            plan.workers * WORKER_BUCKETS
        } else {
            0
        };
        Ok(Stage {
            slots: Pages::new(plan.slots)?,
            operations: Pages::new(plan.window_operations_max())?,
            workers: Pages::new(plan.workers)?,
            histograms: Pages::new(histograms)?,
            running: AtomicU32::new(0),
            touch: task.touch,
            with_latencies: task.latencies,
            excess: OnceLock::new(),
        })
    }

    /// The call with the first excess, if it was in this window.
    fn excess_in(&self, window: u32, shares: &[Share]) -> Option<At> {
        let (worker, index) = self.excess.get()?.found()?;
        let share = shares.iter().position(|share| share.worker == worker)?;
        Some(At {
            window,
            share: share as u32,
            index,
        })
    }
}

pub fn run(task: Task, operations: &Path) -> Result<Replayed> {
    let owner = owner_of(c"malloc")?;
    for name in [c"calloc", c"realloc", c"free", c"posix_memalign"] {
        let other = owner_of(name)?;
        if other != owner {
            return Err(failed!("malloc is {owner}'s, but {name:?} is {other}'s"));
        }
    }
    let mut file = File::open(operations)
        .map_err(|error| failed!("cannot read the plan of the replay: {error}"))?;
    let plan = &task.plan;
    let stage = Stage::of(&task)?;
    let stage = STAGE.get_or_init(|| stage);
    let calibration = clock::Calibration::start();
    let mut result = Replayed {
        owner,
        owned_by_hakmem: owned_by_hakmem(),
        ..Replayed::default()
    };
    let mut curve: Pages<u64> = Pages::new(plan.windows.len())?;
    let mut peaks: Pages<u64> = Pages::new(plan.windows.len())?;
    let mut threads = vec![None; plan.workers];
    let resident = Resident::open()?;
    resident.forget_peak();
    let before = resident.bytes();
    let mut ticks = 0;
    for (number, window) in plan.windows.iter().enumerate() {
        if let Some(wanted) = task.wanted.filter(|wanted| wanted.from == number as u32) {
            let excess = Excess::new(Resident::open()?, before + wanted.bytes);
            stage.excess.get_or_init(|| excess);
        }
        read_operations(&mut file, stage, &window.shares)?;
        for share in window.shares.iter().filter(|share| share.begins) {
            threads[share.worker as usize] = Some(begin_thread(stage, share.worker as usize)?);
        }
        ticks += run_window(stage, &window.shares, number as u32);
        curve.as_mut()[number] = resident.bytes().saturating_sub(before);
        peaks.as_mut()[number] = resident.peak().saturating_sub(before);
        resident.forget_peak();
        result.excess = stage.excess_in(number as u32, &window.shares);
        if result.excess.is_some() {
            break;
        }
        for share in window.shares.iter().filter(|share| share.ends) {
            if let Some(thread) = threads[share.worker as usize].take() {
                end_thread(stage, share.worker as usize, thread);
            }
        }
    }
    result.resident = curve.as_ref().to_vec();
    result.peaks = peaks.as_ref().to_vec();
    result.resident_peak = result.peaks.iter().copied().max().unwrap_or(0);
    result.ticks_per_second = calibration.ticks_per_second();
    result.seconds = ticks as f64 / result.ticks_per_second;
    result.clock_ticks = clock_cost();
    for worker in stage.workers.as_ref() {
        result.failed += worker.failed.load(Ordering::Relaxed);
    }
    if task.latencies {
        result.gather(stage.histograms.as_ref(), plan.workers);
    }
    Ok(result)
}

fn read_operations(file: &mut File, stage: &'static Stage, shares: &[Share]) -> Result<()> {
    let count: usize = shares.iter().map(|share| share.operations as usize).sum();
    // SAFETY: no thread works between windows; operations are plain numbers, and fit.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(
            stage.operations.start().cast::<u8>(),
            count * OPERATION_BYTES,
        )
    };
    file.read_exact(bytes)
        .map_err(|error| failed!("cannot read the plan of the replay: {error}"))
}

/// Lets the threads do their shares. Returns the time from the first thread's beginning to the last one's end.
fn run_window(stage: &'static Stage, shares: &[Share], number: u32) -> u64 {
    let workers = stage.workers.as_ref();
    stage.running.store(shares.len() as u32, Ordering::Relaxed);
    let mut first = 0;
    for share in shares {
        let worker = &workers[share.worker as usize];
        worker.first.store(first, Ordering::Relaxed);
        worker
            .count
            .store(share.operations.into(), Ordering::Relaxed);
        first += u64::from(share.operations);
        worker.window.store(number + 1, Ordering::Release); // pairs with: work
        futex(&worker.window, WAKE, 1);
    }
    loop {
        let running = stage.running.load(Ordering::Acquire); // pairs with: work
        if running == 0 {
            break;
        }
        futex(&stage.running, WAIT, running);
    }
    let of = |share: &Share| &workers[share.worker as usize];
    let started = shares
        .iter()
        .map(|share| of(share).started.load(Ordering::Relaxed))
        .min();
    let ended = shares
        .iter()
        .map(|share| of(share).ended.load(Ordering::Relaxed))
        .max();
    ended.unwrap_or(0).saturating_sub(started.unwrap_or(0))
}

fn begin_thread(stage: &'static Stage, worker: usize) -> Result<libc::pthread_t> {
    stage.workers.as_ref()[worker]
        .window
        .store(0, Ordering::Relaxed);
    let mut thread = MaybeUninit::uninit(); // a number with glibc, a pointer with musl
    // The thread only gets its worker's number: an allocated argument would have to be freed.
    let number = worker as *mut c_void;
    // SAFETY: the attributes live until they are destroyed.
    let error = unsafe {
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstacksize(&mut attributes, STACK_BYTES);
        let error = libc::pthread_create(thread.as_mut_ptr(), &attributes, work_thread, number);
        libc::pthread_attr_destroy(&mut attributes);
        error
    };
    match error {
        // SAFETY: the call has filled it in.
        0 => Ok(unsafe { thread.assume_init() }),
        _ => Err(failed!(
            "cannot start a thread: {}",
            std::io::Error::from_raw_os_error(error)
        )),
    }
}

fn end_thread(stage: &'static Stage, worker: usize, thread: libc::pthread_t) {
    let word = &stage.workers.as_ref()[worker].window;
    word.store(END, Ordering::Release);
    futex(word, WAKE, 1);
    // SAFETY: a thread that was started, and is joined once.
    unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
}

extern "C" fn work_thread(number: *mut c_void) -> *mut c_void {
    let worker = number as usize;
    let Some(stage) = STAGE.get() else {
        return std::ptr::null_mut();
    };
    let own = &stage.workers.as_ref()[worker];
    let mut last = 0;
    loop {
        let window = own.window.load(Ordering::Acquire); // pairs with: run_window
        match window {
            END => return std::ptr::null_mut(),
            _ if window == last => {
                futex(&own.window, WAIT, last);
            }
            _ => {
                last = window;
                work(stage, worker, own);
            }
        }
    }
}

fn work(stage: &'static Stage, number: usize, own: &Worker) {
    let first = own.first.load(Ordering::Relaxed) as usize;
    let count = own.count.load(Ordering::Relaxed) as usize;
    // SAFETY: this thread's part of the operations, which nobody writes during a window.
    let operations =
        unsafe { std::slice::from_raw_parts(stage.operations.start().add(first), count) };
    let slots = stage.slots.as_ref();
    own.started.store(clock::ticks(), Ordering::Relaxed);
    let failed = if stage.with_latencies {
        // SAFETY: this worker's part of the histograms, which only it writes during a window.
        let counts = unsafe {
            let at = stage.histograms.start().add(number * WORKER_BUCKETS);
            std::slice::from_raw_parts_mut(at, WORKER_BUCKETS)
        };
        carry_out(operations, slots, stage.touch, &mut Timed { counts })
    } else if let Some(excess) = stage.excess.get() {
        let mut searching = Searching {
            excess,
            worker: number,
        };
        carry_out(operations, slots, stage.touch, &mut searching)
    } else {
        carry_out(operations, slots, stage.touch, &mut Untimed)
    };
    own.ended.store(clock::ticks(), Ordering::Relaxed);
    own.failed.fetch_add(failed, Ordering::Relaxed);
    if stage.running.fetch_sub(1, Ordering::AcqRel) == 1 {
        futex(&stage.running, WAKE, 1); // pairs with: run_window
    }
}

/// Returns how many calls failed.
fn carry_out(
    operations: &[Operation],
    slots: &[Slot],
    touch: Touch,
    watch: &mut impl Watch,
) -> u64 {
    let mut failed = 0;
    for (number, operation) in operations.iter().enumerate() {
        let slot = &slots[operation.slot as usize];
        wait_for_turn(slot, operation.turn);
        failed += u64::from(!call(*operation, slot, touch, watch));
        watch.after(number);
        slot.turn.store(operation.turn + 1, Ordering::Release); // pairs with: wait_for_turn
    }
    failed
}

#[inline]
fn wait_for_turn(slot: &Slot, turn: u32) {
    let mut tries = 0u32;
    while slot.turn.load(Ordering::Acquire) != turn {
        tries += 1;
        if tries % 64 == 0 {
            // SAFETY: no arguments, no memory.
            unsafe { libc::sched_yield() };
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Makes one call, and then touches the block as the program would. False if the call failed.
#[inline(always)]
fn call(operation: Operation, slot: &Slot, touch: Touch, watch: &mut impl Watch) -> bool {
    let kind = operation.call();
    let size = operation.size();
    let old = slot.block.load(Ordering::Relaxed) as *mut c_void;
    let old_size = slot.size.load(Ordering::Relaxed) as usize;
    let mut touched = 0;
    // SAFETY: the allocator's own functions; `old` is a block of it that this slot owns, or null.
    let block = unsafe {
        match kind {
            Call::Malloc => watch.around(kind, size, || libc::malloc(size)),
            Call::Calloc => watch.around(kind, size, || libc::calloc(1, size)),
            Call::Aligned => {
                let alignment = operation.alignment().max(size_of::<usize>());
                let mut block = std::ptr::null_mut();
                watch.around(kind, size, || {
                    libc::posix_memalign(&mut block, alignment, size)
                });
                block
            }
            Call::Realloc => {
                touched = old_size;
                watch.around(kind, size, || libc::realloc(old, size))
            }
            Call::Free => {
                slot.block.store(0, Ordering::Relaxed);
                watch.around(kind, old_size, || libc::free(old));
                return true;
            }
        }
    };
    if block.is_null() {
        // A realloc that fails keeps the block, but one to size 0 has freed it; after other failed calls there is no block.
        if size == 0 {
            slot.block.store(0, Ordering::Relaxed);
        }
        return size == 0;
    }
    write_to(block.cast(), touched, size, touch);
    slot.block.store(block as u64, Ordering::Relaxed);
    slot.size
        .store(size.min(u32::MAX as usize) as u32, Ordering::Relaxed);
    true
}

#[inline]
fn write_to(block: *mut u8, from: usize, size: usize, touch: Touch) {
    // SAFETY: within the block, which has `size` bytes.
    unsafe {
        match touch {
            Touch::None => {}
            Touch::All if from < size => std::ptr::write_bytes(block.add(from), 0x5a, size - from),
            Touch::All => {}
            Touch::Pages => {
                let mut at = from;
                while at < size {
                    block.add(at).write_volatile(0x5a);
                    at += PAGE;
                }
            }
        }
    }
}
