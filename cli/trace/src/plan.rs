//! Prepares a trace for replay: writes a file of operations, which the measured process reads window by window. So a trace of
//! any length needs little memory.
//!
//! A window is a part of the common order. Within it, each thread has a list of operations. An operation waits until its
//! block's slot has reached its turn, so nothing is freed before it is allocated, and no slot is reused before its last block
//! is freed. Between windows, all threads rest and the memory is measured.

use crate::order::{Ordered, Step, What};
use crate::reader::Reader;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::{Error, Result};
use hakmem_lab::{failed, interrupt};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Write};

/// The number of windows, and so of points on the memory curves, unless windows would be too short or too long.
const WINDOWS: u64 = 400;
const WINDOW_OPERATIONS: std::ops::RangeInclusive<u64> = 20_000..=1 << 20;
/// The most threads with operations in one window, so the most that exist at a time.
const WINDOW_THREADS: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Call {
    Malloc,
    Calloc,
    Aligned,
    Realloc,
    Free,
}

impl Call {
    pub const ALL: [Call; 5] = [
        Call::Malloc,
        Call::Calloc,
        Call::Aligned,
        Call::Realloc,
        Call::Free,
    ];

    pub fn name(self) -> &'static str {
        ["malloc", "calloc", "aligned", "realloc", "free"][self as usize]
    }
}

/// The format in the file and in the measured process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Operation {
    pub slot: u32,
    pub turn: u32,
    /// The size in bits 0 to 47, log2 of the alignment from 48, the call from 56.
    packed: u64,
}

pub const OPERATION_BYTES: usize = size_of::<Operation>();
const SIZE_MAX: u64 = (1 << 48) - 1;

impl Operation {
    fn new(slot: u32, turn: u32, call: Call, size: u64, log2: u8) -> Operation {
        let packed = size.min(SIZE_MAX) | u64::from(log2) << 48 | (call as u64) << 56;
        Operation { slot, turn, packed }
    }

    #[inline]
    pub fn call(self) -> Call {
        match self.packed >> 56 {
            0 => Call::Malloc,
            1 => Call::Calloc,
            2 => Call::Aligned,
            3 => Call::Realloc,
            _ => Call::Free,
        }
    }

    #[inline]
    pub fn size(self) -> usize {
        (self.packed & SIZE_MAX) as usize
    }

    #[inline]
    pub fn alignment(self) -> usize {
        1 << (self.packed >> 48 & 0x3f)
    }

    fn bytes(self) -> [u8; OPERATION_BYTES] {
        let mut bytes = [0; OPERATION_BYTES];
        bytes[..4].copy_from_slice(&self.slot.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.turn.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.packed.to_ne_bytes());
        bytes
    }
}

/// The work of one thread in a window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Share {
    /// The worker that does it; several threads may use one worker, one after the other.
    pub worker: u32,
    pub operations: u32,
    /// Does the thread begin with this window; does it end with it?
    pub begins: bool,
    pub ends: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Window {
    pub shares: Vec<Share>,
    /// The program's live bytes: after the window, and the most within it.
    pub live_bytes: u64,
    pub live_bytes_peak: u64,
    pub live_blocks: u64,
    pub seconds: f64,
}

/// Precedes the operations of a run: everything that the measured process must know.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    pub process: u32,
    pub program: String,
    pub threads: usize,
    pub workers: usize,
    pub slots: usize,
    pub operations: u64,
    pub windows: Vec<Window>,
    pub live_bytes_peak: u64,
    /// Events that cannot be replayed: failed allocations, and frees of unknown blocks.
    pub skipped: u64,
}

impl Plan {
    pub fn window_operations_max(&self) -> usize {
        let of = |window: &Window| {
            window
                .shares
                .iter()
                .map(|share| share.operations as usize)
                .sum::<usize>()
        };
        self.windows.iter().map(of).max().unwrap_or(0)
    }
}

/// A call of a plan: the window, the share in it, and the call's index in the share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    pub window: u32,
    pub share: u32,
    pub index: u32,
}

/// The same call in the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Its number among all replayed calls, from 1.
    pub operation: u64,
    /// The time in the recording.
    pub seconds: f64,
    pub thread: u32,
    pub call: String,
    pub size: u64,
    /// The program's live bytes, including this call.
    pub live_bytes: u64,
    pub stack: u32,
    /// The calling functions if the trace has names, the innermost first.
    #[serde(default)]
    pub frames: Vec<String>,
}

struct Maker<W: Write> {
    out: W,
    plan: Plan,
    /// This window's operations by thread, in the order of each thread's first one.
    threads: Vec<(usize, Vec<Operation>)>,
    position: FxHashMap<usize, usize>,
    /// Threads with a worker, and workers without a thread.
    workers: FxHashMap<usize, u32>,
    idle: Vec<u32>,
    operations: u64,
    peak: u64,
    wanted: Option<At>,
}

/// Writes the operations of a process to a file.
pub fn make(reader: &Reader, process: u32, file: &File) -> Result<Plan> {
    let out = BufWriter::with_capacity(1 << 20, file);
    Ok(walk(reader, process, out, None)?.0)
}

