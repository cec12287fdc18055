//! Dtypes: what the elements of an array are.

use std::fmt;

use super::super::super::arena::{Arena, NodeId};
use super::super::super::object::Object;
use super::super::super::value::{Entries, Text, Value};
use super::dimension;

/// What the items of a dtype are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DtypeKind {
    /// `b`: a byte, 0 or 1.
    Bool,
    /// `i`: a signed integer of 1, 2, 4 or 8 bytes.
    Int,
    /// `u`: an unsigned integer of 1, 2, 4 or 8 bytes.
    Uint,
    /// `f`: a float of 2, 4 or 8 bytes, or the long double of the sender in 16.
    Float,
    /// `c`: two floats of half the size.
    Complex,
    /// `m`: a count of units in 8 bytes, the lowest for none.
    Timedelta,
    /// `M`: a count of units since 1970 in 8 bytes, the lowest for none.
    Datetime,
    /// `O`: Python objects.
    Object,
    /// `S`: bytes, padded with zeros at the end.
    Bytes,
    /// `U`: code points of 4 bytes each, padded with zeros at the end.
    Str,
    /// `V`: bytes without a meaning, a structure, or a subarray.
    Void,
}

impl DtypeKind {
    const ALL: [Self; 11] = [
        Self::Bool,
        Self::Int,
        Self::Uint,
        Self::Float,
        Self::Complex,
        Self::Timedelta,
        Self::Datetime,
        Self::Object,
        Self::Bytes,
        Self::Str,
        Self::Void,
    ];

    /// The character that stands for it in numpy.
    pub fn code(self) -> char {
        match self {
            Self::Bool => 'b',
            Self::Int => 'i',
            Self::Uint => 'u',
            Self::Float => 'f',
            Self::Complex => 'c',
            Self::Timedelta => 'm',
            Self::Datetime => 'M',
            Self::Object => 'O',
            Self::Bytes => 'S',
            Self::Str => 'U',
            Self::Void => 'V',
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.code() == char::from(code))
    }

    /// Whether there is a unit.
    pub(super) fn is_counted(self) -> bool {
        matches!(self, Self::Datetime | Self::Timedelta)
    }

    /// Whether any size will do.
    pub(in crate::safepickle) fn is_flexible(self) -> bool {
        matches!(self, Self::Bytes | Self::Str | Self::Void)
    }
}

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// `<`: the lowest.
    Little,
    /// `>`: the highest.
    Big,
    /// `|`: there is nothing to order.
    NotApplicable,
}

impl ByteOrder {
    /// The character that stands for it in numpy.
    pub fn code(self) -> char {
        match self {
            Self::Little => '<',
            Self::Big => '>',
            Self::NotApplicable => '|',
        }
    }
}

/// A unit of dates and durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum DatetimeUnit {
    Year,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Picosecond,
    Femtosecond,
    Attosecond,
    /// None that is known.
    Generic,
}

impl DatetimeUnit {
    const ALL: [Self; 14] = [
        Self::Year,
        Self::Month,
        Self::Week,
        Self::Day,
        Self::Hour,
        Self::Minute,
        Self::Second,
        Self::Millisecond,
        Self::Microsecond,
        Self::Nanosecond,
        Self::Picosecond,
        Self::Femtosecond,
        Self::Attosecond,
        Self::Generic,
    ];

    /// Its name in numpy.
    pub fn name(self) -> &'static str {
        match self {
            Self::Year => "Y",
            Self::Month => "M",
            Self::Week => "W",
            Self::Day => "D",
            Self::Hour => "h",
            Self::Minute => "m",
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
            Self::Picosecond => "ps",
            Self::Femtosecond => "fs",
            Self::Attosecond => "as",
            Self::Generic => "generic",
        }
    }

    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|unit| unit.name().as_bytes() == name)
    }
}

/// What dates and durations count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    /// The unit.
    pub unit: DatetimeUnit,
    /// How many of it are one step; above 0.
    pub count: u32,
}

