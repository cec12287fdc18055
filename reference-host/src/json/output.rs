//! Decoded values to JSON.

mod arrays;

use agentix_protocol::safepickle::{Entries, Items, Kind, Text, Value};
use data_encoding::BASE64;
use num_bigint::BigInt;

use crate::terminal::is_hidden;

/// Deepest nesting that is written. Python's own `json.dumps` gives up at about the same.
pub const MAX_DEPTH: usize = 1000;
/// Most values that are written; shared parts count each time.
const MAX_VALUES: u64 = 16_777_216;
/// Most bytes that are written, 1 GiB: a long str may be in many places.
const MAX_BYTES: usize = 1 << 30;
/// Bits of the longest int that is written in decimal, which takes quadratic time: about 4,300 digits,
/// where Python stops, too.
const DECIMAL_BITS: u64 = 14_285;

/// Why a value was not written as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The value is nested too deep, or holds itself.
    #[error("the value is nested deeper than {MAX_DEPTH} levels, or holds itself")]
    TooDeep,
    /// Too many values, or too much text, once shared parts are unfolded.
    #[error(
        "the value has more than {MAX_VALUES} parts, or {MAX_BYTES} bytes of JSON, once shared ones are \
         unfolded"
    )]
    TooLarge,
    /// There is no JSON for values of this kind.
    #[error("there is no JSON for a {0}")]
    Kind(Kind),
}

/// Writes a decoded value as one line of JSON.
///
/// # Errors
///
/// [`JsonError`] when it is too deep or too large, or of a kind that has no JSON.
///
/// # Example
///
/// ```
/// use agentix_protocol::safepickle;
/// use agentix_reference_host::json;
///
/// // {"output": "HELLO"}
/// let document = safepickle::decode(b"\x80\x04}\x8c\x06output\x8c\x05HELLOs.")?;
/// assert_eq!(json::to_string(document.root())?, r#"{"output": "HELLO"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_string(value: Value<'_>) -> Result<String, JsonError> {
    write(value, MAX_VALUES, MAX_BYTES)
}

fn write(value: Value<'_>, values: u64, bytes: usize) -> Result<String, JsonError> {
    let mut writer = Writer {
        out: String::new(),
        left: values,
    };
    let mut stack = vec![Task::Value(value, 0)];
    while let Some(task) = stack.pop() {
        if writer.out.len() > bytes {
            return Err(JsonError::TooLarge);
        }
        match task {
            Task::Text(text) => writer.out.push_str(text),
            Task::Key(key) => writer.text(key.code_points()),
            Task::Value(value, depth) => {
                let start = stack.len();
                writer.value(value, depth, &mut stack)?;
                // What comes first is to be on top.
                stack[start..].reverse();
            }
        }
    }
    Ok(writer.out)
}

