//! Which part of the live blocks is cold. The same pages are looked at twice: a part that is resident and the same at both
//! looks was not written to in between. If the kernel tells which pages were accessed (`idle`), a page that was read is not
//! cold either.
//!
//! Blocks are judged page by page: if a block lies on two pages, one part may be cold and the other not. Only resident pages
//! are read, so a look makes nothing resident. In a large heap a sample of the pages is looked at, and each stands for several.

mod choice;
mod ours;
mod pages;
mod seen;

use crate::error::Result;
use crate::idle::{IdleBits, Without};
use crate::live::LiveProcess;
use crate::profile::Profile;
use crate::referenced::{Cleared, Referenced};
use crate::resident::Pages;
use choice::Choice;
pub use choice::Chosen;
pub use pages::{Windows, offset};
use pages::{by_address, offer_samples, range_of, read_pages};
use seen::Seen;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The part of a live block that lies on one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// An index into `Blocks::sizes`.
    pub size: usize,
    pub block: u64,
    /// Offsets in the page.
    pub range: Range<usize>,
}

/// A heap at one look, of any allocator.
pub trait Blocks {
    /// All sizes of its blocks, with what is live of each.
    fn sizes(&self) -> Vec<OfSize>;

    /// Offers the resident pages that contain a part of a live block.
    fn offer(&self, pages: &Pages, chosen: &mut Chosen);

    /// Reads what `parts` needs for these pages, which are sorted.
    fn look_at(&mut self, pages: &[u64]);

    /// The parts of live blocks on a page; `None` if the heap does not tell.
    fn parts(&self, page: u64, page_bytes: u64) -> Option<Vec<Part>>;

    /// Was this part, on a page of `look_at`, a part of a live block at this look?
    fn has(&self, page: u64, part: &Part) -> bool;

    /// Does any part of the heap lie in this range?
    fn is_in(&self, range: &Range<u64>) -> bool;
}

/// Bytes of live blocks. All fields but `live` count resident bytes only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    pub live: f64,
    pub resident: f64,
    pub cold: f64,
    /// The part of `cold` that lies on pages where something else was accessed.
    pub beside: f64,
    /// Bytes on parts of pages that contain only zeros now, cold or not.
    pub zero: f64,
    /// The variance of `cold`, which is an estimate if only a sample of the pages was looked at.
    variance: f64,
}

impl Bytes {
    pub fn live(bytes: u64) -> Bytes {
        Bytes {
            live: bytes as f64,
            ..Bytes::default()
        }
    }

    pub fn add(&mut self, more: &Bytes) {
        self.live += more.live;
        self.add_resident(more, 1.0);
        self.variance += more.variance;
    }

    fn add_resident(&mut self, more: &Bytes, times: f64) {
        self.resident += times * more.resident;
        self.cold += times * more.cold;
        self.beside += times * more.beside;
        self.zero += times * more.zero;
    }

    /// Two standard deviations of `cold`.
    pub fn cold_off(&self) -> f64 {
        2.0 * self.variance.max(0.0).sqrt()
    }
}

/// All blocks of a size class.
#[derive(Clone, Copy, Debug)]
pub struct OfSize {
    /// 0: large blocks of all sizes.
    pub block_bytes: u64,
    pub blocks: u64,
    pub bytes: Bytes,
}

/// The sampled blocks of one call stack and one size.
#[derive(Clone, Copy, Debug)]
pub struct OfStack {
    /// An index into `Profile::stacks`.
    pub stack: usize,
    /// How many bytes a block takes.
    pub block_bytes: u64,
    pub samples: u64,
    pub blocks: f64,
    /// In bytes as requested.
    pub bytes: Bytes,
}

/// How the looks were made, and how far the answer can be trusted.
#[derive(Clone, Debug, Serialize)]
pub struct How {
    /// The time between the looks.
    pub seconds: f64,
    /// None: the kernel has told which pages were read or written. Otherwise only writes are known.
    pub without_idle_bits: Option<Without>,
    pub page_bytes: u64,
    /// Resident pages with live blocks, and how many of them were looked at.
    pub pages: u64,
    pub pages_looked_at: u64,
    /// How many of these changed too much to tell which blocks they contain.
    pub pages_unclear: u64,
    /// The same for pages with sampled blocks.
    pub sampled_pages: u64,
    pub sampled_pages_looked_at: u64,
    /// Of the heap's mappings, if requested.
    pub referenced: Option<Referenced>,
    /// The time for both looks, without the time between them.
    pub read_ms: f64,
}

#[derive(Clone, Debug)]
pub struct Cold {
    pub sizes: Vec<OfSize>,
    pub stacks: Vec<OfStack>,
    pub how: How,
}

