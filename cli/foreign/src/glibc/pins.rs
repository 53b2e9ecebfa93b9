//! What keeps free memory from being given back: live chunks on pages that are mostly free.

use super::Heap;
use super::chunks::{self, Kind};
use super::notes::Note;
use super::region::Region;
use crate::sizes::{OfSize, Sizes};
use crate::space::Space;
use crate::window::Window;
use serde::{Deserialize, Serialize};

/// A page is sparse if at most this share is in use: then its free part is pinned.
const SPARSE_PER_CENT: u64 = 25;
/// How many sparse pages to read again.
const PAGES_MOST: usize = 20_000;

/// Sparse pages, and the chunks on them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pins {
    pub pages: u64,
    pub free_bytes: u64,
    /// How many pages were read again, and the chunks in use on them, by size.
    pub looked_at: u64,
    pub blocks: Vec<OfSize>,
}

impl Heap {
    pub fn pins(&self, space: &Space) -> Pins {
        let mut pins = Pins::default();
        let mut sparse = Vec::new();
        for region in &self.regions {
            for (page, note) in region.resident_pages() {
                let used = note.live() + note.cached();
                let free = region.page_bytes.saturating_sub(used);
                let is_sparse = used > 0 && used * 100 <= region.page_bytes * SPARSE_PER_CENT;
                if is_sparse && note.other() == 0 {
                    pins.pages += 1;
                    pins.free_bytes += free;
                    sparse.push((region, page));
                }
            }
        }
        // If there are too many, a regular sample of them is read.
        let step = sparse.len().div_ceil(PAGES_MOST).max(1);
        let mut sizes = Sizes::default();
        for (region, page) in sparse.into_iter().step_by(step) {
            pins.looked_at += 1;
            add_chunks(&mut sizes, space, region, page);
        }
        pins.blocks = sizes.table();
        pins
    }
}

/// Adds the chunks in use that begin on the page.
fn add_chunks(sizes: &mut Sizes, space: &Space, region: &Region, page: usize) {
    let Some(first) = region.note(page).and_then(Note::first) else {
        return;
    };
    let start = region.layout.address_of(page);
    let end = start + region.page_bytes;
    let mut window = Window::new(
        space,
        start..(end + region.page_bytes).min(region.range.end),
    );
    chunks::walk(
        &mut window,
        start + first,
        end,
        region.range.end,
        &mut |chunk| {
            if chunk.kind == Kind::Used {
                sizes.add(chunk.bytes);
            }
        },
    );
}
