//! What the two looks tell about a part of a page.

use super::Bytes;
use std::ops::Range;

/// A page at the second look.
pub struct Seen<'a> {
    before: Option<&'a [u8]>,
    now: &'a [u8],
    is_accessed: Option<bool>,
    has_changed: bool,
}

impl<'a> Seen<'a> {
    pub fn of(before: Option<&'a [u8]>, now: &'a [u8], is_accessed: Option<bool>) -> Seen<'a> {
        Seen {
            before,
            now,
            is_accessed,
            has_changed: before != Some(now),
        }
    }

    /// Judges one part. If the page was accessed and another part has changed, that part explains the access. If none has
    /// changed, any part may have been read.
    pub fn judge(&self, part: Range<usize>, was_live: bool) -> Bytes {
        let is_accessed = self.is_accessed == Some(true);
        let now = self.now.get(part.clone()).unwrap_or_default();
        let bytes = now.len() as f64;
        let is_same = was_live && self.before.and_then(|before| before.get(part)) == Some(now);
        let is_cold = is_same && (!is_accessed || self.has_changed);
        let if_so = |so: bool| if so { bytes } else { 0.0 };
        Bytes {
            live: 0.0,
            resident: bytes,
            cold: if_so(is_cold),
            beside: if_so(is_cold && (is_accessed || self.has_changed)),
            zero: if_so(now.iter().all(|byte| *byte == 0)),
            variance: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Range<usize> = 16..32;

    /// Judges a part of a page, given the page's content at both looks.
    fn judged(before: Option<&[u8]>, now: &[u8], is_accessed: Option<bool>) -> [bool; 3] {
        let found = Seen::of(before, now, is_accessed).judge(PART, true);
        assert_eq!(found.resident, 16.0);
        [found.cold, found.beside, found.zero].map(|bytes| bytes == 16.0)
    }

    #[test]
    fn without_the_kernel_what_has_not_changed_is_cold() {
        let (ones, mut beside, mut inside) = ([1; 64], [1; 64], [1; 64]);
        beside[40] = 2;
        inside[20] = 2;
        assert_eq!(judged(Some(&ones), &ones, None), [true, false, false]);
        assert_eq!(judged(Some(&ones), &beside, None), [true, true, false]);
        assert_eq!(judged(Some(&ones), &inside, None), [false, false, false]);
        // The page became resident between the looks.
        assert_eq!(judged(None, &[0; 64], None), [false, false, true]);
        assert_eq!(judged(Some(&[0; 64]), &[0; 64], None), [true, false, true]);
    }

    #[test]
    fn the_kernel_tells_what_was_read() {
        let (ones, mut beside) = ([1; 64], [1; 64]);
        beside[40] = 2;
        assert_eq!(
            judged(Some(&ones), &ones, Some(false)),
            [true, false, false]
        );
        // By this block or by another block on the page.
        assert_eq!(
            judged(Some(&ones), &ones, Some(true)),
            [false, false, false]
        );
        assert_eq!(
            judged(Some(&ones), &beside, Some(true)),
            [true, true, false]
        );
    }

    #[test]
    fn what_was_not_live_before_is_not_cold() {
        let ones = [1; 64];
        let found = Seen::of(Some(&ones), &ones, None).judge(PART, false);
        assert_eq!((found.resident, found.cold), (16.0, 0.0));
        // Parts of a damaged heap may end beyond the page.
        let beyond = Seen::of(Some(&ones), &ones, None).judge(60..80, true);
        assert_eq!(beyond, Bytes::default());
    }
}