/// The first look.
pub struct Before<'a> {
    blocks: Box<dyn Blocks + 'a>,
    /// The time of each sampled allocation, by address.
    samples: HashMap<u64, u64>,
    of_sizes: Choice,
    of_samples: Choice,
    copies: HashMap<u64, Box<[u8]>>,
    idle: std::result::Result<IdleBits, Without>,
    cleared: Option<Cleared>,
    at: Instant,
    took: Duration,
}

impl<'a> Before<'a> {
    /// The process's heap and profile have just been read. `with_referenced` also asks the kernel how much of the mappings is
    /// read or written.
    pub fn look(
        process: &LiveProcess,
        mut blocks: Box<dyn Blocks + 'a>,
        profile: &Profile,
        with_referenced: bool,
    ) -> Result<Before<'a>> {
        let start = Instant::now();
        let pages = Pages::open(process)?;
        let (mut of_sizes, mut of_samples) = (Chosen::first(), Chosen::first());
        blocks.offer(&pages, &mut of_sizes);
        offer_samples(profile, &pages, &mut of_samples);
        of_sizes.pages.sort_unstable();
        blocks.look_at(&of_sizes.pages);
        let chosen = both(&of_sizes, &of_samples);
        let mut copies = HashMap::with_capacity(chosen.len());
        read_pages(process, &chosen, pages.page_bytes, |page, content| {
            copies.insert(page, content.into());
        });
        // After the reads, which also count as accesses.
        let cleared = with_referenced
            .then(|| Cleared::clear(process))
            .transpose()?;
        let idle = IdleBits::open().and_then(|bits| mark(bits, &pages, &chosen));
        Ok(Before {
            samples: identities(profile),
            blocks,
            of_sizes: of_sizes.choice,
            of_samples: of_samples.choice,
            copies,
            idle,
            cleared,
            at: Instant::now(),
            took: start.elapsed(),
        })
    }

    /// Which of the copied pages were accessed since; asked before the second look accesses them.
    fn accessed(&self, pages: &Pages) -> HashMap<u64, bool> {
        let Ok(bits) = &self.idle else {
            return HashMap::new();
        };
        let is_idle = |page: u64| bits.is_idle(pages.frame(page)?).ok();
        let looked_at = self.copies.keys();
        looked_at
            .map(|page| (*page, is_idle(*page) != Some(true)))
            .collect()
    }

    /// Ends the time between the looks.
    pub fn end(self, process: &LiveProcess) -> Result<Ended<'a>> {
        let seconds = self.at.elapsed().as_secs_f64();
        let start = Instant::now();
        let cleared = self.cleared.as_ref();
        let referenced = cleared
            .map(|cleared| cleared.count(process, |range| self.blocks.is_in(range)))
            .transpose()?;
        let accessed = self.accessed(&Pages::open(process)?);
        Ok(Ended {
            seconds,
            referenced,
            accessed,
            took: self.took + start.elapsed(),
            before: self,
        })
    }
}

/// The first look, and what the kernel says was accessed since.
pub struct Ended<'a> {
    before: Before<'a>,
    seconds: f64,
    referenced: Option<Referenced>,
    accessed: HashMap<u64, bool>,
    took: Duration,
}

impl Ended<'_> {
    /// The second look, at the heap and the profile as they are now. Blocks that were allocated since are live and not cold.
    pub fn compare(
        self,
        process: &LiveProcess,
        blocks: &mut dyn Blocks,
        profile: &Profile,
    ) -> Result<Cold> {
        let start = Instant::now();
        let pages = Pages::open(process)?;
        let before = &self.before;
        let mut of_sizes = Chosen::again(before.of_sizes);
        let mut of_samples = Chosen::again(before.of_samples);
        blocks.offer(&pages, &mut of_sizes);
        offer_samples(profile, &pages, &mut of_samples);
        of_sizes.pages.sort_unstable();
        blocks.look_at(&of_sizes.pages);
        let is_one_of = |chosen: &Chosen| chosen.pages.iter().copied().collect::<HashSet<u64>>();
        let (is_of_sizes, is_of_samples) = (is_one_of(&of_sizes), is_one_of(&of_samples));
        let chosen = both(&of_sizes, &of_samples);
        let mut sums = Sums::of(blocks, profile, pages.page_bytes);
        read_pages(process, &chosen, pages.page_bytes, |page, now| {
            let accessed = self.accessed.get(&page).copied();
            let seen = Seen::of(before.copies.get(&page).map(AsRef::as_ref), now, accessed);
            if is_of_sizes.contains(&page) {
                sums.add_blocks(before, blocks, page, &seen);
            }
            if is_of_samples.contains(&page) {
                sums.add_samples(before, profile, page, &seen);
            }
        });
        Ok(Cold {
            sizes: sums.sizes,
            stacks: stacks(profile, &sums.samples),
            how: How {
                seconds: self.seconds,
                without_idle_bits: before.idle.as_ref().err().copied(),
                referenced: self.referenced,
                page_bytes: pages.page_bytes,
                pages: of_sizes.offered,
                pages_looked_at: of_sizes.pages.len() as u64,
                pages_unclear: sums.unclear,
                sampled_pages: of_samples.offered,
                sampled_pages_looked_at: of_samples.pages.len() as u64,
                read_ms: (self.took + start.elapsed()).as_secs_f64() * 1e3,
            },
        })
    }
}

