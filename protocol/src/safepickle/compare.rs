//! Structural equality, without recursion, cycles included.

use super::arena::{Arena, Node};
use super::keys;
use super::object::Object;
use super::value::{Text, Value};

/// Bytes that are compared wherever they are met. Longer ones are compared once.
const SHORT: u32 = 64;

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
        let label = label(a, b);
        let mut unseen = || classes.join(a.id().index(), offset + b.id().index());
        match label {
            Label::Differ => return false,
            Label::Equal => {}
            Label::Large(equal) => {
                if unseen() && !equal(a, b) {
                    return false;
                }
            }
            Label::Elements => {
                if unseen() {
                    match keys::pair_elements(a, b) {
                        Some(pairs) => pending.extend(pairs),
                        None => return false,
                    }
                }
            }
            Label::Parts => {
                if unseen() {
                    let (from, to) = (a.arena().references(a.id()), b.arena().references(b.id()));
                    if from.len() != to.len() {
                        return false;
                    }
                    pending.extend(from.iter().copied().zip(to.iter().copied()));
                }
            }
        }
    }
    true
}

/// What two objects are to each other, apart from what they refer to.
enum Label {
    Differ,
    /// Equal, and they refer to nothing.
    Equal,
    /// As equal as a function says that takes its time.
    Large(fn(Value<'_>, Value<'_>) -> bool),
    /// As equal as what they refer to, one by one.
    Parts,
    /// As equal as what they hold, in whatever order.
    Elements,
}

impl Label {
    fn leaf(equal: bool) -> Self {
        if equal { Self::Equal } else { Self::Differ }
    }

    fn parts(equal: bool) -> Self {
        if equal { Self::Parts } else { Self::Differ }
    }
}

