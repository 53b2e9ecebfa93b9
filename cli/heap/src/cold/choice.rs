//! Which pages are looked at: few enough to keep copies of, and the same ones at both looks.

/// Pages of which a copy is kept: for all blocks, and as many for those that were sampled.
const MOST: usize = 16 << 10;

/// One page in so many, by its address.
#[derive(Clone, Copy)]
pub struct Choice {
    one_in: u64,
}

impl Choice {
    /// Who is one in twice as many is one in so many, too.
    fn has(self, page: u64) -> bool {
        let mixed = (page >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed < (1 << 32) / self.one_in
    }

    /// What is looked at stands for so many.
    pub fn weight(self) -> f64 {
        self.one_in as f64
    }

    /// The variance that choosing adds to a sum that this is a part of.
    pub fn variance(self, part: f64) -> f64 {
        part * part * self.weight() * (self.weight() - 1.0)
    }
}

/// What was chosen of pages that were offered in order.
pub struct Chosen {
    pub choice: Choice,
    is_fixed: bool,
    last: Option<u64>,
    pub offered: u64,
    pub pages: Vec<u64>,
}

impl Chosen {
    /// At the first look: as many as can be kept.
    pub fn first() -> Chosen {
        Chosen::of(Choice { one_in: 1 }, false)
    }

    /// At the second one.
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

    /// The same page may come several times in a row.
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