/// What is still to be written.
enum Task<'d> {
    Text(&'static str),
    Key(Text<'d>),
    Value(Value<'d>, usize),
}

struct Writer {
    out: String,
    left: u64,
}

/// What follows in order.
type Tasks<'d> = Vec<Task<'d>>;

impl Writer {
    /// Writes a value that has no parts; of one that has some, adds what follows to `tasks`.
    fn value<'d>(
        &mut self,
        value: Value<'d>,
        depth: usize,
        tasks: &mut Tasks<'d>,
    ) -> Result<(), JsonError> {
        self.left = self.left.checked_sub(1).ok_or(JsonError::TooLarge)?;
        if depth > MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        // The accessors of a value fit its kind.
        match value.kind() {
            Kind::Ndarray => self.array(value, depth + 1, tasks),
            _ => self
                .of_kind(value, depth + 1, tasks)
                .ok_or(JsonError::Kind(value.kind())),
        }
    }

    fn of_kind<'d>(&mut self, value: Value<'d>, depth: usize, tasks: &mut Tasks<'d>) -> Option<()> {
        match value.kind() {
            Kind::None => self.out.push_str("null"),
            Kind::Bool if value.as_bool()? => self.out.push_str("true"),
            Kind::Bool => self.out.push_str("false"),
            Kind::Int => self.int(&*value.as_big_int()?),
            Kind::Float => self.float(value.as_f64()?),
            Kind::Complex => {
                let complex = value.as_complex()?;
                self.out.push_str("{\"$complex\": [");
                self.float(complex.re);
                self.out.push_str(", ");
                self.float(complex.im);
                self.out.push_str("]}");
            }
            Kind::Str => self.text(value.as_text()?.code_points()),
            Kind::Bytes => self.bytes("{\"$bytes\": \"", value.as_bytes()?),
            Kind::Bytearray => self.bytes("{\"$bytearray\": \"", value.as_bytearray()?),
            Kind::List => items("[", value.list()?, "]", depth, tasks),
            Kind::Tuple => items("[", value.tuple()?, "]", depth, tasks),
            Kind::Deque => items("[", value.deque()?.items, "]", depth, tasks),
            Kind::Set => items("{\"$set\": [", value.set()?, "]}", depth, tasks),
            Kind::Frozenset => items("{\"$frozenset\": [", value.frozenset()?, "]}", depth, tasks),
            Kind::Dict | Kind::OrderedDict | Kind::Counter | Kind::DefaultDict => {
                entries(value.entries()?, depth, tasks);
            }
            Kind::Range => {
                let range = value.range()?;
                let ends = [range.start, range.stop, range.step];
                array("{\"$range\": [", ends, "]}", depth, tasks);
            }
            Kind::Slice => {
                let slice = value.slice()?;
                let ends = [slice.start, slice.stop, slice.step];
                array("{\"$slice\": [", ends, "]}", depth, tasks);
            }
            Kind::Date => self.written(&value.date()?.to_string()),
            Kind::Time => {
                let time = value.time()?;
                self.clock("time", &time.to_string(), time.tzinfo, depth, tasks);
            }
            Kind::Datetime => {
                let datetime = value.datetime()?;
                let text = datetime.isoformat().to_string();
                self.clock("datetime", &text, datetime.time.tzinfo, depth, tasks);
            }
            Kind::Timedelta => {
                let delta = value.timedelta()?;
                let (days, seconds, microseconds) = (delta.days, delta.seconds, delta.microseconds);
                self.out.push_str(&format!(
                    "{{\"$timedelta\": [{days}, {seconds}, {microseconds}]}}"
                ));
            }
            Kind::Timezone => {
                let zone = value.timezone()?;
                tasks.push(Task::Text("{\"$timezone\": ["));
                tasks.push(Task::Value(zone.offset, depth));
                tasks.push(Task::Text(", "));
                tasks.push(zone.name.map_or(Task::Text("null"), Task::Key));
                tasks.push(Task::Text("]}"));
            }
            Kind::Decimal => self.written(&value.decimal()?.to_string()),
            Kind::Fraction => {
                let fraction = value.fraction()?;
                let parts = [fraction.numerator, fraction.denominator];
                let is_short = |part: Value<'_>| {
                    part.as_big_int()
                        .is_some_and(|int| int.bits() <= DECIMAL_BITS)
                };
                if parts.into_iter().all(is_short) {
                    self.written(&fraction.to_string());
                } else {
                    array("{\"$fraction\": [", parts, "]}", depth, tasks);
                }
            }
            Kind::Uuid => self.written(&value.uuid()?.to_string()),
            Kind::Path => self.path(value)?,
            Kind::Exception => exception(value, depth, tasks)?,
            Kind::Global => {
                self.out.push_str("{\"$global\": ");
                self.name(value)?;
                self.out.push('}');
            }
            Kind::Record => self.record(value, depth, tasks)?,
            Kind::Dtype => {
                self.out.push_str("{\"$dtype\": ");
                self.dtype(value.dtype()?)?;
                self.out.push('}');
            }
            Kind::NumpyScalar => self.scalar(value, depth, tasks)?,
            _ => return None,
        }
        Some(())
    }

    fn int(&mut self, int: &BigInt) {
        if int.bits() <= DECIMAL_BITS {
            self.out.push_str(&int.to_string());
        } else {
            self.out.push_str(&format!("{{\"$int\": \"{int:#x}\"}}"));
        }
    }

    /// A text in quotes.
    fn written(&mut self, text: &str) {
        self.text(text.chars().map(u32::from));
    }

    /// A clock reading, with its time zone if that is none that the text shows.
    fn clock<'d>(
        &mut self,
        kind: &str,
        text: &str,
        tzinfo: Option<Value<'d>>,
        depth: usize,
        tasks: &mut Tasks<'d>,
    ) {
        match tzinfo {
            Some(tzinfo) if tzinfo.kind() != Kind::Timezone => {
                self.out.push_str(&format!("{{\"${kind}\": ["));
                self.written(text);
                self.out.push_str(", ");
                tasks.push(Task::Value(tzinfo, depth));
                tasks.push(Task::Text("]}"));
            }
            _ => self.written(text),
        }
    }

    /// A path, surrogates included: they stand for the bytes of a file name that are no UTF-8.
    fn path(&mut self, value: Value<'_>) -> Option<()> {
        let path = value.path()?;
        // `Display` has a replacement character for each surrogate.
        let replacement = u32::from(char::REPLACEMENT_CHARACTER);
        let mut replaced = path
            .parts()
            .flat_map(Text::code_points)
            .filter(|point| *point == replacement || char::from_u32(*point).is_none());
        self.text(path.to_string().chars().map(|c| match u32::from(c) {
            point if point == replacement => replaced.next().unwrap_or(point),
            point => point,
        }));
        Some(())
    }

    /// `"module:qualname"`.
    fn name(&mut self, value: Value<'_>) -> Option<()> {
        let global = value.global()?;
        let colon = std::iter::once(u32::from(':'));
        self.text(
            (global.module().code_points())
                .chain(colon)
                .chain(global.qualname().code_points()),
        );
        Some(())
    }

    fn record<'d>(&mut self, value: Value<'d>, depth: usize, tasks: &mut Tasks<'d>) -> Option<()> {
        let record = value.record()?;
        self.out.push_str("{\"$record\": {\"class\": ");
        match record.class() {
            Some(class) if class.global().is_some() => self.name(class)?,
            Some(class) => tasks.push(Task::Value(class, depth)),
            None => self.out.push_str("null"),
        }
        if !record.args().is_empty() {
            items(", \"args\": [", record.args(), "]", depth, tasks);
        }
        let mut named = |name, found: Option<Entries<'d>>| {
            if let Some(found) = found {
                tasks.push(Task::Text(name));
                entries(found, depth, tasks);
            }
        };
        named(", \"kwargs\": ", record.kwargs());
        named(", \"attrs\": ", record.attrs());
        named(", \"entries\": ", record.entries());
        if let (Some(states), None) = (record.states(), record.attrs()) {
            items(", \"states\": [", states, "]", depth, tasks);
        }
        if let Some(appended) = record.items() {
            items(", \"items\": [", appended, "]", depth, tasks);
        }
        tasks.push(Task::Text("}}"));
        Some(())
    }

    fn bytes(&mut self, open: &str, bytes: &[u8]) {
        self.out.push_str(open);
        BASE64.encode_append(bytes, &mut self.out);
        self.out.push_str("\"}");
    }

    fn float(&mut self, float: f64) {
        if float.is_finite() {
            self.out.push_str(&format!("{float:?}"));
        } else {
            let name = match float {
                f if f.is_nan() => "nan",
                f if f > 0.0 => "inf",
                _ => "-inf",
            };
            self.out.push_str(&format!("{{\"$float\": \"{name}\"}}"));
        }
    }

    fn text(&mut self, points: impl Iterator<Item = u32>) {
        self.out.push('"');
        for point in points {
            match char::from_u32(point) {
                Some('"') => self.out.push_str("\\\""),
                Some('\\') => self.out.push_str("\\\\"),
                Some('\n') => self.out.push_str("\\n"),
                Some('\r') => self.out.push_str("\\r"),
                Some('\t') => self.out.push_str("\\t"),
                Some(c) if !is_hidden(c) => self.out.push(c),
                // What a terminal would obey or not show, and surrogates.
                Some(c) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                None => self.out.push_str(&format!("\\u{point:04x}")),
            }
        }
        self.out.push('"');
    }
}

