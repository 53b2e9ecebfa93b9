//! The moment at which most was live, who held what then, and blocks that lived only for a moment.

use crate::order::{Ordered, Step, What};
use serde::Serialize;

/// When most was live.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Peak {
    /// Since the first call.
    pub seconds: f64,
    /// Calls until then, that one included; of all that took or gave a block.
    pub operation: u64,
    pub operations: u64,
    pub live_bytes: u64,
    pub live_blocks: u64,
    /// Of the call that made it the most.
    pub thread: u32,
    pub size: u64,
    pub stack: u32,
    /// How often the most has risen.
    #[serde(skip)]
    pub number: u64,
}

impl Peak {
    /// Every call, before its block is noted anywhere.
    pub fn count(&mut self, step: &Step) {
        self.operations += u64::from(!matches!(step.what, What::Failed | What::ForeignFree));
    }

    /// More is live than ever before, after this call.
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

/// What a call site, or a class of sizes, has of all that is live: now, at most, and when all was most.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Held {
    pub live_blocks: u64,
    pub live_bytes: u64,
    pub live_blocks_peak: u64,
    pub live_bytes_peak: u64,
    /// Of the peak `number`, once this has changed since; before that it is what is live.
    pub at_peak_blocks: u64,
    pub at_peak_bytes: u64,
    #[serde(skip)]
    number: u64,
}

impl Held {
    /// A peak rises with most calls of a program that grows, and a site changes seldom: so it notes what it had only when it
    /// changes for the first time since the peak.
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

    /// Another process's: peaks as if they were at one time.
    pub fn add(&mut self, other: &Held) {
        self.live_blocks += other.live_blocks;
        self.live_bytes += other.live_bytes;
        self.live_blocks_peak += other.live_blocks_peak;
        self.live_bytes_peak += other.live_bytes_peak;
        self.at_peak_blocks += other.at_peak_blocks;
        self.at_peak_bytes += other.at_peak_bytes;
    }
}

/// Which blocks are temporary: freed by the thread that asked for them, which has asked for at most `within` others meanwhile.
pub struct Ages {
    within: u64,
    /// Blocks that each thread was given.
    given: Vec<u64>,
    /// By slot: how many its thread had been given then, the block included.
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

    /// Of a block that its own thread gives back. A realloc gives back before it is given.
    pub fn is_temporary(&self, step: &Step) -> bool {
        let born = self.born[step.slot as usize];
        self.given[step.thread] - born <= self.within
    }
}
