//! What of the live blocks is cold. Two looks at the same pages: what is resident and the same in both was not written to
//! meanwhile. Where the kernel tells which pages were touched at all (`idle`), a page that was read is not cold either.
//!
//! Blocks are judged page by page: of a block on two pages, the one part may be cold and the other not. Only pages that are
//! resident are read, so nothing becomes resident by looking. Of large heaps one page of some is looked at, and stands for
//! as many.

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

/// A live block's part on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// In `Blocks::sizes`.
    pub size: usize,
    pub block: u64,
    /// In the page.
    pub range: Range<usize>,
}

/// A heap at one look, whosever it is.
pub trait Blocks {
    /// All sizes that its blocks may have, with what is live.
    fn sizes(&self) -> Vec<OfSize>;

    /// The resident pages on which a live block lies.
    fn offer(&self, pages: &Pages, chosen: &mut Chosen);

    /// Read what it takes to say which blocks lie on these, which are in order.
    fn look_at(&mut self, pages: &[u64]);

    /// The live blocks on a page that was looked at; `None` when that could not be made out.
    fn parts(&self, page: u64, page_bytes: u64) -> Option<Vec<Part>>;

    /// Does this block lie on a page that was looked at, and live?
    fn has(&self, page: u64, part: &Part) -> bool;

    /// Does a part of it lie there?
    fn is_in(&self, range: &Range<u64>) -> bool;
}

/// Bytes of live blocks. All but `live` are resident.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    pub live: f64,
    pub resident: f64,
    pub cold: f64,
    /// Of `cold`: on pages on which something else was touched.
    pub beside: f64,
    /// All zero now, cold or not.
    pub zero: f64,
    /// The square of a deviation of `cold`, which is an estimate where not all was looked at.
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

    /// Two deviations of the estimate of what is cold.
    pub fn cold_off(&self) -> f64 {
        2.0 * self.variance.max(0.0).sqrt()
    }
}

/// All blocks of a size class.
#[derive(Clone, Copy, Debug)]
pub struct OfSize {
    /// 0: large ones, of all sizes.
    pub block_bytes: u64,
    pub blocks: u64,
    pub bytes: Bytes,
}

/// What was sampled at a call stack, of a size.
#[derive(Clone, Copy, Debug)]
pub struct OfStack {
    /// In `Profile::stacks`.
    pub stack: usize,
    /// That a block takes.
    pub block_bytes: u64,
    pub samples: u64,
    pub blocks: f64,
    /// As the blocks were asked for.
    pub bytes: Bytes,
}

/// What was done for it, and what the answer is worth.
#[derive(Clone, Debug, Serialize)]
pub struct How {
    /// Between the looks.
    pub seconds: f64,
    /// None: the kernel has told which pages were read or written. Else only what was written is known.
    pub without_idle_bits: Option<Without>,
    pub page_bytes: u64,
    /// Resident pages with live blocks, and those of them that were looked at.
    pub pages: u64,
    pub pages_looked_at: u64,
    /// Of these: on which nobody could say what lies, as it changed meanwhile.
    pub pages_unclear: u64,
    /// The same of pages with sampled blocks.
    pub sampled_pages: u64,
    pub sampled_pages_looked_at: u64,
    /// Of the mappings that the heap lies in, where that was asked for.
    pub referenced: Option<Referenced>,
    /// Both looks together, without the time between them.
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
    /// When each was allocated, by address.
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
    /// Of a process whose heap and profile have just been read. The kernel may be asked as well how much was read or written at
    /// all (`referenced`).
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
        // After reading, which touches pages as well.
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

    /// What was touched since, before the second look touches it: pages that the kernel tells of, and whether.
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

    /// The time between the looks is over.
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

/// The first look, with what the kernel says of what was touched since.
pub struct Ended<'a> {
    before: Before<'a>,
    seconds: f64,
    referenced: Option<Referenced>,
    accessed: HashMap<u64, bool>,
    took: Duration,
}

impl Ended<'_> {
    /// The second look, at the heap and the profile as they are now. What was allocated since is live and not cold.
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

/// The pages of both, in order.
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
    // Who may not know where pages are reads zeros.
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

/// What the second look has added up so far.
struct Sums {
    page_bytes: u64,
    unclear: u64,
    sizes: Vec<OfSize>,
    /// In the order of the profile's.
    samples: Vec<Bytes>,
    /// Their numbers, in order of where they lie.
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

/// Samples added up, each as often as it stands for others.
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
        // Of a draw with the chance 1 / blocks, and of the choice of pages for each block that it stands for.
        sum.variance += bytes.cold * bytes.cold * sample.blocks * (sample.blocks - 1.0)
            + bytes.variance * sample.blocks;
    }
    found.into_values().collect()
}
