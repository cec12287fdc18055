//! Hostile bytes: no panic, no limit exceeded, and everything that can be done with a document done.

use std::collections::{BTreeMap, BTreeSet};

use agentix_protocol::safepickle::numpy::Ndarray;
use agentix_protocol::safepickle::{
    DecodeError, DecodeErrorKind, Decoder, Document, Event, Global, Kind, LimitKind, Limits,
    Opcode, Policy, Protocol, Value, encode, from_value,
};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::walk;

/// What `Debug` prints at most: 1000 objects, each with 1000 characters, each with ten for an escape.
const PRINTED: usize = 12_000_000;

/// Decodes `bytes` under every policy, with the default limits and with small ones.
pub fn unpickle(bytes: &[u8]) {
    let [agentix, numpy, ..] = policies().map(|policy| under(policy, bytes));
    assert!(!agentix || numpy, "a policy that admits more accepts more");
}

/// Whether `bytes` are accepted under this policy and the default limits.
fn under(policy: Policy, bytes: &[u8]) -> bool {
    let small = Decoder::new(policy.clone(), small_limits()).decode(bytes);
    let decoder = Decoder::new(policy.clone(), Limits::default());
    let mut seen = Seen::default();
    let decoded = decoder.decode_observed(bytes, |event| seen.event(&event, &policy, bytes));
    match (&decoded, &small) {
        (Ok(document), Ok(same)) => assert_eq!(document, same, "limits change no value"),
        (Err(_), Ok(document)) => panic!("{document:?} only with smaller limits"),
        (Ok(_), Err(error)) => {
            assert!(
                matches!(error.kind(), DecodeErrorKind::Limit { .. }),
                "{error}"
            );
        }
        _ => {}
    }
    match small {
        Ok(document) => assert!(document.node_count() as u64 <= SMALL_NODES),
        Err(error) => error_holds(&error, bytes, small_limit),
    }
    match decoded {
        Ok(document) => {
            assert_eq!(document.consumed() as u64, seen.end);
            assert_eq!(document.globals().count(), seen.globals.len());
            for global in document.globals() {
                let name = (
                    global.module().to_string_lossy().into_owned(),
                    global.qualname().to_string_lossy().into_owned(),
                );
                assert!(
                    seen.globals.contains(&name) || has_surrogates(global),
                    "{name:?}"
                );
            }
            document_holds(document, &decoder, bytes);
            true
        }
        Err(error) => {
            // What a value lacks shows at STOP, which is carried out first.
            let at_stop = error.opcode() == Some(Opcode::STOP) && error.offset() + 1 == seen.end;
            assert!(error.offset() == seen.end || at_stop, "{error}");
            error_holds(&error, bytes, |_| None);
            false
        }
    }
}

fn has_surrogates(global: Global<'_>) -> bool {
    global.module().as_str().is_none() || global.qualname().as_str().is_none()
}

/// What an observer was told.
#[derive(Default)]
struct Seen {
    /// Where the last instruction ended.
    end: u64,
    globals: BTreeSet<(String, String)>,
}

impl Seen {
    fn event(&mut self, event: &Event<'_>, policy: &Policy, bytes: &[u8]) {
        match *event {
            Event::Global {
                offset,
                module,
                qualname,
                admitted,
            } => {
                assert_eq!(offset, self.end);
                // Names with surrogates are spelt out here, and are not asked for in that spelling.
                if !qualname.contains('\\') && !module.contains('\\') {
                    assert_eq!(admitted, policy.admits(module, qualname));
                }
                if admitted {
                    self.globals
                        .insert((module.to_owned(), qualname.to_owned()));
                }
            }
            Event::PersistentId { offset, .. } => assert_eq!(offset, self.end),
            Event::Instruction {
                offset,
                opcode,
                argument,
            } => {
                assert_eq!(offset, self.end, "each byte belongs to one instruction");
                let at = usize::try_from(offset).unwrap();
                assert_eq!(bytes[at], opcode.byte());
                assert_eq!(&bytes[at + 1..][..argument.len()], argument);
                self.end = offset + 1 + argument.len() as u64;
            }
            _ => {}
        }
    }
}

