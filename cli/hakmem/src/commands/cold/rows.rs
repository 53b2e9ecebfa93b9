//! Cold memory by call site and by size.

use super::{Arguments, Figures};
use crate::frames::{self, By};
use crate::profile::group::module;
use hakmem_heap::cold::{Bytes, OfSize, OfStack};
use hakmem_heap::profile::Profile;
use hakmem_trace::symbols::Names;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

#[derive(Debug, Serialize)]
pub struct Site {
    /// The innermost first; with --by, the subject of the row.
    pub frames: Vec<String>,
    pub samples: u64,
    pub blocks: f64,
    #[serde(flatten)]
    pub figures: Figures,
    /// By the size of a block.
    pub sizes: Vec<Size>,
}

#[derive(Debug, Serialize)]
pub struct Size {
    /// 0: large blocks of all sizes.
    pub block_bytes: u64,
    pub blocks: f64,
    #[serde(flatten)]
    pub figures: Figures,
}

/// The sums of a row.
#[derive(Default)]
struct Sum {
    samples: u64,
    blocks: f64,
    bytes: Bytes,
    sizes: BTreeMap<u64, (f64, Bytes)>,
}

impl Sum {
    fn add(&mut self, part: &OfStack) {
        self.samples += part.samples;
        self.blocks += part.blocks;
        self.bytes.add(&part.bytes);
        let (blocks, bytes) = self.sizes.entry(part.block_bytes).or_default();
        *blocks += part.blocks;
        bytes.add(&part.bytes);
    }
}

/// The call sites with most cold memory first.
pub fn sites(
    parts: &[OfStack],
    profile: &Profile,
    names: &mut Names,
    arguments: &Arguments,
) -> Vec<Site> {
    let mut sums: HashMap<Vec<String>, Sum> = HashMap::new();
    let mut labels: HashMap<usize, Vec<String>> = HashMap::new();
    for part in parts {
        let label = labels.entry(part.stack).or_insert_with(|| {
            let places = frames::places(&profile.stacks[part.stack], &profile.python, names);
            let frames: Vec<String> = places
                .iter()
                .flat_map(|place| place.frames.clone())
                .collect();
            match arguments.by {
                By::Stack => frames,
                by => vec![
                    arguments
                        .folded
                        .label(by, &frames, |frame| module(&places, frame)),
                ],
            }
        });
        sums.entry(label.clone()).or_default().add(part);
    }
    let price = arguments.price;
    let mut sites: Vec<Site> = sums
        .into_iter()
        .map(|(frames, sum)| Site {
            frames,
            samples: sum.samples,
            blocks: sum.blocks,
            figures: Figures::of(&sum.bytes, price),
            sizes: (sum.sizes.iter())
                .map(|(block_bytes, (blocks, bytes))| Size {
                    block_bytes: *block_bytes,
                    blocks: *blocks,
                    figures: Figures::of(bytes, price),
                })
                .collect(),
        })
        .collect();
    sites.sort_by(|a, b| {
        let of = |site: &Site| (site.figures.cold_bytes, site.figures.live_bytes);
        of(b).cmp(&of(a)).then_with(|| a.frames.cmp(&b.frames))
    });
    sites
}

/// The sizes that have blocks, with most cold memory first.
pub fn sizes(all: &[OfSize], price: Option<f64>) -> Vec<Size> {
    let mut sizes: Vec<Size> = all
        .iter()
        .filter(|size| size.blocks > 0)
        .map(|size| Size {
            block_bytes: size.block_bytes,
            blocks: size.blocks as f64,
            figures: Figures::of(&size.bytes, price),
        })
        .collect();
    sizes.sort_by_key(|size| std::cmp::Reverse((size.figures.cold_bytes, size.figures.live_bytes)));
    sizes
}
