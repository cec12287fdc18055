//! Decoded values to JSON.

use std::io;

use agentix_protocol::safepickle::{Entries, Items, Kind, Text, Value};
use data_encoding::BASE64;
use num_bigint::BigInt;
use serde::ser::Serialize;
use serde_json::ser::Formatter;

use crate::terminal::is_hidden;

/// Deepest nesting that is written. Python's own `json.dumps` gives up at about the same.
pub const MAX_DEPTH: usize = 1000;
/// Most values that are written; shared parts count each time.
const MAX_VALUES: u64 = 16_777_216;
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
    /// Too many values once shared parts are unfolded.
    #[error("the value has more than {MAX_VALUES} parts once shared ones are unfolded")]
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
    write(value, MAX_VALUES)
}

fn write(value: Value<'_>, values: u64) -> Result<String, JsonError> {
    let mut writer = Writer {
        out: String::new(),
        left: values,
    };
    let mut stack = vec![Task::Value(value, 0)];
    while let Some(task) = stack.pop() {
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

/// Writes any serializable value as one line of JSON, with the blanks that [`to_string`] writes.
///
/// # Errors
///
/// What a `Serialize` implementation reports, and map keys that are no strings.
///
/// # Example
///
/// ```
/// use agentix_protocol::http::Health;
/// use agentix_reference_host::json;
///
/// let line = json::to_line(&Health::healthy("1.4.2"))?;
/// assert_eq!(line, r#"{"status": "ok", "version": "1.4.2", "protocol": "1.0"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn to_line<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let mut out = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(
        &mut out, Blanks,
    ))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// A blank after `:` and `,`.
struct Blanks;

impl Formatter for Blanks {
    fn begin_array_value<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
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
        self.of_kind(value, depth + 1, tasks)
            .ok_or(JsonError::Kind(value.kind()))
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
mod tests {
    use agentix_protocol::safepickle::{self, Protocol};

    use super::*;

    /// Decodes a pickle written by hand and writes it as JSON.
    fn json(pickle: &[u8]) -> Result<String, JsonError> {
        to_string(safepickle::decode(pickle).unwrap().root())
    }

    fn json_of<T: Serialize>(value: &T) -> String {
        json(&safepickle::to_vec(value, Protocol::DEFAULT).unwrap()).unwrap()
    }

