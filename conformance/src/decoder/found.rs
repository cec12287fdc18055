//! Decoded values, in the vocabulary of the comparison.

use std::borrow::Cow;

use agentix_protocol::safepickle::{
    Complex, Date, Entries, Global, Items, Kind, Range, Text, Time, UuidSafety, Value,
};
use num_bigint::BigInt;

use super::arrays;
use super::shape::{Content, Leaf, Part, Shape, Step};
use super::table::ClassName;

/// A decoded value as a part; `None` if its accessors contradict its kind.
pub(super) fn part<'d>(value: Value<'d>) -> Option<Part<'d, Value<'d>>> {
    Some(Part::Leaf(match value.kind() {
        Kind::None => Leaf::None,
        Kind::Bool => Leaf::Bool(value.as_bool()?),
        Kind::Int => Leaf::Int(value.as_big_int()?),
        Kind::Float => Leaf::Float(value.as_f64()?.to_bits()),
        Kind::Str => Leaf::Str(Cow::Borrowed(value.as_text()?.as_generalised_utf8())),
        Kind::Bytes => Leaf::Bytes(value.as_bytes()?),
        Kind::Complex => {
            let Complex { re, im } = value.as_complex()?;
            Leaf::Complex(re.to_bits(), im.to_bits())
        }
        Kind::Global => Leaf::Global {
            function: value.global()?.is_function(),
            name: Cow::Owned(class_name(value.global()?)),
        },
        _ => return Some(Part::Node(value)),
    }))
}

/// The name of a class, as Python tells it: its own, and not an alias that the stream may have used.
fn class_name(global: Global<'_>) -> ClassName {
    match global.exception_class() {
        Some(class) => ClassName::new("builtins", class.name()),
        None => ClassName {
            module: global.module().to_string_lossy().into_owned(),
            name: global.qualname().to_string_lossy().into_owned(),
        },
    }
}

fn none<'d>() -> Part<'d, Value<'d>> {
    Part::Leaf(Leaf::None)
}

fn text(text: Text<'_>) -> Part<'_, Value<'_>> {
    Part::Leaf(Leaf::Str(Cow::Borrowed(text.as_generalised_utf8())))
}

fn int<'d>(value: impl Into<BigInt>) -> Part<'d, Value<'d>> {
    Part::Leaf(Leaf::Int(Cow::Owned(value.into())))
}

pub(super) fn items<'d>(items: Items<'d>) -> Option<Vec<Part<'d, Value<'d>>>> {
    items.iter().map(part).collect()
}

type Pair<'d> = (Part<'d, Value<'d>>, Part<'d, Value<'d>>);

fn entries<'d>(entries: Entries<'d>) -> Option<Vec<Pair<'d>>> {
    let pair = |(key, value)| Some((part(key)?, part(value)?));
    entries.iter().map(pair).collect()
}

