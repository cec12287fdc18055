//! Keys that hold no keys of any number: how each kind is hashed and compared, as in Python.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use num_bigint::BigInt;
use num_traits::Signed;

use super::arena::{Arena, Node, NodeId};
use super::keys::{Budget, KeyError, Side, bytes_hash, mix};
use super::known::Known;
use super::numeric::{Int, Number};
use super::object::Object;
use super::types::numpy::{self, ScalarKey};
use super::types::time::{Datetime, Time, Timedelta};

/// When objects are equal that Python only holds equal to themselves: NaN, exceptions, records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// If they are one object.
    Object,
    /// If they look alike from outside: enough to tell which may be equal in two documents.
    Looks,
}

/// The hash of a key that is neither tuple nor frozenset (`None` for these).
///
/// # Errors
///
/// [`KeyError::Unhashable`].
pub(super) fn hash(
    arena: &Arena<'_>,
    id: NodeId,
    identity: Identity,
) -> Result<Option<u64>, KeyError> {
    if let Some(number) = Number::of(arena, id) {
        return Ok(Some(match number {
            Number::Float(float) if float.is_nan() => single(arena, id, identity),
            number => mix(number.residue(), 1),
        }));
    }
    Ok(Some(match arena.node(id) {
        Node::None => mix(0, 3),
        Node::Str(bytes) => bytes_hash(arena.bytes(bytes), 5),
        Node::Bytes(bytes) => bytes_hash(arena.bytes(bytes), 6),
        Node::Tuple(_) | Node::Frozenset(_) => return Ok(None),
        Node::Complex(index) => complex(arena, id, arena.complexes[index as usize], identity),
        Node::Decimal(index) => {
            let decimal = arena.decimals[index as usize];
            if decimal.form == super::types::decimal::DecimalForm::SignalingNan {
                return Err(KeyError::Unhashable(arena.kind(id)));
            }
            single(arena, id, identity)
        }
        Node::Date(raw) => mix(u64::from(u32::from_be_bytes(raw)), 12),
        Node::Time { .. } | Node::Datetime { .. } => match Moment::of(arena, id) {
            Some(Moment::Local(at)) => mix(at as u64, 13),
            Some(Moment::Utc(at)) => mix(at as u64, 14),
            Some(Moment::Zoned(at, zone)) => mix(at as u64, single(arena, zone, identity)),
            None => return Err(KeyError::Unhashable(arena.kind(id))),
        },
        Node::Timedelta { .. } => mix(timedelta(arena, id) as u64, 15),
        Node::Timezone { offset, .. } => mix(timedelta(arena, offset) as u64, 16),
        Node::Uuid(index) => {
            let int = arena.uuids[index as usize].int;
            mix(int as u64, (int >> 64) as u64)
        }
        Node::Path { class, .. } => {
            let parts = arena.children(id).iter();
            parts.fold(mix(u64::from(class.is_windows()), 17), |hash, part| {
                let part = part_of_path(arena, *part);
                let part = if class.is_windows() {
                    fold_case(part)
                } else {
                    Cow::Borrowed(part)
                };
                mix(hash, bytes_hash(&part, 5))
            })
        }
        Node::Range(_) => {
            let (length, ends) = Sequence::of(arena, id).unwrap_or_default().key();
            let int = |int: &BigInt| mix(residue(int), 18);
            ends.iter()
                .fold(int(&length), |hash, end| mix(hash, int(end)))
        }
        Node::Global(index) => {
            let global = arena.globals[index as usize];
            match global.known {
                // A class may have several names.
                Some(known) => {
                    let mut hasher = DefaultHasher::new();
                    known.hash(&mut hasher);
                    mix(hasher.finish(), 19)
                }
                None => mix(
                    bytes_hash(arena.bytes(global.module), 20),
                    bytes_hash(arena.bytes(global.qualname), 20),
                ),
            }
        }
        Node::Object(_) if is_single(arena, id) => single(arena, id, identity),
        Node::Object(_) => match (numpy::scalar(arena, id), numpy::dtype_hash(arena, id)) {
            (Some(ScalarKey::Complex(parts)), _) => complex(arena, id, parts, identity),
            (Some(ScalarKey::Str(text)), _) => bytes_hash(&text, 5),
            (Some(ScalarKey::Bytes(bytes)), _) => bytes_hash(bytes, 6),
            (Some(ScalarKey::Count { count, .. }), _) => match count {
                Some(count) => mix(count as u64, 26),
                None => single(arena, id, identity),
            },
            (_, Some(hash)) => hash,
            _ => return Err(KeyError::Unhashable(arena.kind(id))),
        },
        _ => return Err(KeyError::Unhashable(arena.kind(id))),
    }))
}