/// A dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::safepickle) struct DtypeLabel {
    pub(in crate::safepickle) kind: DtypeKind,
    pub(in crate::safepickle) order: ByteOrder,
    /// Bytes; at most 2³¹ − 1.
    pub(in crate::safepickle) itemsize: u32,
    /// Bytes; a power of two.
    pub(in crate::safepickle) alignment: u8,
    /// As numpy writes them.
    pub(in crate::safepickle) flags: u8,
    pub(in crate::safepickle) unit: Option<Unit>,
}

/// A dtype and what it refers to.
#[derive(Clone, Debug)]
pub(in crate::safepickle) struct DtypeData {
    pub(in crate::safepickle) label: DtypeLabel,
    /// A tuple that is no object of the stream: for each field its name, and the tuple of its dtype,
    /// its offset and maybe its title.
    pub(in crate::safepickle) fields: Option<NodeId>,
    /// A tuple of a dtype and a shape.
    pub(in crate::safepickle) subarray: Option<NodeId>,
    /// A dict.
    pub(in crate::safepickle) metadata: Option<NodeId>,
    /// Dtypes inside each other; 0 for one that holds none.
    pub(super) depth: u8,
    /// Whether it has got its state.
    pub(super) built: bool,
}

/// The flags of a dtype that holds objects: counted references, and a list in place of bytes.
const OBJECT_FLAGS: u8 = 0x03;
/// The flags of every structure: that Python is needed to look at a field.
const STRUCTURE_FLAGS: u8 = 0x10;
/// The flags that a structure takes over from its fields: those of objects, that memory must be
/// zero before use, and that Python is needed.
const INHERITED_FLAGS: u8 = 0x1b;
/// The flag of a structure whose fields are padded.
const ALIGNED_FLAG: u8 = 0x80;

impl DtypeLabel {
    /// The dtype of a name that numpy writes: kind and size.
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        let (code, digits) = name.split_first()?;
        let kind = DtypeKind::from_code(*code)?;
        let canonical = digits == b"0" || !digits.starts_with(b"0");
        if !(1..=10).contains(&digits.len()) || !canonical || !digits.iter().all(u8::is_ascii_digit)
        {
            return None;
        }
        // Ten digits fit.
        let size = digits
            .iter()
            .fold(0_u64, |size, digit| 10 * size + u64::from(digit - b'0'));
        let (itemsize, alignment) = match (kind, size) {
            (DtypeKind::Bool, 1) => (1, 1),
            (DtypeKind::Int | DtypeKind::Uint, 1 | 2 | 4 | 8) => (size, size),
            (DtypeKind::Float, 2 | 4 | 8 | 16) => (size, size),
            (DtypeKind::Complex, 8 | 16 | 32) => (size, size / 2),
            (DtypeKind::Timedelta | DtypeKind::Datetime, 8) => (8, 8),
            // Pointers of the sender; the items are not written as such.
            (DtypeKind::Object, 4 | 8) => (8, 8),
            (DtypeKind::Bytes | DtypeKind::Void, _) => (size, 1),
            (DtypeKind::Str, _) => (4 * size, 4),
            _ => return None,
        };
        let itemsize = u32::try_from(itemsize)
            .ok()
            .filter(|size| i32::try_from(*size).is_ok())?;
        let swappable = match kind {
            DtypeKind::Bool | DtypeKind::Object | DtypeKind::Bytes | DtypeKind::Void => false,
            DtypeKind::Str => true,
            _ => itemsize > 1,
        };
        Some(Self {
            kind,
            order: if swappable {
                ByteOrder::Little
            } else {
                ByteOrder::NotApplicable
            },
            itemsize,
            // 16 at most.
            alignment: alignment as u8,
            flags: match kind {
                DtypeKind::Object => 0x3f,
                DtypeKind::Str => 0x08,
                _ => 0,
            },
            unit: None,
        })
    }

    /// The name that numpy writes: kind and size, without byte order.
    pub(in crate::safepickle) fn name(self) -> String {
        let size = match self.kind {
            DtypeKind::Str => self.itemsize / 4,
            _ => self.itemsize,
        };
        format!("{}{size}", self.kind.code())
    }

    pub(in crate::safepickle) fn has_object(self) -> bool {
        Self::has_object_flags(self.flags)
    }

    pub(super) fn has_object_flags(flags: u8) -> bool {
        flags & OBJECT_FLAGS != 0
    }

    /// The flags of a state, if they can be those of this dtype; numpy follows pointers and clears
    /// memory by what they say. `of_fields` are those of all fields of a structure.
    pub(super) fn check_flags(self, flags: i64, of_fields: Option<u8>) -> Option<u8> {
        let flags = u8::try_from(flags).ok()?;
        let Some(of_fields) = of_fields else {
            // The kind, or what a subarray is made of, leaves no choice.
            return (flags == self.flags).then_some(flags);
        };
        // A structure of some of another's fields keeps the flags of the other, so there may be more.
        let required = STRUCTURE_FLAGS | of_fields & INHERITED_FLAGS;
        let allowed = INHERITED_FLAGS | ALIGNED_FLAG;
        let whole = [0, OBJECT_FLAGS].contains(&(flags & OBJECT_FLAGS));
        (flags & required == required && flags & !allowed == 0 && whole).then_some(flags)
    }

    pub(in crate::safepickle) fn is_aligned(self) -> bool {
        self.flags & ALIGNED_FLAG != 0
    }
}

