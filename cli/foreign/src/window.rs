//! Reads a heap's words in ascending order: in large pieces where pages are adjacent, and nothing from absent pages.

use crate::glibc::Layout;
use crate::space::Space;
use hakmem_heap::resident::Page;
use std::ops::Range;
use std::sync::Arc;

const PIECE_LEAST: usize = 16 << 10;
const PIECE_MOST: usize = 256 << 10;

pub struct Window<'a> {
    space: &'a Space<'a>,
    range: Range<u64>,
    /// Which pages are present, if it is already known.
    layout: Option<Arc<Layout>>,
    /// The range where the last look found no page.
    absent: Range<u64>,
    start: u64,
    content: Vec<u8>,
    /// The size of the next piece, if it follows this one.
    piece: usize,
}

impl<'a> Window<'a> {
    /// The range must begin and end at page boundaries.
    pub fn new(space: &'a Space<'a>, range: Range<u64>) -> Window<'a> {
        Window::with(space, range, None)
    }

    /// A range whose present pages are already known.
    pub fn with_layout(space: &'a Space<'a>, range: Range<u64>, layout: Arc<Layout>) -> Window<'a> {
        Window::with(space, range, Some(layout))
    }

    fn with(space: &'a Space<'a>, range: Range<u64>, layout: Option<Arc<Layout>>) -> Window<'a> {
        Window {
            layout,
            space,
            range,
            absent: 0..0,
            start: 0,
            content: Vec::new(),
            piece: PIECE_LEAST,
        }
    }

    pub fn word(&mut self, address: u64) -> Option<u64> {
        if let Some(word) = self.held(address) {
            return Some(word);
        }
        self.load(address)?;
        self.held(address)
    }

    #[inline]
    fn held(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.wrapping_sub(self.start)).ok()?;
        let bytes = self.content.get(at..at.checked_add(8)?)?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    }

    /// Drops what was read: the next read returns the current content.
    pub fn forget(&mut self) {
        self.content.clear();
        self.absent = 0..0;
        self.piece = PIECE_LEAST;
    }

    fn load(&mut self, address: u64) -> Option<()> {
        if !self.range.contains(&address) || self.absent.contains(&address) {
            return None;
        }
        let page_bytes = self.space.page_bytes;
        let is_next = address.wrapping_sub(self.start) <= self.content.len() as u64 + page_bytes;
        self.piece = match is_next && !self.content.is_empty() {
            true => (self.piece * 2).min(PIECE_MOST),
            false => PIECE_LEAST,
        };
        let start = address - address % page_bytes;
        let most = self
            .piece
            .div_ceil(usize::try_from(page_bytes).ok()?)
            .max(1);
        // A page that is swapped out is only read if one of its words is needed.
        let count = match self.alike(start, most)? {
            (Page::Absent, count) => {
                self.absent = start..start + count as u64 * page_bytes;
                return None;
            }
            (Page::Swapped, _) => 1,
            (Page::Resident, count) => count,
        };
        self.content
            .resize(count * usize::try_from(page_bytes).ok()?, 0);
        self.start = start;
        let is_read = self.space.read(start, &mut self.content) || {
            self.content.truncate(usize::try_from(page_bytes).ok()?);
            self.space.read(start, &mut self.content)
        };
        if !is_read {
            self.content.clear();
        }
        is_read.then_some(())
    }

    /// Like `Space::alike`, up to the end of the range.
    fn alike(&self, start: u64, most: usize) -> Option<(Page, usize)> {
        let page_bytes = self.space.page_bytes;
        let left = (self.range.end - start).div_ceil(page_bytes);
        let most = most.min(usize::try_from(left).unwrap_or(most));
        let Some(layout) = &self.layout else {
            return Some(self.space.alike(start, most));
        };
        let (first, present) = (layout.page_of(start), &layout.present);
        let state = present.state(first);
        let alike = (first..first + most).take_while(|page| present.state(*page) == state);
        Some((state, alike.count()))
    }
}