fn policies() -> [Policy; 4] {
    [
        Policy::agentix(),
        Policy::agentix().with_numpy(),
        Policy::agentix().allow("os", "system").allow("a", "B"),
        Policy::inspect(),
    ]
}

const SMALL_NODES: u64 = 40;

fn small_limits() -> Limits {
    let limit = |kind| small_limit(kind).unwrap_or(u64::MAX);
    Limits::default()
        .nodes(limit(LimitKind::Nodes))
        .owned_bytes(limit(LimitKind::OwnedBytes))
        .memo_entries(limit(LimitKind::MemoEntries))
        .integer_digits(limit(LimitKind::IntegerDigits))
        .key_depth(limit(LimitKind::KeyDepth))
        .work_steps(limit(LimitKind::WorkSteps), 0)
}

fn small_limit(kind: LimitKind) -> Option<u64> {
    Some(match kind {
        LimitKind::Nodes => SMALL_NODES,
        LimitKind::OwnedBytes => 64,
        LimitKind::MemoEntries => 8,
        LimitKind::IntegerDigits => 9,
        LimitKind::KeyDepth => 3,
        LimitKind::WorkSteps => 100,
        _ => return None,
    })
}

/// An error says where in these bytes it is, and a limit which one and by how much.
fn error_holds(error: &DecodeError, bytes: &[u8], limits: fn(LimitKind) -> Option<u64>) {
    let at = usize::try_from(error.offset()).unwrap();
    assert_eq!(
        error.opcode().map(|opcode| opcode.byte()),
        bytes.get(at).copied(),
        "{error}"
    );
    if let DecodeErrorKind::Limit {
        limit,
        allowed,
        value,
    } = error.kind()
    {
        assert!(value > allowed, "{error}");
        if let Some(limit) = limits(*limit) {
            assert_eq!(*allowed, limit, "{error}");
        }
    }
    assert!(!error.to_string().is_empty());
}