/// The hash of a complex with an imaginary part.
fn complex(arena: &Arena<'_>, id: NodeId, [re, im]: [f64; 2], identity: Identity) -> u64 {
    if re.is_nan() || im.is_nan() {
        return single(arena, id, identity);
    }
    let part = |float| mix(Number::Float(float).residue(), 11);
    mix(part(re), part(im))
}

/// Whether an object of its own is a key: an exception, or a record of a class that is known by name
/// only. The records of the framework are none, and nor is a UUID without its state.
fn is_single(arena: &Arena<'_>, id: NodeId) -> bool {
    match arena.object(id) {
        Some(Object::Exception(_)) => true,
        Some(Object::Record(record)) => {
            let class = record.class.and_then(|class| arena.global(class));
            !matches!(
                class.and_then(|class| class.known),
                Some(Known::Framework(_) | Known::Uuid)
            )
        }
        _ => false,
    }
}

/// The hash of what is only equal to itself.
fn single(arena: &Arena<'_>, id: NodeId, identity: Identity) -> u64 {
    match identity {
        Identity::Object => mix(id.index() as u64, 4),
        Identity::Looks => looks(arena, id),
    }
}

/// How many parts of an object, and how many bytes of each, its looks tell of at most.
const LOOKS: usize = 8;

/// A hash of what an object shows without being walked.
fn looks(arena: &Arena<'_>, id: NodeId) -> u64 {
    let glance = |id: NodeId| match arena.node(id) {
        Node::Str(bytes) | Node::Bytes(bytes) => {
            let content = arena.bytes(bytes);
            bytes_hash(&content[..content.len().min(8 * LOOKS)], bytes.len.into())
        }
        Node::Int(int) => mix(int as u64, 21),
        Node::Float(float) => mix(float.to_bits(), 22),
        Node::Complex(index) => {
            let [re, im] = arena.complexes[index as usize].map(f64::to_bits);
            mix(re, im)
        }
        Node::Decimal(index) => {
            let decimal = arena.decimals[index as usize];
            let digits = arena.bytes(decimal.digits);
            let digits = bytes_hash(&digits[..digits.len().min(8 * LOOKS)], 23);
            mix(digits, u64::from(decimal.negative))
        }
        _ => mix(arena.kind(id) as u64, 24),
    };
    let children = |id: NodeId| {
        let children = arena.children(id);
        let seen = children.iter().take(LOOKS);
        seen.fold(children.len() as u64, |hash, child| {
            mix(hash, glance(*child))
        })
    };
    match arena.object(id) {
        Some(Object::Exception(exception)) => mix(exception.class as u64, children(exception.args)),
        Some(Object::Record(record)) => {
            let name = record.class.and_then(|class| arena.global(class));
            let name = name.map_or(0, |class| bytes_hash(arena.bytes(class.qualname), 25));
            let args = mix(name, children(record.args));
            record
                .attrs
                .map_or(args, |attrs| mix(args, children(attrs)))
        }
        _ => glance(id),
    }
}

/// What hashing or comparing a key costs, apart from what it holds if it is a tuple or frozenset.
pub(super) fn cost(arena: &Arena<'_>, id: NodeId) -> u64 {
    let int = |id: NodeId| Int::of(arena, id).map_or(0, Int::bits) / 256;
    match arena.node(id) {
        Node::Str(bytes) | Node::Bytes(bytes) => 1 + u64::from(bytes.len) / 32,
        Node::BigInt(_) => 1 + int(id),
        Node::Decimal(index) => 4 + u64::from(arena.decimals[index as usize].digits.len) / 32,
        Node::Fraction {
            numerator,
            denominator,
        } => 4 + int(numerator) + int(denominator),
        Node::Range(_) => {
            // The length of a range is a quotient.
            let words = arena.children(id).iter().map(|id| int(*id) + 1);
            words.fold(4_u64, |cost, words| {
                cost.saturating_add(words.saturating_mul(words))
            })
        }
        // Four bytes a code point.
        Node::Object(_) => match arena.object(id) {
            Some(Object::NumpyScalar(scalar)) => match arena.node(scalar.data) {
                Node::Bytes(data) => 1 + u64::from(data.len) / 16,
                _ => 1,
            },
            _ => 1,
        },
        Node::Path { class, .. } => {
            // Finding lower case takes its time.
            let per_step = if class.is_windows() { 4 } else { 16 };
            let parts = arena.children(id).iter();
            parts.fold(1, |cost, part| {
                cost + 1 + part_of_path(arena, *part).len() as u64 / per_step
            })
        }
        _ => 1,
    }
}