fn array<'d>(
    open: &'static str,
    values: impl IntoIterator<Item = Value<'d>>,
    close: &'static str,
    depth: usize,
    tasks: &mut Tasks<'d>,
) {
    tasks.push(Task::Text(open));
    for (i, value) in values.into_iter().enumerate() {
        if i > 0 {
            tasks.push(Task::Text(", "));
        }
        tasks.push(Task::Value(value, depth));
    }
    tasks.push(Task::Text(close));
}

fn items<'d>(
    open: &'static str,
    items: Items<'d>,
    close: &'static str,
    depth: usize,
    tasks: &mut Tasks<'d>,
) {
    array(open, items.iter(), close, depth, tasks);
}

/// An object if the keys are strs and it cannot be taken for something else.
fn entries<'d>(entries: Entries<'d>, depth: usize, tasks: &mut Tasks<'d>) {
    let has_other_keys = entries.iter().any(|(key, _)| key.kind() != Kind::Str);
    let looks_special = entries.len() == 1
        && entries.at(0).is_some_and(|(key, _)| {
            key.as_text()
                .is_some_and(|text| text.as_generalised_utf8().starts_with(b"$"))
        });
    if has_other_keys || looks_special {
        tasks.push(Task::Text("{\"$dict\": ["));
        for (i, (key, value)) in entries.iter().enumerate() {
            let open = if i == 0 { "[" } else { ", [" };
            array(open, [key, value], "]", depth, tasks);
        }
        tasks.push(Task::Text("]}"));
        return;
    }
    tasks.push(Task::Text("{"));
    for (i, (key, value)) in entries.iter().enumerate() {
        if i > 0 {
            tasks.push(Task::Text(", "));
        }
        tasks.extend(key.as_text().map(Task::Key));
        tasks.push(Task::Text(": "));
        tasks.push(Task::Value(value, depth));
    }
    tasks.push(Task::Text("}"));
}

fn exception<'d>(value: Value<'d>, depth: usize, tasks: &mut Tasks<'d>) -> Option<()> {
    let exception = value.exception()?;
    let name = exception.class().name();
    tasks.push(Task::Text("{\"$exception\": {\"class\": \""));
    tasks.push(Task::Text(name));
    items("\", \"args\": [", exception.args(), "]", depth, tasks);
    let fields = exception.fields().filter(|(_, value)| !value.is_none());
    for (i, (name, value)) in fields.enumerate() {
        tasks.push(Task::Text(if i == 0 {
            ", \"fields\": {\""
        } else {
            ", \""
        }));
        tasks.push(Task::Text(name));
        tasks.push(Task::Text("\": "));
        tasks.push(Task::Value(value, depth));
    }
    if exception.fields().any(|(_, value)| !value.is_none()) {
        tasks.push(Task::Text("}"));
    }
    if let Some(attrs) = exception.attrs() {
        tasks.push(Task::Text(", \"attrs\": "));
        entries(attrs, depth, tasks);
    }
    tasks.push(Task::Text("}}"));
    Some(())
}

#[cfg(test)]
mod tests;
