//! Random choices from a seed.

use crate::generator::Choices;

/// SplitMix64: short, and good enough for this.
pub(crate) struct Random(u64);

impl Random {
    /// The choices for the pickle of this number in a run with this seed.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut random = Self(seed);
        Self(random.next() ^ number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

impl Choices for Random {
    fn below(&mut self, n: usize) -> usize {
        // The high half of a product: uniform but for a part in 2^64 / n. It is below `n`.
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}