/// Finds a call of the plan in the trace.
pub fn find(reader: &Reader, process: u32, at: At) -> Result<Option<Place>> {
    Ok(walk(reader, process, std::io::sink(), Some(at))?.1)
}

/// The plan; or the wanted call, with the plan up to there.
fn walk<W: Write>(
    reader: &Reader,
    process: u32,
    out: W,
    wanted_call: Option<At>,
) -> Result<(Plan, Option<Place>)> {
    let events: u64 = reader
        .chunks
        .iter()
        .filter(|chunk| chunk.head.process == process)
        .map(|chunk| u64::from(chunk.head.count))
        .sum();
    let wanted = (events / WINDOWS).clamp(*WINDOW_OPERATIONS.start(), *WINDOW_OPERATIONS.end());
    let mut ordered = Ordered::new(reader, process)?;
    let known = reader
        .processes
        .iter()
        .find(|known| known.process == process);
    let mut maker = Maker {
        out,
        plan: Plan {
            process,
            program: known.map(|known| known.program.clone()).unwrap_or_default(),
            threads: ordered.threads.len(),
            ..Plan::default()
        },
        threads: Vec::new(),
        position: FxHashMap::default(),
        workers: FxHashMap::default(),
        idle: Vec::new(),
        operations: 0,
        peak: 0,
        wanted: wanted_call,
    };
    let mut time = 0;
    while let Some(step) = ordered.step()? {
        time = step.time;
        maker.peak = maker.peak.max(ordered.live_bytes);
        if let Some(call) = maker.add(&step) {
            let place = Place {
                operation: maker.plan.operations + maker.operations,
                seconds: reader.seconds(time),
                thread: ordered.threads[step.thread],
                call: call.name().into(),
                size: step.size,
                live_bytes: ordered.live_bytes,
                stack: step.stack,
                frames: Vec::new(),
            };
            return Ok((maker.plan, Some(place)));
        }
        if maker.operations >= wanted || maker.threads.len() >= WINDOW_THREADS {
            if interrupt::requested() {
                return Err(failed!("stopped before the first run"));
            }
            let now = reader.seconds(time);
            maker.end_window(&ordered, now).map_err(unwritten)?;
        }
    }
    let now = reader.seconds(time);
    maker.end_window(&ordered, now).map_err(unwritten)?;
    maker.out.flush().map_err(unwritten)?;
    maker.plan.slots = ordered.slots();
    Ok((maker.plan, None))
}

pub fn unwritten(error: std::io::Error) -> Error {
    failed!(
        "cannot write the plan of the replay to {}: {error}; TMPDIR names another folder",
        std::env::temp_dir().shown()
    )
}

impl<W: Write> Maker<W> {
    /// Adds a step; returns its call if it is the wanted one.
    fn add(&mut self, step: &Step) -> Option<Call> {
        let call = match step.what {
            What::Malloc => (Call::Malloc, 0),
            What::Calloc => (Call::Calloc, 0),
            What::Aligned { log2 } => (Call::Aligned, log2),
            What::Realloc => (Call::Realloc, 0),
            What::Free => (Call::Free, 0),
            What::Failed | What::ForeignFree => {
                self.plan.skipped += 1;
                return None;
            }
        };
        let threads = &mut self.threads;
        let position = *self.position.entry(step.thread).or_insert_with(|| {
            threads.push((step.thread, Vec::new()));
            threads.len() - 1
        });
        let operation = Operation::new(step.slot, step.turn, call.0, step.size, call.1);
        let own = &mut threads[position].1;
        own.push(operation);
        self.operations += 1;
        let at = At {
            window: self.plan.windows.len() as u32,
            share: position as u32,
            index: own.len() as u32 - 1,
        };
        (self.wanted == Some(at)).then_some(call.0)
    }

    fn end_window(&mut self, ordered: &Ordered, seconds: f64) -> std::io::Result<()> {
        let mut shares = Vec::new();
        let mut left = Vec::new(); // workers that later windows may use
        for (thread, operations) in std::mem::take(&mut self.threads) {
            let begins = !self.workers.contains_key(&thread);
            let worker = *self.workers.entry(thread).or_insert_with(|| {
                self.idle.pop().unwrap_or_else(|| {
                    self.plan.workers += 1;
                    self.plan.workers as u32 - 1
                })
            });
            for operation in &operations {
                self.out.write_all(&operation.bytes())?;
            }
            // A thread without further events ends, and another one can use its worker.
            let ends = ordered.has_ended(thread);
            if ends {
                self.workers.remove(&thread);
                left.push(worker);
            }
            shares.push(Share {
                worker,
                operations: operations.len() as u32,
                begins,
                ends,
            });
        }
        self.idle.extend(left);
        self.position.clear();
        self.plan.operations += self.operations;
        self.operations = 0;
        self.plan.live_bytes_peak = self.plan.live_bytes_peak.max(self.peak);
        if !shares.is_empty() {
            self.plan.windows.push(Window {
                shares,
                live_bytes: ordered.live_bytes,
                live_bytes_peak: self.peak,
                live_blocks: ordered.live_blocks,
                seconds,
            });
        }
        self.peak = ordered.live_bytes;
        Ok(())
    }
}