/// Whether two keys are equal, neither of them a tuple or frozenset. The caller has charged for one
/// step.
pub(super) fn equal(
    (left, a): Side<'_, '_>,
    (right, b): Side<'_, '_>,
    identity: Identity,
    budget: &mut Budget,
) -> Result<bool, KeyError> {
    let (x, y) = (left.node(a), right.node(b));
    if let (Node::Str(x), Node::Str(y)) | (Node::Bytes(x), Node::Bytes(y)) = (x, y) {
        if x.len != y.len {
            return Ok(false);
        }
        budget.charge(u64::from(x.len) / 32)?;
        return Ok(left.bytes(x) == right.bytes(y));
    }
    let singles = || match identity {
        Identity::Object => std::ptr::eq(left, right) && a == b,
        Identity::Looks => looks(left, a) == looks(right, b),
    };
    if let (Some(x), Some(y)) = (Number::of(left, a), Number::of(right, b)) {
        budget.charge(cost(left, a).min(cost(right, b)) - 1)?;
        return match (x, y) {
            (Number::Float(x), Number::Float(y)) if x.is_nan() && y.is_nan() => Ok(singles()),
            (x, y) => x.equals(y, budget),
        };
    }
    Ok(match (x, y) {
        (Node::None, Node::None) => true,
        // Other Decimals than NaN are numbers.
        (Node::Decimal(_), Node::Decimal(_)) => {
            Number::of(left, a).is_none() && Number::of(right, b).is_none() && singles()
        }
        (Node::Date(x), Node::Date(y)) => x == y,
        (Node::Time { .. }, Node::Time { .. }) | (Node::Datetime { .. }, Node::Datetime { .. }) => {
            match (Moment::of(left, a), Moment::of(right, b)) {
                (Some(Moment::Local(x)), Some(Moment::Local(y))) => x == y,
                (Some(Moment::Utc(x)), Some(Moment::Utc(y))) => x == y,
                (Some(Moment::Zoned(x, zone)), Some(Moment::Zoned(y, other))) => {
                    x == y
                        && match identity {
                            Identity::Object => std::ptr::eq(left, right) && zone == other,
                            Identity::Looks => looks(left, zone) == looks(right, other),
                        }
                }
                _ => false,
            }
        }
        (Node::Timedelta { .. }, Node::Timedelta { .. }) => {
            timedelta(left, a) == timedelta(right, b)
        }
        (Node::Timezone { offset: x, .. }, Node::Timezone { offset: y, .. }) => {
            timedelta(left, x) == timedelta(right, y)
        }
        (Node::Uuid(x), Node::Uuid(y)) => left.uuids[x as usize].int == right.uuids[y as usize].int,
        (Node::Path { class: x, .. }, Node::Path { class: y, .. }) => {
            let (xs, ys) = (left.children(a), right.children(b));
            if x.is_windows() != y.is_windows() || xs.len() != ys.len() {
                return Ok(false);
            }
            budget.charge(cost(left, a))?;
            xs.iter().zip(ys).all(|(part, other)| {
                let (part, other) = (part_of_path(left, *part), part_of_path(right, *other));
                part == other || x.is_windows() && fold_case(part) == fold_case(other)
            })
        }
        (Node::Range(_), Node::Range(_)) => {
            budget.charge(cost(left, a).saturating_add(cost(right, b)))?;
            match (Sequence::of(left, a), Sequence::of(right, b)) {
                (Some(x), Some(y)) => x.key() == y.key(),
                _ => false,
            }
        }
        (Node::Global(x), Node::Global(y)) => {
            let (x, y) = (left.globals[x as usize], right.globals[y as usize]);
            match (x.known, y.known) {
                (None, None) => {
                    // Of one document, they are one object if they have one name.
                    !std::ptr::eq(left, right)
                        && left.bytes(x.module) == right.bytes(y.module)
                        && left.bytes(x.qualname) == right.bytes(y.qualname)
                }
                (x, y) => x == y,
            }
        }
        (Node::Object(_), Node::Object(_)) if is_single(left, a) => {
            is_single(right, b) && singles()
        }
        (Node::Object(_), _) | (_, Node::Object(_)) | (Node::Complex(_), Node::Complex(_)) => {
            budget.charge(cost(left, a) + cost(right, b))?;
            match (content(left, a), content(right, b)) {
                (Some(ScalarKey::Complex(x)), Some(ScalarKey::Complex(y))) => {
                    let nan = |parts: [f64; 2]| parts.iter().any(|part| part.is_nan());
                    if nan(x) && nan(y) { singles() } else { x == y }
                }
                (Some(ScalarKey::Str(x)), Some(ScalarKey::Str(y))) => x == y,
                (Some(ScalarKey::Bytes(x)), Some(ScalarKey::Bytes(y))) => x == y,
                (
                    Some(ScalarKey::Count { kind, unit, count }),
                    Some(ScalarKey::Count {
                        kind: other_kind,
                        unit: other_unit,
                        count: other_count,
                    }),
                ) => {
                    (kind, unit, count) == (other_kind, other_unit, other_count)
                        && (count.is_some() || singles())
                }
                (None, None) => {
                    let deep = identity == Identity::Object;
                    return numpy::equal_dtypes((left, a), (right, b), deep, budget);
                }
                _ => false,
            }
        }
        _ => false,
    })
}