impl DtypeData {
    /// A dtype that has not got its state.
    pub(super) fn new(label: DtypeLabel) -> Self {
        Self {
            label,
            fields: None,
            subarray: None,
            metadata: None,
            depth: 0,
            built: false,
        }
    }

    /// A dtype that is complete without a state.
    pub(super) fn complete(label: DtypeLabel) -> Self {
        Self {
            built: true,
            ..Self::new(label)
        }
    }

    pub(in crate::safepickle) fn is_built(&self) -> bool {
        self.built
    }

    pub(in crate::safepickle) fn references(&self) -> Vec<NodeId> {
        [self.fields, self.subarray, self.metadata]
            .into_iter()
            .flatten()
            .collect()
    }

    /// The same with other references.
    pub(in crate::safepickle) fn with(&self, mut other: impl FnMut(NodeId) -> NodeId) -> Self {
        Self {
            fields: self.fields.map(&mut other),
            subarray: self.subarray.map(&mut other),
            metadata: self.metadata.map(&mut other),
            ..self.clone()
        }
    }

    /// Whether two are equal apart from what they refer to, and refer to as much.
    pub(in crate::safepickle) fn same_label(&self, other: &Self) -> bool {
        let present = |data: &Self| {
            [data.fields, data.subarray, data.metadata].map(|reference| reference.is_some())
        };
        self.label == other.label && present(self) == present(other)
    }
}

/// The dtype behind a number, if it is one and has got its state.
pub(super) fn built<'x>(arena: &'x Arena<'_>, id: NodeId) -> Option<&'x DtypeData> {
    match arena.object(id) {
        Some(Object::Dtype(dtype)) if dtype.built => Some(dtype),
        _ => None,
    }
}

/// A `numpy.dtype`.
///
/// `==` compares as that of [`Value`] does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Dtype<'d> {
    value: Value<'d>,
}

impl fmt::Debug for Dtype<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typestr())
    }
}

impl<'d> Value<'d> {
    /// A numpy dtype.
    pub fn dtype(self) -> Option<Dtype<'d>> {
        match self.arena().object(self.id()) {
            Some(Object::Dtype(_)) => Some(Dtype { value: self }),
            _ => None,
        }
    }
}

