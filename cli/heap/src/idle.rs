//! Was a page accessed since it was marked? The kernel tells this by page frame. Only root may ask, and only a kernel with
//! CONFIG_IDLE_PAGE_TRACKING answers.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;

const BITMAP: &str = "/sys/kernel/mm/page_idle/bitmap";
/// The flags of each page frame. In a huge page, only the first frame can be marked.
const FLAGS: &str = "/proc/kpageflags";
const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;
/// How many frames the largest page has that we look for.
const HUGE_FRAMES: u64 = 512;

/// Why idle bits cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Without {
    /// The kernel was built without CONFIG_IDLE_PAGE_TRACKING.
    NotInKernel,
    /// We are not root.
    NotAllowed,
}

pub struct IdleBits {
    bitmap: File,
    flags: File,
}

impl IdleBits {
    pub fn open() -> std::result::Result<IdleBits, Without> {
        IdleBits::of(Path::new(BITMAP), Path::new(FLAGS))
    }

    fn of(bitmap: &Path, flags: &Path) -> std::result::Result<IdleBits, Without> {
        let why = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => Without::NotInKernel,
            _ => Without::NotAllowed,
        };
        let mut both = OpenOptions::new();
        both.read(true).write(true);
        Ok(IdleBits {
            bitmap: both.open(bitmap).map_err(why)?,
            flags: File::open(flags).map_err(why)?,
        })
    }

    /// Marks the pages that contain these frames.
    pub fn mark(&self, frames: &[u64]) -> Result<()> {
        let mut words: BTreeMap<u64, u64> = BTreeMap::new();
        for frame in frames {
            let head = self.head(*frame)?;
            *words.entry(head / 64).or_default() |= 1 << (head % 64);
        }
        for (word, bits) in words {
            // If the machine's memory ends within the last word, the kernel reports 0 bytes written.
            let _ = self.bitmap.write_at(&bits.to_ne_bytes(), word * 8)?;
        }
        Ok(())
    }

    /// Is it still marked? False for a frame that cannot be marked.
    pub fn is_idle(&self, frame: u64) -> Result<bool> {
        let head = self.head(frame)?;
        let mut word = [0; 8];
        self.bitmap.read_exact_at(&mut word, head / 64 * 8)?;
        Ok(u64::from_ne_bytes(word) >> (head % 64) & 1 != 0)
    }

    /// The first frame of the page that contains a frame.
    fn head(&self, frame: u64) -> Result<u64> {
        let mut flags = [0; 8];
        self.flags.read_exact_at(&mut flags, frame * 8)?;
        if u64::from_ne_bytes(flags) & TAIL == 0 {
            return Ok(frame);
        }
        let first = frame - frame % HUGE_FRAMES;
        let mut before = vec![0; usize::try_from((frame - first) * 8).unwrap_or(0)];
        self.flags.read_exact_at(&mut before, first * 8)?;
        let is_head = |entry: &[u8]| {
            let flags = u64::from_ne_bytes(entry.try_into().unwrap_or_default());
            flags & HEAD != 0
        };
        let at = before.chunks_exact(8).rposition(is_head);
        Ok(at.map_or(frame, |at| first + at as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that stand in for the kernel's; they have as many frames as four words have bits.
    fn kernel(folder: &Path, huge: std::ops::Range<usize>) -> IdleBits {
        let (bitmap, flags) = (folder.join("bitmap"), folder.join("flags"));
        std::fs::write(&bitmap, [0; 4 * 8]).unwrap();
        let flags_of = |frame| match frame {
            _ if frame == huge.start => HEAD,
            _ if huge.contains(&frame) => TAIL,
            _ => 0,
        };
        let text: Vec<u8> = (0..256)
            .flat_map(|frame| flags_of(frame).to_ne_bytes())
            .collect();
        std::fs::write(&flags, text).unwrap();
        IdleBits::of(&bitmap, &flags).unwrap()
    }

    #[test]
    fn what_was_marked_is_idle_until_it_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let bits = kernel(folder.path(), 300..300);
        bits.mark(&[3, 5, 64, 255]).unwrap();
        let idle = |frame| bits.is_idle(frame).unwrap();
        assert_eq!(
            [3, 4, 5, 64, 65, 255].map(idle),
            [true, false, true, true, false, true]
        );
        bits.bitmap.write_all_at(&[0; 8], 0).unwrap();
        assert_eq!([3, 5, 64].map(idle), [false, false, true]);
        assert!(bits.is_idle(1 << 40).is_err());
    }

    #[test]
    fn of_a_huge_page_its_first_frame_tells() {
        let folder = tempfile::tempdir().unwrap();
        let bits = kernel(folder.path(), 16..80);
        bits.mark(&[70]).unwrap();
        let idle = |frame| bits.is_idle(frame).unwrap();
        assert_eq!(
            [15, 16, 40, 79, 80].map(idle),
            [false, true, true, true, false]
        );
    }

    #[test]
    fn who_has_no_such_kernel_is_told_that() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = folder.path().join("none");
        let why = IdleBits::of(&nowhere, &nowhere).err();
        assert_eq!(why, Some(Without::NotInKernel));
    }
}
