//! Structural equality, without recursion, cycles included.

use super::arena::Node;
use super::keys;
use super::value::Value;

/// Whether `left` and `right` unfold to the same, possibly infinite, tree.
///
/// Objects are put into classes of those assumed equal (a union-find over both documents); a pair
/// already in one class is not looked at again. So each comparison of two large objects joins two
/// classes, and there are at most as many as objects. An assumption that turns out wrong ends it.
pub(super) fn same(left: Value<'_>, right: Value<'_>) -> bool {
    let one_document = std::ptr::eq(left.arena(), right.arena());
    let offset = left.document().node_count();
    let mut classes = Classes::new(offset + right.document().node_count());
    let mut pending = vec![(left.id(), right.id())];
    while let Some((a, b)) = pending.pop() {
        let (a, b) = (left.at(a), right.at(b));
        if one_document && a.id() == b.id() {
            continue;
        }
        let mut unseen = || classes.join(a.id().index(), offset + b.id().index());
        let (from, to) = match (a.node(), b.node()) {
            (Node::None, Node::None) => continue,
            (Node::Bool(a), Node::Bool(b)) if a == b => continue,
            (Node::Int(a), Node::Int(b)) if a == b => continue,
            (Node::BigInt(_), Node::BigInt(_)) if !unseen() || a.as_big_int() == b.as_big_int() => {
                continue;
            }
            (Node::Float(a), Node::Float(b)) if a.to_bits() == b.to_bits() => continue,
            (Node::Str(x), Node::Str(y))
            | (Node::Bytes(x), Node::Bytes(y))
            | (Node::Bytearray(x), Node::Bytearray(y))
                if x.len == y.len
                    && (x.len > 64 && !unseen() || a.raw_bytes(x) == b.raw_bytes(y)) =>
            {
                continue;
            }
            (Node::List(x), Node::List(y))
            | (Node::Tuple(x), Node::Tuple(y))
            | (Node::Dict(x), Node::Dict(y))
                if x.len == y.len =>
            {
                (a.arena().span(x), b.arena().span(y))
            }
            (Node::Set(x), Node::Set(y)) | (Node::Frozenset(x), Node::Frozenset(y))
                if x.len == y.len =>
            {
                if !unseen() || keys::same_elements(a, b) {
                    continue;
                }
                return false;
            }
            _ => return false,
        };
        if unseen() {
            pending.extend(from.iter().copied().zip(to.iter().copied()));
        }
    }
    true
}

/// A union-find over object numbers.
struct Classes {
    /// One more than the parent, or 0. Zeroed memory costs nothing until it is touched.
    parent: Vec<usize>,
}

impl Classes {
    fn new(objects: usize) -> Self {
        Self {
            parent: vec![0; objects],
        }
    }

    fn parent(&self, of: usize) -> Option<usize> {
        self.parent[of].checked_sub(1)
    }

    fn root(&mut self, mut of: usize) -> usize {
        while let Some(parent) = self.parent(of) {
            if self.parent[parent] != 0 {
                self.parent[of] = self.parent[parent];
            }
            of = parent;
        }
        of
    }

    /// Joins two classes; false if they were one already.
    fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return false;
        }
        self.parent[a] = b + 1;
        true
    }
}