/// The pages of both choices, sorted, each once.
fn both(one: &Chosen, other: &Chosen) -> Vec<u64> {
    let mut pages: Vec<u64> = one.pages.iter().chain(&other.pages).copied().collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

fn mark(bits: IdleBits, pages: &Pages, chosen: &[u64]) -> std::result::Result<IdleBits, Without> {
    let frames: Vec<u64> = chosen
        .iter()
        .filter_map(|page| pages.frame(*page))
        .collect();
    // Without the right to see page frames, a process reads zeros.
    if frames.is_empty() && !chosen.is_empty() {
        return Err(Without::NotAllowed);
    }
    match bits.mark(&frames) {
        Ok(()) => Ok(bits),
        Err(_) => Err(Without::NotAllowed),
    }
}

fn identities(profile: &Profile) -> HashMap<u64, u64> {
    let samples = profile.samples.iter();
    samples
        .map(|sample| (sample.address, sample.time_ns))
        .collect()
}

/// The sums of the second look so far.
struct Sums {
    page_bytes: u64,
    unclear: u64,
    sizes: Vec<OfSize>,
    /// In the order of the profile's samples.
    samples: Vec<Bytes>,
    /// Indexes of the samples, sorted by address.
    by_address: Vec<usize>,
}

impl Sums {
    fn of(blocks: &dyn Blocks, profile: &Profile, page_bytes: u64) -> Sums {
        Sums {
            page_bytes,
            unclear: 0,
            sizes: blocks.sizes(),
            samples: vec![Bytes::default(); profile.samples.len()],
            by_address: by_address(profile),
        }
    }

    fn add_blocks(&mut self, before: &Before, blocks: &dyn Blocks, page: u64, seen: &Seen) {
        let Some(parts) = blocks.parts(page, self.page_bytes) else {
            self.unclear += 1;
            return;
        };
        let mut of_page: BTreeMap<usize, Bytes> = BTreeMap::new();
        for part in parts {
            let was_live = before.blocks.has(page, &part);
            let judged = seen.judge(part.range, was_live);
            of_page.entry(part.size).or_default().add(&judged);
        }
        for (size, bytes) in of_page {
            let sum = &mut self.sizes[size].bytes;
            sum.add_resident(&bytes, before.of_sizes.weight());
            sum.variance += before.of_sizes.variance(bytes.cold);
        }
    }

    fn add_samples(&mut self, before: &Before, profile: &Profile, page: u64, seen: &Seen) {
        let end = page + self.page_bytes;
        let before_end = |index: &usize| profile.samples[*index].address < end;
        let last = self.by_address.partition_point(before_end);
        for index in self.by_address[..last].iter().rev() {
            let sample = &profile.samples[*index];
            let range = range_of(sample);
            if range.end <= page {
                break;
            }
            let part = offset(range.start.max(page) - page)..offset(range.end.min(end) - page);
            let was_live = before.samples.get(&sample.address) == Some(&sample.time_ns);
            let judged = seen.judge(part, was_live);
            let sum = &mut self.samples[*index];
            sum.add_resident(&judged, before.of_samples.weight());
            sum.variance += before.of_samples.variance(judged.cold);
        }
    }
}

/// The sums of the samples by call stack and size, each sample weighted by the blocks that it stands for.
fn stacks(profile: &Profile, samples: &[Bytes]) -> Vec<OfStack> {
    let mut found: BTreeMap<(usize, u64), OfStack> = BTreeMap::new();
    for (sample, bytes) in profile.samples.iter().zip(samples) {
        let key = (sample.stack, sample.block_bytes);
        let of_stack = found.entry(key).or_insert(OfStack {
            stack: sample.stack,
            block_bytes: sample.block_bytes,
            samples: 0,
            blocks: 0.0,
            bytes: Bytes::default(),
        });
        of_stack.samples += 1;
        of_stack.blocks += sample.blocks;
        let sum = &mut of_stack.bytes;
        sum.live += sample.bytes as f64 * sample.blocks;
        sum.add_resident(bytes, sample.blocks);
        // Two terms: sampling with the chance 1 / blocks, and the choice of pages for each of these blocks.
        sum.variance += bytes.cold * bytes.cold * sample.blocks * (sample.blocks - 1.0)
            + bytes.variance * sample.blocks;
    }
    found.into_values().collect()
}