impl<'d> Dtype<'d> {
    fn data(self) -> Option<&'d DtypeData> {
        match self.value.arena().object(self.value.id()) {
            Some(Object::Dtype(data)) => Some(data),
            _ => None,
        }
    }

    fn label(self) -> DtypeLabel {
        // A `Dtype` is made of nothing else than a dtype.
        let bytes = DtypeLabel {
            kind: DtypeKind::Void,
            order: ByteOrder::NotApplicable,
            itemsize: 0,
            alignment: 1,
            flags: 0,
            unit: None,
        };
        self.data().map_or(bytes, |data| data.label)
    }

    /// The value that it is.
    pub fn value(self) -> Value<'d> {
        self.value
    }

    /// What its items are.
    pub fn kind(self) -> DtypeKind {
        self.label().kind
    }

    /// Which byte comes first; that of a structure lies with its fields.
    pub fn byte_order(self) -> ByteOrder {
        self.label().order
    }

    /// Bytes of one item.
    pub fn itemsize(self) -> u32 {
        self.label().itemsize
    }

    /// What the address of an item is a multiple of, in bytes; 1 for structures without padding.
    pub fn alignment(self) -> u32 {
        self.label().alignment.into()
    }

    /// Whether it is a structure that was asked to be padded as in C.
    pub fn is_aligned(self) -> bool {
        self.label().is_aligned()
    }

    /// Whether its items are Python objects, or hold some.
    pub fn has_object(self) -> bool {
        self.label().has_object()
    }

    /// What dates and durations count.
    pub fn unit(self) -> Option<Unit> {
        self.label().unit
    }

    /// The fields of a structure, in its order; `None` if it is no structure.
    pub fn fields(self) -> Option<impl ExactSizeIterator<Item = DtypeField<'d>> + Clone + use<'d>> {
        let value = self.value;
        let fields = value.arena().children(self.data()?.fields?);
        Some(fields.chunks_exact(2).map(move |field| {
            let details = value.arena().children(field[1]);
            let name = value.at(field[0]).as_text();
            DtypeField {
                name: name.unwrap_or(Text::new(&[], false)),
                title: details.get(2).map(|title| value.at(*title)),
                // Both were checked when the dtype got its state.
                offset: dimension(value.arena(), details[1]) as u32,
                dtype: Dtype {
                    value: value.at(details[0]),
                },
            }
        }))
    }

    /// The field of a name.
    pub fn field(self, name: &str) -> Option<DtypeField<'d>> {
        self.fields()?
            .find(|field| field.name.as_generalised_utf8() == name.as_bytes())
    }

    /// What its items are arrays of; `None` if they are none.
    pub fn subarray(self) -> Option<Subarray<'d>> {
        let parts = self.value.arena().children(self.data()?.subarray?);
        Some(Subarray {
            base: Dtype {
                value: self.value.at(*parts.first()?),
            },
            arena: self.value.arena(),
            shape: self.value.arena().children(*parts.get(1)?),
        })
    }

    /// What the sender attached to it.
    pub fn metadata(self) -> Option<Entries<'d>> {
        self.data()?.metadata.map(|id| self.value.entries_of(id))
    }

    /// The name that numpy calls `dtype.str`: byte order, kind and size, and the unit of dates and
    /// durations: `<f8`, `|S5`, `<M8[25s]`. It does not tell structures apart; see
    /// [`Dtype::fields`].
    pub fn typestr(self) -> String {
        let label = self.label();
        let order = label.order.code();
        match (label.kind, label.unit) {
            (DtypeKind::Object, _) => format!("{order}O"),
            (
                _,
                Some(Unit {
                    unit: DatetimeUnit::Generic,
                    ..
                }),
            )
            | (_, None) => format!("{order}{}", label.name()),
            (_, Some(Unit { unit, count: 1 })) => {
                format!("{order}{}[{}]", label.name(), unit.name())
            }
            (_, Some(Unit { unit, count })) => {
                format!("{order}{}[{count}{}]", label.name(), unit.name())
            }
        }
    }
}

/// A field of a structure.
#[derive(Clone, Copy, Debug)]
pub struct DtypeField<'d> {
    /// Its name.
    pub name: Text<'d>,
    /// Its title: another name if it is a str, or any other object.
    pub title: Option<Value<'d>>,
    /// Where it lies in the item, in bytes. It ends inside of the item.
    pub offset: u32,
    /// What it is.
    pub dtype: Dtype<'d>,
}

/// What the items of a dtype are arrays of.
#[derive(Clone, Copy)]
pub struct Subarray<'d> {
    base: Dtype<'d>,
    arena: &'d Arena<'d>,
    shape: &'d [NodeId],
}

impl fmt::Debug for Subarray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subarray")
            .field("base", &self.base)
            .field("shape", &self.shape().collect::<Vec<_>>())
            .finish()
    }
}

impl<'d> Subarray<'d> {
    /// The dtype of the elements.
    pub fn base(self) -> Dtype<'d> {
        self.base
    }

    /// The dimensions, 64 at most.
    pub fn shape(self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'d> {
        self.shape.iter().map(move |id| dimension(self.arena, *id))
    }
}
