//! Choices that a seed repeats.

use std::time::Duration;

/// A stream of choices (SplitMix64): the same seed gives the same ones in every version of this program.
pub(super) struct Random(u64);

impl Random {
    /// The stream `number` of a seed.
    pub(super) fn stream(seed: u64, number: u64) -> Self {
        let mut random = Self(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `end`; 0 where there is none.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let number = self.next() % u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(number).unwrap_or_default()
    }

    /// Whether something comes true that does so `percent` times in a hundred.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Picks one of them at random.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// So many milliseconds, from `least` to less than `end`.
    pub(super) fn millis(&mut self, least: usize, end: usize) -> Duration {
        let millis = least + self.below(end.saturating_sub(least));
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(seed: u64, stream: u64) -> Vec<usize> {
        let mut random = Random::stream(seed, stream);
        (0..50).map(|_| random.below(10)).collect()
    }

    #[test]
    fn a_seed_repeats_its_choices_and_each_stream_has_its_own() {
        assert_eq!(choices(1, 1), choices(1, 1));
        assert_ne!(choices(1, 1), choices(2, 1));
        assert_ne!(choices(1, 1), choices(1, 2));
        assert!((0..10).all(|number| choices(1, 1).contains(&number)));
    }
}