/// A key that a scalar of numpy may be equal to, in the form of one.
fn content<'x>(arena: &'x Arena<'_>, id: NodeId) -> Option<ScalarKey<'x>> {
    Some(match arena.node(id) {
        Node::Str(bytes) => ScalarKey::Str(arena.bytes(bytes).to_vec()),
        Node::Bytes(bytes) => ScalarKey::Bytes(arena.bytes(bytes)),
        Node::Complex(index) => ScalarKey::Complex(arena.complexes[index as usize]),
        _ => return numpy::scalar(arena, id),
    })
}

/// What a time or datetime is compared by.
enum Moment {
    /// Without time zone: microseconds by the clock.
    Local(i64),
    /// With an offset from UTC: microseconds in UTC.
    Utc(i64),
    /// With a time zone that is only a record: microseconds by its clock.
    Zoned(i64, NodeId),
}

impl Moment {
    fn of(arena: &Arena<'_>, id: NodeId) -> Option<Self> {
        let (at, zone) = match arena.node(id) {
            Node::Time { raw, tzinfo } => (Time::of(raw, None).microseconds(), tzinfo),
            Node::Datetime { raw, tzinfo } => {
                (Datetime::of(raw, None).local_microseconds(), tzinfo)
            }
            _ => return None,
        };
        Some(match zone {
            None => Self::Local(at),
            Some(zone) => match arena.node(zone) {
                // An offset is below a day.
                Node::Timezone { offset, .. } => Self::Utc(at - timedelta(arena, offset) as i64),
                _ => Self::Zoned(at, zone),
            },
        })
    }
}

/// A timedelta in microseconds.
fn timedelta(arena: &Arena<'_>, id: NodeId) -> i128 {
    match arena.node(id) {
        Node::Timedelta {
            days,
            seconds,
            microseconds,
        } => Timedelta {
            days,
            seconds,
            microseconds,
        }
        .total_microseconds(),
        _ => 0,
    }
}

/// A range, which is compared as the sequence that it stands for.
#[derive(Default)]
struct Sequence {
    start: BigInt,
    length: BigInt,
    step: BigInt,
}

impl Sequence {
    fn of(arena: &Arena<'_>, id: NodeId) -> Option<Self> {
        let [start, stop, step] = *arena.children(id) else {
            return None;
        };
        let int = |id| Int::of(arena, id).map(Int::to_big);
        let (start, stop, step) = (int(start)?, int(stop)?, int(step)?);
        // Rounded up, whichever way it goes.
        let distance = &stop - &start + &step - step.signum();
        let length = (distance / &step).max(BigInt::ZERO);
        Some(Self {
            start,
            length,
            step,
        })
    }

    /// The length, and of start and step those that matter.
    fn key(self) -> (BigInt, Vec<BigInt>) {
        let ends = match u8::try_from(&self.length) {
            Ok(0) => Vec::new(),
            Ok(1) => vec![self.start],
            _ => vec![self.start, self.step],
        };
        (self.length, ends)
    }
}

fn residue(int: &BigInt) -> u64 {
    let int = match i64::try_from(int) {
        Ok(small) => Int::Small(small),
        Err(_) => Int::Big(int),
    };
    Number::Int(int).residue()
}

fn part_of_path<'x>(arena: &'x Arena<'_>, id: NodeId) -> &'x [u8] {
    match arena.node(id) {
        Node::Str(bytes) => arena.bytes(bytes),
        _ => &[],
    }
}

/// Generalised UTF-8 in lower case.
fn fold_case(text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    // Between surrogates there is plain UTF-8.
    let mut folded = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        folded.extend_from_slice(chunk.valid().to_lowercase().as_bytes());
        folded.extend_from_slice(chunk.invalid());
    }
    Cow::Owned(folded)
}
