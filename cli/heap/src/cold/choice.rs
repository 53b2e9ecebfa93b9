//! Which pages are sampled: few enough to keep copies of, and the same ones at both looks.

/// The most pages to copy for all blocks; as many again for sampled blocks.
const MOST: usize = 16 << 10;

/// One page in `one_in`, chosen by a hash of its address.
#[derive(Clone, Copy)]
pub struct Choice {
    one_in: u64,
}

impl Choice {
    /// A page that is chosen for one in 2n is also chosen for one in n.
    fn has(self, page: u64) -> bool {
        let mixed = (page >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed < (1 << 32) / self.one_in
    }

    /// How many pages a chosen page stands for.
    pub fn weight(self) -> f64 {
        self.one_in as f64
    }

    /// The variance that choosing pages adds to a sum with this term.
    pub fn variance(self, part: f64) -> f64 {
        part * part * self.weight() * (self.weight() - 1.0)
    }
}

/// The pages that were chosen of those offered.
pub struct Chosen {
    pub choice: Choice,
    is_fixed: bool,
    last: Option<u64>,
    pub offered: u64,
    pub pages: Vec<u64>,
}

impl Chosen {
    /// For the first look: as many pages as can be copied.
    pub fn first() -> Chosen {
        Chosen::of(Choice { one_in: 1 }, false)
    }

    /// For the second look: the same choice.
    pub fn again(choice: Choice) -> Chosen {
        Chosen::of(choice, true)
    }

    fn of(choice: Choice, is_fixed: bool) -> Chosen {
        Chosen {
            choice,
            is_fixed,
            last: None,
            offered: 0,
            pages: Vec::new(),
        }
    }

    /// The same page may be offered several times in a row.
    pub fn offer(&mut self, page: u64) {
        if self.last == Some(page) {
            return;
        }
        self.last = Some(page);
        self.offered += 1;
        if !self.choice.has(page) {
            return;
        }
        self.pages.push(page);
        while self.pages.len() > MOST && !self.is_fixed {
            self.choice.one_in *= 2;
            let choice = self.choice;
            self.pages.retain(|page| choice.has(*page));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_large_heaps_are_chosen_evenly_and_stand_for_the_others() {
        let mut chosen = Chosen::first();
        let all = 10 * MOST as u64;
        let page = |number: u64| 0x7f00_0000_0000 + (number << 12);
        for number in 0..all {
            chosen.offer(page(number));
            chosen.offer(page(number));
        }
        assert_eq!((chosen.offered, chosen.choice.weight()), (all, 16.0));
        let half = chosen
            .pages
            .iter()
            .filter(|one| **one < page(all / 2))
            .count();
        for (found, expected) in [(chosen.pages.len(), MOST * 10 / 16), (half, MOST * 5 / 16)] {
            assert!(
                found.abs_diff(expected) < expected / 50,
                "{found} {expected}"
            );
        }
        let mut again = Chosen::again(chosen.choice);
        (0..all).for_each(|number| again.offer(page(number)));
        assert_eq!(again.pages, chosen.pages);
    }

    #[test]
    fn of_small_ones_all_are() {
        let mut chosen = Chosen::first();
        (0..MOST as u64).for_each(|number| chosen.offer(number << 12));
        assert_eq!(chosen.pages.len(), MOST);
        assert_eq!(chosen.choice.variance(4096.0), 0.0);
    }
}
