//! Memory of ids that are closed: finished, cancelled, acked or evicted.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};

use crate::ident::CallId;

/// Remembers the last ids by a 128-bit fingerprint each (AGX-CALL-005).
///
/// The ids are in generations, and the oldest generation is forgotten as a whole: a set from which
/// single ids are removed grows with its scars, and would need a queue beside it. With the default
/// of 1,000,000 ids there are ten tables of 131,072 slots of 17 bytes: 22 MiB at most.
#[derive(Clone, Debug)]
pub(crate) struct ClosedIds {
    /// Newest first; only the first is not full.
    generations: VecDeque<HashSet<u128>>,
    generation_size: usize,
    seed: u64,
}

impl ClosedIds {
    pub(crate) const DEFAULT_CAPACITY: usize = 1_000_000;
    /// Full generations that are kept: as many as let one of them fill a table of 2^17 slots.
    const GENERATIONS: usize = 9;

    /// Remembers at least the last `capacity` ids, and at most a ninth more. `seed` makes
    /// fingerprints unpredictable to whoever chooses ids.
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        Self {
            generations: VecDeque::from([HashSet::new()]),
            generation_size: capacity.div_ceil(Self::GENERATIONS).max(1),
            seed,
        }
    }

    fn fingerprint(&self, id: &CallId) -> u128 {
        let half = |lane: u8| {
            let mut hasher = DefaultHasher::new();
            (self.seed, lane, id.as_str()).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(0) << 64 | half(1)
    }

    pub(crate) fn insert(&mut self, id: &CallId) {
        let fingerprint = self.fingerprint(id);
        if self.has(fingerprint) {
            return;
        }
        match self.generations.front_mut() {
            Some(newest) if newest.len() < self.generation_size => {
                newest.insert(fingerprint);
            }
            _ => {
                self.generations.truncate(Self::GENERATIONS);
                self.generations.push_front(HashSet::from([fingerprint]));
            }
        }
    }

    pub(crate) fn contains(&self, id: &CallId) -> bool {
        self.has(self.fingerprint(id))
    }

    fn has(&self, fingerprint: u128) -> bool {
        self.generations
            .iter()
            .any(|generation| generation.contains(&fingerprint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(capacity: usize, ids: u128) -> ClosedIds {
        let mut closed = ClosedIds::new(capacity, 7);
        for n in 0..ids {
            closed.insert(&CallId::from_random(n));
        }
        closed
    }

    #[test]
    fn the_oldest_goes_first() {
        let closed = filled(9, 1000);
        let known = |n| closed.contains(&CallId::from_random(n));
        assert!((991..1000).all(known));
        assert!(!(0..990).any(known));
    }

    #[test]
    fn an_id_is_remembered_once() {
        let mut closed = filled(9, 5);
        for _ in 0..1000 {
            closed.insert(&CallId::from_random(4));
        }
        assert!((0..5).all(|n| closed.contains(&CallId::from_random(n))));
    }

    #[test]
    fn agx_call_005_to_006_a_million_ids_in_64_mib() {
        let last = 1_300_000;
        let closed = filled(ClosedIds::DEFAULT_CAPACITY, last);
        for n in last - 1_000_000..last {
            assert!(closed.contains(&CallId::from_random(n)));
        }
        assert!(!closed.contains(&CallId::from_random(0)));
        // Nothing was ever removed from a table, so `capacity` tells its slots: at most 7/8 of
        // them are in use, each has 16 bytes and one of control.
        let slots = |set: &HashSet<u128>| set.capacity().div_ceil(7) * 8;
        let bytes: usize = closed.generations.iter().map(|set| slots(set) * 17).sum();
        assert!(bytes <= 24 << 20, "{bytes} bytes");
    }
}
