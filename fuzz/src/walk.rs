//! Ways through a document by its public accessors, without recursion.

use std::collections::{HashMap, HashSet};

use agentix_protocol::safepickle::{Kind, NodeId, Value};

/// Calls `visit` with every object that `root` reaches, once each.
pub fn each<'d>(root: Value<'d>, mut visit: impl FnMut(Value<'d>)) {
    let mut seen = HashSet::new();
    let mut pending = vec![root];
    while let Some(value) = pending.pop() {
        if seen.insert(value.id()) {
            visit(value);
            pending.extend(parts(value));
        }
    }
}

/// The objects that a value holds, in order.
pub fn parts(value: Value<'_>) -> Vec<Value<'_>> {
    let mut parts = Vec::new();
    let items = [
        value.list(),
        value.tuple(),
        value.set(),
        value.frozenset(),
        value.deque().map(|deque| deque.items),
    ];
    for items in items.into_iter().flatten() {
        parts.extend(items.iter());
    }
    for range in [value.range(), value.slice()].into_iter().flatten() {
        parts.extend([range.start, range.stop, range.step]);
    }
    if let Some(fraction) = value.fraction() {
        parts.extend([fraction.numerator, fraction.denominator]);
    }
    let times = [value.time(), value.datetime().map(|datetime| datetime.time)];
    parts.extend(times.into_iter().flatten().filter_map(|time| time.tzinfo));
    parts.extend(value.timezone().map(|timezone| timezone.offset));
    if let Some(exception) = value.exception() {
        parts.extend(exception.args().iter());
        parts.extend(exception.fields().map(|(_, field)| field));
    }
    parts.extend(value.default_factory());
    if let Some(dtype) = value.dtype() {
        for field in dtype.fields().into_iter().flatten() {
            parts.push(field.dtype.value());
            parts.extend(field.title);
        }
        parts.extend(dtype.subarray().map(|subarray| subarray.base().value()));
        for (key, value) in dtype.metadata().iter().flat_map(|entries| entries.iter()) {
            parts.extend([key, value]);
        }
    }
    if let Some(array) = value.ndarray() {
        parts.push(array.dtype().value());
        parts.extend(array.items().iter().flat_map(|items| items.iter()));
    }
    if let Some(scalar) = value.numpy_scalar() {
        parts.push(scalar.dtype().value());
        let items = scalar.array().and_then(|array| array.items());
        parts.extend(items.iter().flat_map(|items| items.iter()));
    }
    if let Some(record) = value.record() {
        parts.extend(record.class());
        parts.extend(record.args().iter());
        for items in [record.states(), record.items()].into_iter().flatten() {
            parts.extend(items.iter());
        }
        for entries in [record.kwargs(), record.entries()].into_iter().flatten() {
            parts.extend(entries.iter().flat_map(|(key, value)| [key, value]));
        }
    }
    for entries in [value.entries(), value.attrs()].into_iter().flatten() {
        parts.extend(entries.iter().flat_map(|(key, value)| [key, value]));
    }
    parts
}

/// Whether there are more than `count` objects, each counted as often as it is referred to, and of a
/// range each number.
pub fn unfolds_to_more_than(count: usize, root: Value<'_>) -> bool {
    let mut met: usize = 0;
    let mut pending = vec![root];
    while let Some(value) = pending.pop() {
        met += 1;
        if let Some(range) = value.range() {
            let numbers = [range.start, range.stop].map(|end| end.as_i64());
            let [Some(start), Some(stop)] = numbers else {
                return true;
            };
            met = met.saturating_add(usize::try_from(start.abs_diff(stop)).unwrap_or(usize::MAX));
        }
        if met.saturating_add(pending.len()) > count {
            return true;
        }
        pending.extend(parts(value));
    }
    false
}

/// Whether it can be told, in Python, if two references are to one such object.
pub fn has_identity(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::List | Kind::Dict | Kind::Set | Kind::Bytearray | Kind::Slice => true,
        Kind::OrderedDict | Kind::Counter | Kind::DefaultDict | Kind::Deque => true,
        Kind::Exception | Kind::Record | Kind::Ndarray => true,
        Kind::Tuple | Kind::Frozenset => !parts(value).is_empty(),
        _ => false,
    }
}

/// Panics unless the two values share the same parts. They are known to be equal.
pub fn assert_same_sharing(left: Value<'_>, right: Value<'_>) {
    let mut forth: HashMap<NodeId, NodeId> = HashMap::new();
    let mut back: HashMap<NodeId, NodeId> = HashMap::new();
    let mut pairs = HashSet::new();
    let mut pending = vec![(left, right)];
    while let Some((left, right)) = pending.pop() {
        let (one, other) = (left.id(), right.id());
        if !has_identity(left) {
            if !pairs.insert((one, other)) {
                continue;
            }
        } else {
            match (forth.insert(one, other), back.insert(other, one)) {
                (None, None) => {}
                (before, after) => {
                    assert_eq!(
                        (before, after),
                        (Some(other), Some(one)),
                        "{left:?} is shared in one and not in the other"
                    );
                    continue;
                }
            }
        }
        let (left, right) = (parts(left), parts(right));
        assert_eq!(left.len(), right.len());
        pending.extend(left.into_iter().zip(right));
    }
}
