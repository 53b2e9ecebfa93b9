//! A race of variants: the learner's own, compiled from the same C (`src/policy/race.h`).

use std::mem::zeroed;

const MOST: usize = 32;

/// What a variant saves of both costs, its own and the baseline's.
#[repr(C)]
struct Sequence {
    count: u64,
    mean: f64,
    squares: f64,
}

/// The same, with an interval that holds at any moment.
#[repr(C)]
pub struct Estimate {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// As in C, of which a test below sees every field at work.
#[repr(C)]
pub struct Race {
    random: u64,
    state: u32,
    left: u32,
    /// That are over.
    pub laps: u32,
    /// In the present lap or pair.
    pub place: u32,
    pub in_lap: u32,
    /// Who plays the duel with the baseline, or did; 0: nobody.
    pub candidate: u32,
    /// The baseline, unless another is better beyond chance.
    pub winner: u32,
    is_swapped: u32,
    order: [u8; MOST],
    costs: [f64; MOST],
    savings: [Sequence; MOST],
    duel: Sequence,
}

const IS_OVER: u32 = 2;

unsafe extern "C" {
    fn hak_race_start(race: &mut Race, variants: u32, seed: u64);
    fn hak_race_turn(race: &Race) -> u32;
    fn hak_race_note(race: &mut Race, cost: f64, is_out: bool);
    fn hak_race_end(race: &mut Race);
    fn hak_sequence_estimate(sequence: &Sequence) -> Estimate;
}

impl Race {
    /// Of a baseline, which is number 0, and others.
    pub fn new(variants: usize, seed: u64) -> Race {
        assert!(variants < MOST);
        // SAFETY: all zeros are a race, of numbers alone.
        let mut race = unsafe { zeroed() };
        // SAFETY: it has places for so many.
        unsafe { hak_race_start(&mut race, (1 << variants) - 1, seed) };
        race
    }

    /// Who plays next; none when it is over.
    pub fn turn(&self) -> Option<usize> {
        // SAFETY: it was started.
        (self.state != IS_OVER).then(|| unsafe { hak_race_turn(self) } as usize)
    }

    /// Whose turn it is has cost that.
    pub fn note(&mut self, cost: f64) {
        assert!(self.state != IS_OVER);
        // SAFETY: as above, and it is somebody's turn.
        unsafe { hak_race_note(self, cost, false) }
    }

    /// There is no time for more.
    pub fn end(&mut self) {
        // SAFETY: as above.
        unsafe { hak_race_end(self) }
    }

    /// Of the duel, that are over.
    pub fn pairs(&self) -> u32 {
        self.duel.count as u32
    }

    /// In the laps, in the mean.
    pub fn saving(&self, variant: usize) -> f64 {
        self.savings[variant].mean
    }

    /// What the candidate saves.
    pub fn estimate(&self) -> Estimate {
        // SAFETY: it reads numbers.
        unsafe { hak_sequence_estimate(&self.duel) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are known: were a field elsewhere in C, one of them would be another.
    #[test]
    fn every_field_is_where_it_is_in_c() {
        let mut race = Race::new(3, 7);
        assert!((race.in_lap, race.left, race.random != 7) == (3, 6, true) && race.place == 0);
        while let Some(turn) = race.turn() {
            assert!(race.laps > 0 || race.order[race.place as usize] == turn as u8);
            race.note([3.0, 2.0, 1.0][turn]);
            let is_first = race.laps == 0 && race.place > 0;
            assert!(!is_first || race.costs[turn] == 3.0 - turn as f64);
        }
        assert!(race.is_swapped < 2);
        assert_eq!((race.laps, race.pairs(), race.left), (1, 6, 4));
        assert_eq!((race.candidate, race.winner), (2, 2));
        assert!((race.saving(1) - 0.2).abs() < 1e-9 && (race.saving(2) - 0.5).abs() < 1e-9);
        assert!(race.duel.squares < 1e-9 && race.savings[2].count == 1);
        let duel = race.estimate();
        assert!((duel.mean - 0.5).abs() < 1e-9 && duel.low > 0.49 && duel.high < 0.51);
        let mut race = Race::new(3, 7);
        race.end();
        assert!(race.turn().is_none() && race.winner == 0);
    }
}