/// A value of a shape that users have.
#[derive(Deserialize)]
#[allow(dead_code, reason = "only that it is made or refused matters")]
struct Typed {
    name: Option<String>,
    count: u64,
    ratio: f32,
    #[serde(with = "serde_bytes")]
    blob: Vec<u8>,
    choice: Choice,
    pair: (i128, char),
    inner: Vec<Typed>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only that it is made or refused matters")]
enum Choice {
    Unit,
    Newtype(Box<Choice>),
    Tuple(bool, u8),
    Struct {
        a: f64,
        b: BTreeMap<(u8, String), [u8; 2]>,
    },
}

/// What shares its parts unfolds in a type. More steps than this are right, and slow.
const UNFOLDED: usize = 10_000;

fn into_types(root: Value<'_>) {
    if walk::unfolds_to_more_than(UNFOLDED, root) {
        return;
    }
    let _ = from_value::<IgnoredAny>(root);
    let _ = from_value::<serde_json::Value>(root);
    let _ = from_value::<Typed>(root);
    let _ = from_value::<Choice>(root);
    let _ = from_value::<BTreeMap<String, Vec<Option<i8>>>>(root);
}

/// Everything that can be done with a document, done.
fn document_holds(document: Document<'_>, decoder: &Decoder, bytes: &[u8]) {
    walk::each(document.root(), touch);
    assert!(format!("{document:?}").len() <= PRINTED);

    let copy = document.clone();
    walk::each(copy.root(), |_| {});
    let _ = encode(document.root(), Protocol::V5);
    into_types(document.root());
    assert_eq!(document, copy, "equality is reflexive");
    assert_eq!(document.root(), document.root());
    walk::assert_same_sharing(document.root(), copy.root());

    let owned = document.into_owned();
    assert_eq!(owned, copy);
    let longer = [bytes, b"\0\xff."].concat();
    let again = decoder.decode(&longer);
    assert_eq!(
        again.as_ref(),
        Ok(&owned),
        "what follows STOP changes nothing"
    );
}

/// Reads one object by every accessor. Exactly those of its kind give something.
fn touch(value: Value<'_>) {
    let given: Vec<Kind> = [
        (value.is_none(), Kind::None),
        (value.as_bool().is_some(), Kind::Bool),
        (value.as_big_int().is_some(), Kind::Int),
        (value.as_f64().is_some(), Kind::Float),
        (value.as_text().is_some(), Kind::Str),
        (value.as_bytes().is_some(), Kind::Bytes),
        (value.as_bytearray().is_some(), Kind::Bytearray),
        (value.list().is_some(), Kind::List),
        (value.tuple().is_some(), Kind::Tuple),
        (value.dict().is_some(), Kind::Dict),
        (value.set().is_some(), Kind::Set),
        (value.frozenset().is_some(), Kind::Frozenset),
        (value.range().is_some(), Kind::Range),
        (value.slice().is_some(), Kind::Slice),
        (value.deque().is_some(), Kind::Deque),
        (value.as_complex().is_some(), Kind::Complex),
        (value.decimal().is_some(), Kind::Decimal),
        (value.fraction().is_some(), Kind::Fraction),
        (value.uuid().is_some(), Kind::Uuid),
        (value.date().is_some(), Kind::Date),
        (value.time().is_some(), Kind::Time),
        (value.datetime().is_some(), Kind::Datetime),
        (value.timedelta().is_some(), Kind::Timedelta),
        (value.timezone().is_some(), Kind::Timezone),
        (value.path().is_some(), Kind::Path),
        (value.exception().is_some(), Kind::Exception),
        (value.dtype().is_some(), Kind::Dtype),
        (value.ndarray().is_some(), Kind::Ndarray),
        (value.numpy_scalar().is_some(), Kind::NumpyScalar),
        (value.global().is_some(), Kind::Global),
        (value.record().is_some(), Kind::Record),
    ]
    .into_iter()
    .filter_map(|(given, kind)| given.then_some(kind))
    .collect();
    match value.kind() {
        Kind::OrderedDict | Kind::Counter | Kind::DefaultDict => {
            assert!(value.entries().is_some() && given.is_empty(), "{value:?}");
        }
        // One that inspection made and that never got its state.
        Kind::Ndarray if given.is_empty() => {}
        kind => assert_eq!(given, [kind], "{value:?}"),
    }
    if let Some(int) = value.as_i64() {
        assert_eq!(value.as_big_int().unwrap().to_string(), int.to_string());
    }
    if let Some(text) = value.as_text() {
        assert_eq!(text.as_str(), value.as_str());
        let points = text.code_points().count();
        assert_eq!(text.to_string_lossy().chars().count(), points);
    }
    touch_number(value);
    touch_time(value);
    touch_object(value);
    touch_numpy(value);
}

fn touch_number(value: Value<'_>) {
    if let Some(decimal) = value.decimal() {
        assert!(decimal.digits().bytes().all(|digit| digit.is_ascii_digit()));
        assert!(!decimal.to_string().is_empty());
        let _ = (
            decimal.form(),
            decimal.exponent(),
            decimal.is_nan(),
            decimal.is_negative(),
        );
    }
    if let Some(fraction) = value.fraction() {
        assert_eq!(fraction.numerator.kind(), Kind::Int);
        let denominator = fraction.denominator.as_big_int().unwrap();
        assert!(!denominator.to_string().starts_with(['0', '-']));
    }
    if let Some(uuid) = value.uuid() {
        assert_eq!(uuid.to_string().len(), 36);
    }
    if let Some(range) = value.range() {
        let parts = [range.start, range.stop, range.step];
        assert!(parts.iter().all(|part| part.kind() == Kind::Int));
        assert_ne!(range.step.as_i64(), Some(0));
    }
}

fn touch_time(value: Value<'_>) {
    let datetime = value.datetime();
    if let Some(date) = value.date().or(datetime.map(|datetime| datetime.date)) {
        assert!((1..=9999).contains(&date.year) && (1..=12).contains(&date.month));
        assert!((1..=31).contains(&date.day));
        assert_eq!(date.to_string().len(), 10);
        assert!((-719_162..=2_932_896).contains(&date.unix_days()));
    }
    if let Some(time) = value.time().or(datetime.map(|datetime| datetime.time)) {
        assert!(time.hour < 24 && time.minute < 60 && time.second < 60);
        assert!(time.microsecond < 1_000_000);
        assert!(time.to_string().len() >= 8);
    }
    if let Some(datetime) = datetime {
        let _ = (
            datetime.unix_microseconds(),
            datetime.isoformat().to_string(),
        );
        assert_eq!(
            datetime.to_string().len(),
            datetime.isoformat().to_string().len()
        );
    }
    if let Some(timedelta) = value.timedelta() {
        assert!(timedelta.days.unsigned_abs() <= 999_999_999);
        assert!(timedelta.seconds < 86_400 && timedelta.microseconds < 1_000_000);
        let _ = (timedelta.to_duration(), timedelta.to_string());
    }
    if let Some(timezone) = value.timezone() {
        let offset = timezone.utc_offset().total_microseconds();
        assert!(offset.abs() < 86_400_000_000, "{value:?}");
        assert!(!timezone.to_string().is_empty() || timezone.name.is_some());
    }
}

fn touch_object(value: Value<'_>) {
    if let Some(path) = value.path() {
        assert_eq!(path.parts().len() == 0, path.to_string() == ".");
        let _ = path.class().name();
    }
    if let Some(exception) = value.exception() {
        assert!(exception.fields().len() <= exception.class().field_names().len());
        for (name, _) in exception.fields() {
            assert!(exception.field(name).is_some());
        }
        let _ = (
            exception.notes().count(),
            exception.errno(),
            exception.exceptions(),
        );
    }
    if let Some(deque) = value.deque()
        && let Some(maxlen) = deque.maxlen
    {
        assert!(deque.items.len() as u64 <= maxlen);
    }
    if let Some(global) = value.global() {
        let _ = (global.is_function(), global.exception_class());
    }
    if let Some(record) = value.record() {
        let _ = (
            record.origin(),
            record.framework(),
            record.state(),
            record.field("x"),
        );
    }
}

/// Elements of an array that are looked at; items of no bytes can be without number.
const ELEMENTS: u64 = 10_000;

fn touch_numpy(value: Value<'_>) {
    if let Some(dtype) = value.dtype() {
        assert!(!dtype.typestr().is_empty());
        let _ = (
            dtype.kind(),
            dtype.byte_order(),
            dtype.unit(),
            dtype.is_aligned(),
        );
        assert!(dtype.alignment() > 0);
        for field in dtype.fields().into_iter().flatten() {
            let end = u64::from(field.offset) + u64::from(field.dtype.itemsize());
            assert!(end <= u64::from(dtype.itemsize()), "{value:?}");
            assert!(!field.dtype.has_object() || dtype.has_object());
        }
        if let Some(subarray) = dtype.subarray() {
            let items: u64 = subarray.shape().product();
            let size = items * u64::from(subarray.base().itemsize());
            assert_eq!(size, u64::from(dtype.itemsize()));
        }
        let _ = dtype.field("x");
    }
    if let Some(scalar) = value.numpy_scalar() {
        let _ = (scalar.text(), scalar.value::<f64>(), scalar.value::<bool>());
        if let Some(data) = scalar.data() {
            assert_eq!(data.len() as u64, u64::from(scalar.dtype().itemsize()));
        }
        touch_array(scalar.array());
    }
    touch_array(value.ndarray());
}

fn touch_array(array: Option<Ndarray<'_>>) {
    let Some(array) = array else { return };
    let (len, itemsize) = (array.len(), u64::from(array.dtype().itemsize()));
    assert_eq!(array.shape().product::<u64>(), len);
    assert_eq!(array.is_empty(), len == 0);
    assert_eq!(array.data().is_some(), array.elements().is_some());
    assert_ne!(array.data().is_some(), array.items().is_some());
    let _ = array.order();
    if let Some(items) = array.items() {
        assert_eq!(items.len() as u64, len);
    }
    if let (Some(data), Some(ordered)) = (array.data(), array.row_first()) {
        assert_eq!(data.len() as u64, len * itemsize);
        assert_eq!(data.len(), ordered.len());
    }
    if let Some(elements) = array.elements()
        && len <= ELEMENTS
    {
        assert_eq!(elements.count() as u64, len);
        let floats = array.to_vec::<f64>();
        assert!(floats.is_none_or(|floats| floats.len() as u64 == len));
        let _ = (array.to_vec::<i32>(), array.to_vec::<bool>());
    }
}
