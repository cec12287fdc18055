//! One node of the table: its type and its fields.

use agentix_protocol::safepickle::numpy::{ArrayOrder, Dtype, Ndarray};
use agentix_protocol::safepickle::{
    Datetime, Entries, Items, Kind, Origin, Record, Text, Time, UuidSafety, Value,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::super::Bounds;
use super::table::{Table, name, one, text_value};
use super::{CutText, hex};
use crate::json::numpy::DtypeObject;

/// A value that has a node of its own.
pub(super) struct Node<'t, 'd, 's>(pub(super) &'t Table<'d, 's>, pub(super) Value<'d>);

/// What a field of a node holds.
enum Field<'d> {
    Text(&'static str),
    Printed(String),
    Bool(bool),
    Bytes(&'d [u8]),
    Shape(Vec<u64>),
    Dtype(Dtype<'d>),
    /// The bytes of an array in row-first order.
    Elements(Ndarray<'d>),
    /// Module and name of a class.
    Name(Value<'d>),
    /// The same, of a class that the decoder knows.
    Known(&'static str, &'static str),
    Arg(Arg<'d>),
    Args(Vec<Arg<'d>>),
    /// Names and values.
    Named(Vec<(&'static str, Value<'d>)>),
    Items(Items<'d>),
    Entries(Entries<'d>),
}

/// A value, or what would be one in Python.
#[derive(Clone)]
enum Arg<'d> {
    None,
    Int(i128),
    /// An int beyond that.
    Wide(u128),
    Ascii(String),
    Text(Text<'d>),
    Value(Value<'d>),
}

type Fields<'d> = Vec<(&'static str, Field<'d>)>;

impl<'d> Arg<'d> {
    fn value(&self) -> Option<Value<'d>> {
        match self {
            Self::Value(value) => Some(*value),
            _ => None,
        }
    }
}

impl<T: Into<i128>> From<T> for Arg<'_> {
    fn from(int: T) -> Self {
        Self::Int(int.into())
    }
}

/// Tells of every value that the node of `value` refers to.
pub(super) fn references<'d>(value: Value<'d>, bounds: &Bounds, mut tell: impl FnMut(Value<'d>)) {
    for (_, field) in fields(value) {
        match field {
            Field::Arg(arg) => arg.value().into_iter().for_each(&mut tell),
            Field::Args(args) => args.iter().filter_map(Arg::value).for_each(&mut tell),
            Field::Named(named) => named.into_iter().for_each(|(_, value)| tell(value)),
            Field::Items(items) => items.iter().take(bounds.items).for_each(&mut tell),
            Field::Entries(entries) => {
                for (key, value) in entries.iter().take(bounds.items) {
                    tell(key);
                    tell(value);
                }
            }
            // These hold no values.
            Field::Text(_)
            | Field::Printed(_)
            | Field::Bool(_)
            | Field::Bytes(_)
            | Field::Shape(_)
            | Field::Dtype(_)
            | Field::Elements(_)
            | Field::Name(_)
            | Field::Known(..) => {}
        }
    }
}

/// The fields of a node, its type first.
fn fields(value: Value<'_>) -> Fields<'_> {
    let mut fields = of_kind(value).unwrap_or_default();
    if value.kind() != Kind::Record {
        fields.extend(value.attrs().map(|attrs| ("attrs", Field::Entries(attrs))));
    }
    fields
}

/// `None` if the accessors of a value contradict its kind.
fn of_kind(value: Value<'_>) -> Option<Fields<'_>> {
    let kind = |name| ("t", Field::Text(name));
    Some(match value.kind() {
        Kind::List => vec![kind("list"), ("items", Field::Items(value.list()?))],
        Kind::Tuple => vec![kind("tuple"), ("items", Field::Items(value.tuple()?))],
        Kind::Set => vec![kind("set"), ("items", Field::Items(value.set()?))],
        Kind::Frozenset => vec![
            kind("frozenset"),
            ("items", Field::Items(value.frozenset()?)),
        ],
        Kind::Dict => vec![kind("dict"), ("items", Field::Entries(value.dict()?))],
        Kind::Bytearray => vec![
            kind("bytearray"),
            ("hex", Field::Bytes(value.as_bytearray()?)),
        ],
        Kind::OrderedDict | Kind::Counter | Kind::DefaultDict => {
            let mut fields = vec![
                kind("map"),
                ("class", Field::Known("collections", value.kind().name())),
                ("items", Field::Entries(value.entries()?)),
            ];
            if value.kind() == Kind::DefaultDict {
                let factory = value.default_factory().map_or(Arg::None, Arg::Value);
                fields.push(("factory", Field::Arg(factory)));
            }
            fields
        }
        Kind::Deque => {
            let deque = value.deque()?;
            let maxlen = deque.maxlen.map_or(Arg::None, |len| Arg::Int(len.into()));
            vec![
                kind("deque"),
                ("maxlen", Field::Arg(maxlen)),
                ("items", Field::Items(deque.items)),
            ]
        }
        Kind::Range => {
            let range = value.range()?;
            let args = [range.start, range.stop, range.step].map(Arg::Value);
            vec![kind("range"), ("args", Field::Args(args.into()))]
        }
        Kind::Slice => {
            let slice = value.slice()?;
            let args = [slice.start, slice.stop, slice.step].map(Arg::Value);
            vec![kind("slice"), ("args", Field::Args(args.into()))]
        }
        Kind::Date => {
            let date = value.date()?;
            object(
                "datetime",
                "date",
                [date.year.into(), date.month.into(), date.day.into()],
            )
        }
        Kind::Time => object("datetime", "time", clock(value.time()?)),
        Kind::Datetime => {
            let Datetime { date, time } = value.datetime()?;
            let day = [date.year.into(), date.month.into(), date.day.into()];
            object("datetime", "datetime", day.into_iter().chain(clock(time)))
        }
        Kind::Timedelta => {
            let delta = value.timedelta()?;
            let args = [
                delta.days.into(),
                delta.seconds.into(),
                delta.microseconds.into(),
            ];
            object("datetime", "timedelta", args)
        }
        Kind::Timezone => {
            let zone = value.timezone()?;
            let args = [
                Arg::Value(zone.offset),
                zone.name.map_or(Arg::None, Arg::Text),
            ];
            object("datetime", "timezone", args)
        }
        Kind::Decimal => {
            let decimal = value.decimal()?.to_string();
            object("decimal", "Decimal", [Arg::Ascii(decimal)])
        }
        Kind::Fraction => {
            let fraction = value.fraction()?;
            let args = [fraction.numerator, fraction.denominator];
            object("fractions", "Fraction", args.map(Arg::Value))
        }
        Kind::Uuid => {
            let uuid = value.uuid()?;
            let mut fields = object("uuid", "UUID", [Arg::Wide(uuid.int)]);
            if let Some(is_safe) = uuid.is_safe {
                let number = match is_safe {
                    UuidSafety::Safe => 0,
                    UuidSafety::Unsafe => -1,
                };
                fields.push(("is_safe", Field::Arg(Arg::Int(number))));
            }
            fields
        }
        Kind::Path => {
            let path = value.path()?;
            object("pathlib", path.class().name(), path.parts().map(Arg::Text))
        }
        Kind::Exception => {
            let exception = value.exception()?;
            let mut fields = vec![
                kind("exception"),
                ("class", Field::Known("builtins", exception.class().name())),
                ("args", Field::Items(exception.args())),
            ];
            if exception.fields().len() > 0 {
                fields.push(("fields", Field::Named(exception.fields().collect())));
            }
            fields
        }
        Kind::Dtype => {
            let dtype = value.dtype()?;
            let mut fields = vec![kind("dtype"), ("dtype", Field::Dtype(dtype))];
            let metadata = dtype.metadata();
            fields.extend(metadata.map(|metadata| ("metadata", Field::Entries(metadata))));
            fields
        }
        Kind::Ndarray => {
            let array = value.ndarray()?;
            let mut fields = vec![
                kind("ndarray"),
                ("shape", Field::Shape(array.shape().collect())),
                (
                    "fortran",
                    Field::Bool(array.order() == ArrayOrder::ColumnFirst),
                ),
                ("dtype", Field::Dtype(array.dtype())),
            ];
            fields.push(match array.items() {
                Some(items) => ("items", Field::Items(items)),
                None => ("hex", Field::Elements(array)),
            });
            fields
        }
        Kind::NumpyScalar => {
            let scalar = value.numpy_scalar()?;
            let mut fields = vec![kind("npscalar"), ("dtype", Field::Dtype(scalar.dtype()))];
            fields.push(match scalar.data() {
                Some(data) => ("hex", Field::Bytes(data)),
                None => ("items", Field::Items(scalar.array()?.items()?)),
            });
            fields
        }
        Kind::Record => record(value.record()?),
        _ => vec![
            kind("opaque"),
            ("class", Field::Text(value.kind().name())),
            ("text", Field::Printed(format!("{value:?}"))),
        ],
    })
}

/// An object that is told by the arguments that would make it.
fn object<'d>(
    module: &'static str,
    class: &'static str,
    args: impl IntoIterator<Item = Arg<'d>>,
) -> Fields<'d> {
    vec![
        ("t", Field::Text("object")),
        ("class", Field::Known(module, class)),
        ("args", Field::Args(args.into_iter().collect())),
    ]
}

/// Hour, minute, second, microsecond, time zone, fold.
fn clock(time: Time<'_>) -> [Arg<'_>; 6] {
    [
        time.hour.into(),
        time.minute.into(),
        time.second.into(),
        time.microsecond.into(),
        time.tzinfo.map_or(Arg::None, Arg::Value),
        u8::from(time.fold).into(),
    ]
}

fn record(record: Record<'_>) -> Fields<'_> {
    let origin = match record.origin() {
        Origin::Call => "call",
        Origin::New => "new",
        Origin::State => "state",
        Origin::PersistentId => "persistent_id",
        Origin::Extension => "extension",
        Origin::Buffer => "buffer",
        _ => "other",
    };
    let mut fields = vec![
        ("t", Field::Text("record")),
        ("origin", Field::Text(origin)),
    ];
    if let Some(class) = record.class() {
        fields.push(match class.global() {
            Some(_) => ("class", Field::Name(class)),
            None => ("class", Field::Arg(Arg::Value(class))),
        });
    }
    fields.push(("args", Field::Items(record.args())));
    let kwargs = record.kwargs();
    fields.extend(kwargs.map(|kwargs| ("kwargs", Field::Entries(kwargs))));
    let states = record.states();
    fields.extend(states.map(|states| ("states", Field::Items(states))));
    let attrs = record.attrs();
    fields.extend(attrs.map(|attrs| ("attrs", Field::Entries(attrs))));
    let appended = record.items();
    fields.extend(appended.map(|items| ("appended", Field::Items(items))));
    let entries = record.entries();
    fields.extend(entries.map(|entries| ("entries", Field::Entries(entries))));
    fields
}

impl Serialize for Node<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(table, value) = self;
        let bounds = table.bounds;
        let mut map = serializer.serialize_map(None)?;
        let mut left_out = 0;
        for (name_of_field, field) in fields(*value) {
            map.serialize_key(name_of_field)?;
            match field {
                Field::Text(text) => map.serialize_value(text)?,
                Field::Printed(text) => map.serialize_value(&text)?,
                Field::Bytes(bytes) => {
                    left_out += bytes.len().saturating_sub(bounds.content);
                    map.serialize_value(&hex(bytes, bounds))?;
                }
                Field::Bool(bool) => map.serialize_value(&bool)?,
                Field::Shape(shape) => map.serialize_value(&shape)?,
                Field::Dtype(dtype) => map.serialize_value(&DtypeObject(dtype, bounds.lines))?,
                Field::Elements(array) => {
                    let total = array.data().map_or(0, <[u8]>::len);
                    left_out += total.saturating_sub(bounds.content);
                    map.serialize_value(&first_elements(array, bounds))?;
                }
                Field::Known(module, class) => map.serialize_value(&[module, class])?,
                Field::Name(class) => map.serialize_value(&name(class, bounds.content))?,
                Field::Arg(arg) => map.serialize_value(&ArgOf(table, arg))?,
                Field::Args(args) => {
                    let args: Vec<_> = args.into_iter().map(|arg| ArgOf(table, arg)).collect();
                    map.serialize_value(&args)?;
                }
                Field::Named(named) => {
                    let named = named.into_iter();
                    let pairs: Vec<_> = named
                        .map(|(name, value)| (name, table.reference(value)))
                        .collect();
                    map.serialize_value(&pairs)?;
                }
                Field::Items(items) => {
                    left_out += items.len().saturating_sub(bounds.items);
                    map.serialize_value(&Sequence(table, items))?;
                }
                Field::Entries(entries) => {
                    left_out += entries.len().saturating_sub(bounds.items);
                    map.serialize_value(&Pairs(table, entries))?;
                }
            }
        }
        if left_out > 0 {
            map.serialize_entry("left_out", &left_out)?;
        }
        map.end()
    }
}

struct ArgOf<'t, 'd, 's>(&'t Table<'d, 's>, Arg<'d>);

impl Serialize for ArgOf<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(table, arg) = self;
        match arg {
            Arg::None => serializer.serialize_none(),
            Arg::Int(int) => one(serializer, "int", &int.to_string()),
            Arg::Wide(int) => one(serializer, "int", &int.to_string()),
            Arg::Ascii(text) => CutText(text, table.bounds.content).serialize(serializer),
            Arg::Text(text) => text_value(serializer, *text, table.bounds.content),
            Arg::Value(value) => table.reference(*value).serialize(serializer),
        }
    }
}

struct Sequence<'t, 'd, 's>(&'t Table<'d, 's>, Items<'d>);

impl Serialize for Sequence<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(table, items) = self;
        let shown = items.iter().take(table.bounds.items);
        serializer.collect_seq(shown.map(|value| table.reference(value)))
    }
}

struct Pairs<'t, 'd, 's>(&'t Table<'d, 's>, Entries<'d>);

impl Serialize for Pairs<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(table, entries) = self;
        let shown = entries.iter().take(table.bounds.items);
        let pairs = shown.map(|(key, value)| [table.reference(key), table.reference(value)]);
        serializer.collect_seq(pairs)
    }
}

/// The first bytes of an array in row-first order, as many as are shown.
fn first_elements(array: Ndarray<'_>, bounds: &Bounds) -> String {
    let mut bytes = Vec::new();
    for element in array.elements().into_iter().flatten() {
        bytes.extend_from_slice(element);
        if bytes.len() >= bounds.content {
            break;
        }
    }
    hex(&bytes, bounds)
}