/// A decoded value that is no leaf, opened; `None` if its accessors contradict its kind, or if the format has no such kind.
pub(super) fn shape<'d>(value: Value<'d>) -> Option<Shape<'d, Value<'d>>> {
    let shape = match value.kind() {
        Kind::List => Shape::new("list").numbered(Step::Item, items(value.list()?)?),
        Kind::Tuple => Shape::new("tuple")
            .numbered(Step::Item, items(value.tuple()?)?)
            .shared_when_empty(),
        Kind::Set => Shape::new("set").elements(items(value.set()?)?),
        Kind::Frozenset => Shape::new("frozenset")
            .elements(items(value.frozenset()?)?)
            .shared_when_empty(),
        Kind::Dict => Shape::new("dict").entries(entries(value.dict()?)?),
        Kind::Bytearray => {
            Shape::new("bytearray").content(Content::Bytes(Cow::Borrowed(value.as_bytearray()?)))
        }
        Kind::Range => {
            let Range { start, stop, step } = value.range()?;
            Shape::new("range").numbered(Step::Arg, [part(start)?, part(stop)?, part(step)?])
        }
        Kind::Slice => {
            let Range { start, stop, step } = value.slice()?;
            Shape::new("slice").numbered(Step::Arg, [part(start)?, part(stop)?, part(step)?])
        }
        Kind::OrderedDict | Kind::Counter => map(value)?,
        Kind::DefaultDict => map(value)?.part(
            Step::Factory,
            value.default_factory().map_or(Some(none()), part)?,
        ),
        Kind::Deque => {
            let deque = value.deque()?;
            let maxlen = deque.maxlen.map_or(none(), int);
            Shape::new("deque")
                .part(Step::Maxlen, maxlen)
                .numbered(Step::Item, items(deque.items)?)
        }
        Kind::Exception => {
            let exception = value.exception()?;
            let fields = exception.fields();
            let fields = fields.map(|(name, value)| Some((Cow::Borrowed(name), part(value)?)));
            Shape::new("exception")
                .class(Cow::Owned(ClassName::new(
                    "builtins",
                    exception.class().name(),
                )))
                .numbered(Step::Arg, items(exception.args())?)
                .fields(fields.collect::<Option<Vec<_>>>()?)
        }
        Kind::Date => object("datetime", "date", date(value.date()?)),
        Kind::Time => object("datetime", "time", time(value.time()?)?),
        Kind::Datetime => {
            let datetime = value.datetime()?;
            let args = date(datetime.date).into_iter().chain(time(datetime.time)?);
            object("datetime", "datetime", args)
        }
        Kind::Timedelta => {
            let delta = value.timedelta()?;
            let args = [int(delta.days), int(delta.seconds), int(delta.microseconds)];
            object("datetime", "timedelta", args)
        }
        Kind::Timezone => {
            let zone = value.timezone()?;
            let name = zone.name.map_or(none(), text);
            object("datetime", "timezone", [part(zone.offset)?, name])
        }
        Kind::Decimal => {
            let text = value.decimal()?.to_string().into_bytes();
            let text = Part::Leaf(Leaf::Str(Cow::Owned(text)));
            object("decimal", "Decimal", [text])
        }
        Kind::Fraction => {
            let fraction = value.fraction()?;
            let args = [part(fraction.numerator)?, part(fraction.denominator)?];
            object("fractions", "Fraction", args)
        }
        Kind::Uuid => {
            let uuid = value.uuid()?;
            let shape = object("uuid", "UUID", [int(uuid.int)]);
            match uuid.is_safe {
                None => shape,
                Some(UuidSafety::Safe) => shape.part(Step::IsSafe, int(0)),
                Some(UuidSafety::Unsafe) => shape.part(Step::IsSafe, int(-1)),
            }
        }
        Kind::Path => {
            let path = value.path()?;
            object("pathlib", path.class().name(), path.parts().map(text))
        }
        Kind::Dtype => arrays::dtype_shape(value)?,
        Kind::Ndarray => arrays::array_shape(value)?,
        Kind::Record => {
            let class = value.record()?.class()?.global()?;
            Shape::new("record").class(Cow::Owned(class_name(class)))
        }
        _ => return None,
    };
    Some(match value.attrs() {
        Some(attrs) => shape.attrs(entries(attrs)?),
        None => shape,
    })
}

/// A value that the format tells by its class and arguments.
fn object<'d>(
    module: &str,
    name: &str,
    args: impl IntoIterator<Item = Part<'d, Value<'d>>>,
) -> Shape<'d, Value<'d>> {
    Shape::new("object")
        .class(Cow::Owned(ClassName::new(module, name)))
        .numbered(Step::Arg, args)
}

fn date<'d>(date: Date) -> [Part<'d, Value<'d>>; 3] {
    [int(date.year), int(date.month), int(date.day)]
}

fn time<'d>(time: Time<'d>) -> Option<[Part<'d, Value<'d>>; 6]> {
    Some([
        int(time.hour),
        int(time.minute),
        int(time.second),
        int(time.microsecond),
        time.tzinfo.map_or(Some(none()), part)?,
        int(u8::from(time.fold)),
    ])
}

fn map<'d>(value: Value<'d>) -> Option<Shape<'d, Value<'d>>> {
    Some(
        Shape::new("map")
            .class(Cow::Owned(ClassName::new(
                "collections",
                value.kind().name(),
            )))
            .entries(entries(value.entries()?)?),
    )
}
