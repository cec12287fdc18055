//! How deep a value is.

use super::arena::{Arena, NodeId};

/// Being walked.
const OPEN: u32 = u32::MAX;

/// How many objects that hold objects lie one inside the other, from `root` down; `None` for a cycle.
/// Linear in the objects reached, without recursion.
pub(super) fn depth(arena: &Arena<'_>, root: NodeId) -> Option<u64> {
    // One more than the depth, or 0 where none is known; an object count fits in 32 bits.
    let mut known: Vec<u32> = vec![0; arena.nodes.len()];
    let mut open = Vec::new();
    let mut current = Some(root);
    loop {
        if let Some(id) = current.take() {
            match known[id.index()] {
                OPEN => return None,
                0 => {
                    let references = arena.references(id);
                    known[id.index()] = OPEN;
                    open.push((id, references, 0, 0));
                }
                _ => {}
            }
        }
        let Some((id, references, next, deepest)) = open.last_mut() else {
            return Some(u64::from(known[root.index()] - 1));
        };
        if *next > 0 {
            // The one before has been walked.
            let below = known[references[*next - 1].index()];
            *deepest = below.max(*deepest);
        }
        if let Some(reference) = references.get(*next) {
            *next += 1;
            current = Some(*reference);
        } else {
            // A leaf is of depth 0; what holds leaves is of depth 1.
            known[id.index()] = if references.is_empty() {
                1
            } else {
                *deepest + 1
            };
            open.pop();
        }
    }
}