    #[test]
    fn plain_values() {
        assert_eq!(
            json_of(&(1, (), true, "a", 1.0, 1e300)),
            r#"[1, null, true, "a", 1.0, 1e300]"#
        );
        assert_eq!(json_of(&vec![0_u8; 0]), "[]");
        assert_eq!(
            json_of(&u128::MAX),
            "340282366920938463463374607431768211455"
        );
        assert_eq!(
            json_of(&(f64::NAN, f64::INFINITY, f64::NEG_INFINITY)),
            r#"[{"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}]"#
        );
        assert_eq!(
            json_of(&"é\"\\\n\u{7}\u{1f600}"),
            "\"é\\\"\\\\\\n\\u0007\u{1f600}\""
        );
        // '\ud800' as Python writes it.
        assert_eq!(json(b"\x8c\x03\xed\xa0\x80.").unwrap(), r#""\ud800""#);
    }

    #[test]
    fn dicts_keep_their_order_and_odd_keys() {
        assert_eq!(
            json_of(
                &[("b", 1)]
                    .into_iter()
                    .collect::<std::collections::BTreeMap<_, _>>()
            ),
            r#"{"b": 1}"#
        );
        // {"b": 1, "a": [2]}
        assert_eq!(
            json(b"}(\x8c\x01bK\x01\x8c\x01a](K\x02eu.").unwrap(),
            r#"{"b": 1, "a": [2]}"#
        );
        // {1: "x", None: 2}
        assert_eq!(
            json(b"}(K\x01\x8c\x01xNK\x02u.").unwrap(),
            r#"{"$dict": [[1, "x"], [null, 2]]}"#
        );
        // {"$bytes": 1}
        assert_eq!(
            json(b"}\x8c\x06$bytesK\x01s.").unwrap(),
            r#"{"$dict": [["$bytes", 1]]}"#
        );
    }

    #[test]
    fn bytes_and_sets() {
        assert_eq!(json(b"C\x02\x00\xff.").unwrap(), r#"{"$bytes": "AP8="}"#);
        // {1} and frozenset({2})
        assert_eq!(
            json(b"\x80\x04\x8f(K\x01\x90.").unwrap(),
            r#"{"$set": [1]}"#
        );
        assert_eq!(
            json(b"\x80\x04(K\x02\x91.").unwrap(),
            r#"{"$frozenset": [2]}"#
        );
    }

    /// `module.name(*args)`, the arguments as opcodes.
    fn call(module: &str, name: &str, args: &[u8]) -> Vec<u8> {
        let args = [b"(", args, b"t"].concat();
        [
            b"c",
            module.as_bytes(),
            b"\n",
            name.as_bytes(),
            b"\n",
            &args,
            b"R",
        ]
        .concat()
    }

    fn json_of_call(module: &str, name: &str, args: &[u8]) -> String {
        json(&[&call(module, name, args)[..], b"."].concat()).unwrap()
    }

    #[test]
    fn numbers_beyond_json() {
        let complex = [
            b"G",
            &1.5_f64.to_be_bytes()[..],
            b"G",
            &f64::NAN.to_be_bytes(),
        ]
        .concat();
        assert_eq!(
            json_of_call("builtins", "complex", &complex),
            r#"{"$complex": [1.5, {"$float": "nan"}]}"#
        );
        assert_eq!(
            json_of_call("decimal", "Decimal", b"\x8c\x051E+20"),
            r#""1E+20""#
        );
        assert_eq!(
            json_of_call("fractions", "Fraction", b"\x8c\x031/3"),
            r#""1/3""#
        );
        // 2**16000
        let mut wide = vec![0x8b, 0xd1, 0x07, 0, 0];
        wide.extend(vec![0; 2000]);
        wide.extend(b"\x01.");
        let zeros = "0".repeat(4000);
        assert_eq!(json(&wide).unwrap(), format!(r#"{{"$int": "0x1{zeros}"}}"#));
    }

    #[test]
    fn days_and_times() {
        let utc = call(
            "datetime",
            "timezone",
            &call("datetime", "timedelta", b"K\x00K\x3cK\x00"),
        );
        let date = b"C\x04\x07\xea\x01\x02";
        assert_eq!(json_of_call("datetime", "date", date), r#""2026-01-02""#);
        let time = [b"C\x06\x03\x04\x05\x00\x00\x06".as_slice(), &utc].concat();
        assert_eq!(
            json_of_call("datetime", "time", &time),
            r#""03:04:05.000006+00:01""#
        );
        let datetime = b"C\x0a\x07\xea\x01\x02\x03\x04\x05\x00\x00\x00";
        assert_eq!(
            json_of_call("datetime", "datetime", datetime),
            r#""2026-01-02T03:04:05""#
        );
        assert_eq!(
            json_of_call("datetime", "timedelta", b"K\x01K\x02K\x03"),
            r#"{"$timedelta": [1, 2, 3]}"#
        );
        assert_eq!(
            json(&[&utc[..], b"."].concat()).unwrap(),
            r#"{"$timezone": [{"$timedelta": [0, 60, 0]}, null]}"#
        );
    }

    #[test]
    fn a_path_keeps_the_bytes_that_are_no_utf8() {
        // PosixPath('/srv', 'a\ufffd\udcff')
        let parts = b"\x8c\x04/srv\x8c\x07a\xef\xbf\xbd\xed\xb3\xbf";
        assert_eq!(
            json_of_call("pathlib", "PosixPath", parts),
            "\"/srv/a\u{fffd}\\udcff\""
        );
    }

    #[test]
    fn collections_are_what_they_resemble() {
        let counter = call("collections", "Counter", b"}\x8c\x01aK\x02s");
        assert_eq!(json(&[&counter[..], b"."].concat()).unwrap(), r#"{"a": 2}"#);
        assert_eq!(
            json_of_call("collections", "deque", b"](K\x01Ne"),
            "[1, null]"
        );
        assert_eq!(
            json_of_call("collections", "OrderedDict", b"](](K\x01Nee"),
            r#"{"$dict": [[1, null]]}"#
        );
        assert_eq!(
            json_of_call("builtins", "range", b"K\x00M\xe8\x03K\x02"),
            r#"{"$range": [0, 1000, 2]}"#
        );
        assert_eq!(
            json_of_call("builtins", "slice", b"NK\x05N"),
            r#"{"$slice": [null, 5, null]}"#
        );
    }

    #[test]
    fn exceptions_classes_and_records() {
        assert_eq!(
            json_of_call("builtins", "KeyError", b"K\x01"),
            r#"{"$exception": {"class": "KeyError", "args": [1]}}"#
        );
        // OSError(2, "no"), then a note.
        let error = call("builtins", "OSError", b"K\x02\x8c\x02no");
        let noted = [&error[..], b"}\x8c\x09__notes__]\x8c\x01nasb."].concat();
        assert_eq!(
            json(&noted).unwrap(),
            concat!(
                r#"{"$exception": {"class": "FileNotFoundError", "args": [2, "no"], "#,
                r#""fields": {"errno": 2, "strerror": "no"}, "attrs": {"__notes__": ["n"]}}}"#
            )
        );
        assert_eq!(
            json(b"cbuiltins\nlist\n.").unwrap(),
            r#"{"$global": "builtins:list"}"#
        );
        let upload =
            b"cagentix.files\nUploadResult\n)\x81}(\x8c\x04path\x8c\x01p\x8c\x04sizeK\x01ub.";
        assert_eq!(
            json(upload).unwrap(),
            r#"{"$record": {"class": "agentix.files:UploadResult", "attrs": {"path": "p", "size": 1}}}"#
        );
    }

    #[test]
    fn every_kind_that_is_shown_is_json() {
        use agentix_protocol::safepickle::{Decoder, Limits, Policy};
        let inspector = Decoder::new(Policy::inspect(), Limits::default());
        // A call with every part that a record can have: argument, appended, entry, state.
        let stream = b"cm\nf\n(K\x01tRK\x02aK\x03K\x04sK\x05b.";
        let document = inspector.decode(stream).unwrap();
        let text = to_string(document.root()).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            parsed,
            serde_json::json!({"$record": {
                "class": "m:f", "args": [1], "entries": {"$dict": [[3, 4]]}, "states": [5], "items": [2],
            }})
        );
        // A persistent id has no class; a callee may be an object.
        for stream in [
            &b"Px\n."[..],
            b"]N\x85R.",
            b"\x97.",
            b"\x82\x01.",
            b"K\x01K\x02b.",
        ] {
            let document = inspector.decode(stream).unwrap();
            let text = to_string(document.root()).unwrap();
            let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert!(parsed["$record"].get("class").is_some(), "{text}");
        }
    }

    #[test]
    fn depth_and_sharing_are_bounded() {
        let mut deep = vec![b']'; MAX_DEPTH + 2];
        deep.extend(vec![b'a'; MAX_DEPTH + 1]);
        deep.push(b'.');
        assert_eq!(json(&deep), Err(JsonError::TooDeep));
        // A list that holds itself.
        assert_eq!(json(b"]q\x00h\x00a."), Err(JsonError::TooDeep));
        // Each list holds the one before twice: 2^40 values.
        let mut bomb = b"]".to_vec();
        for i in 0..40_u8 {
            bomb.extend([b'q', i, b']', b'(', b'h', i, b'h', i, b'e']);
        }
        bomb.push(b'.');
        let document = safepickle::decode(&bomb).unwrap();
        assert_eq!(write(document.root(), 10_000), Err(JsonError::TooLarge));
    }
}