fn label(a: Value<'_>, b: Value<'_>) -> Label {
    let (left, right) = (a.arena(), b.arena());
    match (a.node(), b.node()) {
        (Node::None, Node::None) => Label::Equal,
        (Node::Bool(x), Node::Bool(y)) => Label::leaf(x == y),
        (Node::Int(x), Node::Int(y)) => Label::leaf(x == y),
        (Node::BigInt(_), Node::BigInt(_)) => Label::Large(|a, b| a.as_big_int() == b.as_big_int()),
        (Node::Float(x), Node::Float(y)) => Label::leaf(x.to_bits() == y.to_bits()),
        (Node::Complex(x), Node::Complex(y)) => {
            let (x, y) = (left.complexes[x as usize], right.complexes[y as usize]);
            Label::leaf(x.map(f64::to_bits) == y.map(f64::to_bits))
        }
        (Node::Str(x), Node::Str(y))
        | (Node::Bytes(x), Node::Bytes(y))
        | (Node::Bytearray(x), Node::Bytearray(y)) => {
            if x.len != y.len {
                Label::Differ
            } else if x.len > SHORT {
                Label::Large(|a, b| content(a) == content(b))
            } else {
                Label::leaf(left.bytes(x) == right.bytes(y))
            }
        }
        (Node::List(x), Node::List(y))
        | (Node::Tuple(x), Node::Tuple(y))
        | (Node::Dict(x), Node::Dict(y)) => Label::parts(x.len == y.len),
        (Node::Set(x), Node::Set(y)) | (Node::Frozenset(x), Node::Frozenset(y)) => {
            if x.len == y.len {
                Label::Elements
            } else {
                Label::Differ
            }
        }
        (Node::Range(_), Node::Range(_))
        | (Node::Slice(_), Node::Slice(_))
        | (Node::Fraction { .. }, Node::Fraction { .. }) => Label::Parts,
        (Node::Date(x), Node::Date(y)) => Label::leaf(x == y),
        (Node::Time { raw: x, tzinfo: xz }, Node::Time { raw: y, tzinfo: yz }) => {
            Label::parts(x == y && xz.is_some() == yz.is_some())
        }
        (Node::Datetime { raw: x, tzinfo: xz }, Node::Datetime { raw: y, tzinfo: yz }) => {
            Label::parts(x == y && xz.is_some() == yz.is_some())
        }
        (
            Node::Timedelta {
                days: xd,
                seconds: xs,
                microseconds: xm,
            },
            Node::Timedelta {
                days: yd,
                seconds: ys,
                microseconds: ym,
            },
        ) => Label::leaf((xd, xs, xm) == (yd, ys, ym)),
        (Node::Timezone { name: x, .. }, Node::Timezone { name: y, .. }) => {
            Label::parts(x.is_some() == y.is_some())
        }
        (Node::Decimal(x), Node::Decimal(y)) => {
            let (x, y) = (&left.decimals[x as usize], &right.decimals[y as usize]);
            if (x.negative, x.form, x.exponent, x.digits.len)
                != (y.negative, y.form, y.exponent, y.digits.len)
            {
                Label::Differ
            } else if x.digits.len > SHORT {
                Label::Large(|a, b| a.decimal() == b.decimal())
            } else {
                Label::leaf(left.bytes(x.digits) == right.bytes(y.digits))
            }
        }
        (Node::Uuid(x), Node::Uuid(y)) => {
            Label::leaf(left.uuids[x as usize] == right.uuids[y as usize])
        }
        (
            Node::Path {
                class: x,
                parts: xs,
            },
            Node::Path {
                class: y,
                parts: ys,
            },
        ) => Label::parts(x == y && xs.len == ys.len),
        (Node::Global(x), Node::Global(y)) => {
            let (x, y) = (&left.globals[x as usize], &right.globals[y as usize]);
            if (x.module.len, x.qualname.len) != (y.module.len, y.qualname.len) {
                Label::Differ
            } else if x.module.len.max(x.qualname.len) > SHORT {
                Label::Large(|a, b| names(a) == names(b))
            } else {
                Label::leaf(
                    left.bytes(x.module) == right.bytes(y.module)
                        && left.bytes(x.qualname) == right.bytes(y.qualname),
                )
            }
        }
        (Node::Object(x), Node::Object(y)) => {
            let (x, y) = (&left.objects[x as usize], &right.objects[y as usize]);
            Label::parts(same_object((left, x), (right, y)))
        }
        _ => Label::Differ,
    }
}

fn names(value: Value<'_>) -> Option<(Text<'_>, Text<'_>)> {
    let global = value.global()?;
    Some((global.module(), global.qualname()))
}

fn content(value: Value<'_>) -> &[u8] {
    match value.node() {
        Node::Str(bytes) | Node::Bytes(bytes) | Node::Bytearray(bytes) => value.raw_bytes(bytes),
        _ => &[],
    }
}

/// Whether two objects are equal apart from what they refer to, and refer to as much.
fn same_object((_left, a): (&Arena<'_>, &Object), (_right, b): (&Arena<'_>, &Object)) -> bool {
    match (a, b) {
        (
            Object::Map {
                class: x,
                factory: xf,
                attrs: xa,
                ..
            },
            Object::Map {
                class: y,
                factory: yf,
                attrs: ya,
                ..
            },
        ) => x == y && xf.is_some() == yf.is_some() && xa.is_some() == ya.is_some(),
        (Object::Deque { maxlen: x, .. }, Object::Deque { maxlen: y, .. }) => x == y,
        (Object::Exception(x), Object::Exception(y)) => {
            x.class == y.class && x.attrs.is_some() == y.attrs.is_some()
        }
        (Object::Dtype(x), Object::Dtype(y)) => x.same_label(y),
        (Object::Ndarray(x), Object::Ndarray(y)) => x.same_label(y),
        (Object::NumpyScalar(_), Object::NumpyScalar(_)) => true,
        (Object::Record(x), Object::Record(y)) => {
            x.origin == y.origin && x.present() == y.present()
        }
        _ => false,
    }
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
