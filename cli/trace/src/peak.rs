//! The moment with the most live bytes, who held them then, and temporary blocks.

use crate::order::{Ordered, Step, What};
use serde::Serialize;

/// The moment with the most live bytes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Peak {
    /// Since the first call.
    pub seconds: f64,
    /// How many calls there were until then, including that one. Failed calls and frees of unknown blocks do not count.
    pub operation: u64,
    pub operations: u64,
    pub live_bytes: u64,
    pub live_blocks: u64,
    /// The call that made the peak.
    pub thread: u32,
    pub size: u64,
    pub stack: u32,
    /// How often the peak has risen.
    #[serde(skip)]
    pub number: u64,
}

impl Peak {
    /// Counts a call; comes before its block is recorded.
    pub fn count(&mut self, step: &Step) {
        self.operations += u64::from(!matches!(step.what, What::Failed | What::ForeignFree));
    }

    /// Records a new peak, after the call that made it.
    pub fn rise(&mut self, step: &Step, ordered: &Ordered, seconds: f64) {
        *self = Peak {
            seconds,
            operation: self.operations,
            operations: self.operations,
            live_bytes: ordered.live_bytes,
            live_blocks: ordered.live_blocks,
            thread: ordered.threads[step.thread],
            size: step.size,
            stack: step.stack,
            number: self.number + 1,
        };
    }
}

/// The live blocks of a call site or a size class: now, at its own peak, and at the process's peak.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Held {
    pub live_blocks: u64,
    pub live_bytes: u64,
    pub live_blocks_peak: u64,
    pub live_bytes_peak: u64,
    /// The value at the peak `number`, if it has changed since; if not, the live value is that of the peak.
    pub at_peak_blocks: u64,
    pub at_peak_bytes: u64,
    #[serde(skip)]
    number: u64,
}

impl Held {
    /// While a program grows, most calls raise the peak, but a site changes seldom. So a site saves its value only when it
    /// first changes after a peak.
    pub fn keep(&mut self, peak: &Peak) {
        if self.number != peak.number {
            self.number = peak.number;
            self.at_peak_blocks = self.live_blocks;
            self.at_peak_bytes = self.live_bytes;
        }
    }

    pub fn give(&mut self, peak: &Peak, bytes: u64) {
        self.keep(peak);
        self.live_blocks += 1;
        self.live_bytes += bytes;
        self.live_blocks_peak = self.live_blocks_peak.max(self.live_blocks);
        self.live_bytes_peak = self.live_bytes_peak.max(self.live_bytes);
    }

    pub fn take(&mut self, peak: &Peak, bytes: u64) {
        self.keep(peak);
        self.live_blocks -= 1;
        self.live_bytes -= bytes;
    }

    /// Adds another process's figures; peaks are added as if they had been at the same time.
    pub fn add(&mut self, other: &Held) {
        self.live_blocks += other.live_blocks;
        self.live_bytes += other.live_bytes;
        self.live_blocks_peak += other.live_blocks_peak;
        self.live_bytes_peak += other.live_bytes_peak;
        self.at_peak_blocks += other.at_peak_blocks;
        self.at_peak_bytes += other.at_peak_bytes;
    }
}

/// Finds temporary blocks: freed by the thread that allocated them, which has allocated at most `within` others in between.
pub struct Ages {
    within: u64,
    /// How many blocks each thread has allocated.
    given: Vec<u64>,
    /// By slot: how many blocks its thread had allocated, including this one.
    born: Vec<u64>,
}

impl Ages {
    pub fn new(threads: usize, within: u64) -> Ages {
        Ages {
            within,
            given: vec![0; threads],
            born: Vec::new(),
        }
    }

    pub fn begin(&mut self, step: &Step) {
        let slot = step.slot as usize;
        if self.born.len() <= slot {
            self.born.resize(slot + 1, 0);
        }
        self.given[step.thread] += 1;
        self.born[slot] = self.given[step.thread];
    }

    /// Called for a block that its own thread frees. A realloc frees first, and then allocates.
    pub fn is_temporary(&self, step: &Step) -> bool {
        let born = self.born[step.slot as usize];
        self.given[step.thread] - born <= self.within
    }
}
