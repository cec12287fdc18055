//! Memory of ids that are closed: finished, cancelled, acked or evicted.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};

use crate::ident::CallId;

/// Remembers the last ids by a 128-bit fingerprint each, oldest out first (AGX-CALL).
///
/// With the default of 1,048,576 ids it takes at most 52 MiB: 16 bytes an id for the order, and a
/// hash table of twice as many slots of 17 bytes.
#[derive(Clone, Debug)]
pub(crate) struct ClosedIds {
    order: VecDeque<u128>,
    set: HashSet<u128>,
    capacity: usize,
    seed: u64,
}

impl ClosedIds {
    pub(crate) const DEFAULT_CAPACITY: usize = 1 << 20;

    /// `seed` makes fingerprints unpredictable to whoever chooses ids.
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        Self {
            order: VecDeque::new(),
            set: HashSet::new(),
            capacity,
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
        if !self.set.insert(fingerprint) {
            return;
        }
        self.order.push_back(fingerprint);
        if self.order.len() > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.set.remove(&oldest);
        }
    }

    pub(crate) fn contains(&self, id: &CallId) -> bool {
        self.set.contains(&self.fingerprint(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let mut closed = ClosedIds::new(2, 7);
        let ids = [1, 2, 3].map(CallId::from_random);
        for id in &ids {
            closed.insert(id);
            closed.insert(id);
        }
        assert!(!closed.contains(&ids[0]));
        assert!(closed.contains(&ids[1]) && closed.contains(&ids[2]));
    }
}
