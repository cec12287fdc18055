//! The memo: what a stream stored to refer to again.

use std::collections::BTreeMap;

use super::arena::NodeId;

/// Entries by index. Indexes that count up from 0, as picklers write them, sit in a vector; any
/// others in a map, so that an index is never an allocation size.
#[derive(Debug, Default)]
pub(super) struct Memo {
    /// Entries 0 to `dense.len()`.
    dense: Vec<NodeId>,
    /// The others, all above `dense.len()`.
    sparse: BTreeMap<u64, NodeId>,
}

impl Memo {
    /// How many entries there are; also the index that MEMOIZE stores under.
    pub(super) fn len(&self) -> u64 {
        (self.dense.len() + self.sparse.len()) as u64
    }

    pub(super) fn load(&self, index: u64) -> Option<NodeId> {
        match self.dense.get(usize::try_from(index).ok()?) {
            Some(id) => Some(*id),
            None if self.sparse.is_empty() => None,
            None => self.sparse.get(&index).copied(),
        }
    }

    /// Makes room for more entries.
    pub(super) fn reserve(&mut self, more: usize) {
        self.dense.reserve(more);
    }

    /// Stores under the next index, which is `len()`.
    pub(super) fn push(&mut self, id: NodeId) {
        if self.sparse.is_empty() {
            self.dense.push(id);
        } else {
            self.store(self.len(), id);
        }
    }

    pub(super) fn store(&mut self, index: u64, id: NodeId) {
        let next = self.dense.len() as u64;
        if index > next {
            self.sparse.insert(index, id);
        } else if index < next {
            // Below `dense.len()`, hence a usize.
            self.dense[index as usize] = id;
        } else {
            self.dense.push(id);
            while !self.sparse.is_empty()
                && let Some(id) = self.sparse.remove(&(self.dense.len() as u64))
            {
                self.dense.push(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_in_any_order_and_counts_entries_once() {
        let mut memo = Memo::default();
        for (index, id) in [
            (2, 0),
            (u64::MAX, 1),
            (0, 2),
            (2, 3),
            (1, 4),
            (3, 5),
            (0, 6),
        ] {
            memo.store(index, NodeId::new(id).unwrap());
        }
        assert_eq!(memo.len(), 5);
        let found: Vec<_> = [0, 1, 2, 3, 4, u64::MAX]
            .map(|index| memo.load(index).map(NodeId::index))
            .into();
        assert_eq!(found, [Some(6), Some(4), Some(3), Some(5), None, Some(1)]);
        assert_eq!(memo.dense.len(), 4);
    }
}
