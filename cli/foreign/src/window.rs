//! A heap's words, read in the order of their addresses: in large pieces where they lie close together, and nothing of
//! what is not there.

use crate::space::Space;
use hakmem_heap::resident::Page;
use std::ops::Range;
use std::sync::Arc;

const PIECE_LEAST: usize = 16 << 10;
const PIECE_MOST: usize = 256 << 10;

pub struct Window<'a> {
    space: &'a Space<'a>,
    range: Range<u64>,
    pages: Arc<[Page]>,
    start: u64,
    content: Vec<u8>,
    /// What the next piece will have, if it follows this one.
    piece: usize,
}

impl<'a> Window<'a> {
    /// Of a range that begins and ends with a page.
    pub fn new(space: &'a Space<'a>, range: Range<u64>) -> Window<'a> {
        let pages = space.pages(&range).into();
        Window::with_pages(space, range, pages)
    }

    /// Whose pages are known.
    pub fn with_pages(space: &'a Space<'a>, range: Range<u64>, pages: Arc<[Page]>) -> Window<'a> {
        Window {
            pages,
            space,
            range,
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

    /// What is read anew is as it is now.
    pub fn forget(&mut self) {
        self.content.clear();
        self.piece = PIECE_LEAST;
    }

    fn load(&mut self, address: u64) -> Option<()> {
        if !self.range.contains(&address) {
            return None;
        }
        let page_bytes = self.space.page_bytes;
        let is_next = address.wrapping_sub(self.start) <= self.content.len() as u64 + page_bytes;
        self.piece = match is_next && !self.content.is_empty() {
            true => (self.piece * 2).min(PIECE_MOST),
            false => PIECE_LEAST,
        };
        let start = address - address % page_bytes;
        let first = usize::try_from((start - self.range.start) / page_bytes).ok()?;
        let most = self
            .piece
            .div_ceil(usize::try_from(page_bytes).ok()?)
            .max(1);
        // A page that is swapped out is read where a word of it is asked for, and no other.
        let there = self.pages.get(first..)?.iter().take(most);
        let there = there.take_while(|page| **page == Page::Resident).count();
        let count = match self.pages.get(first)? {
            Page::Absent => return None,
            Page::Swapped => 1,
            Page::Resident => there,
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
}
