//! Printing in the manner of Python's `repr`, bounded and without recursion.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::arena::{Node, NodeId};
use super::object::{MapClass, Object};
use super::types::record::{Origin, RecordData};
use super::value::{Global, Text, Value};

/// Objects printed at most; what follows is left out with a count of dots.
const MAX_OBJECTS: usize = 1000;
/// Code points of one str, or bytes of one bytes object, printed at most.
const MAX_CONTENT: usize = 1000;

/// What is left to print, the next last.
enum Task<'d> {
    Text(Cow<'static, str>),
    Value(NodeId),
    Items(Items<'d>),
    /// Everything in an object is printed.
    Leave,
}

/// Items with commas between them, or keys and values with colons as well.
struct Items<'d> {
    rest: &'d [NodeId],
    pairs: bool,
    first: bool,
    /// A value is due after a key.
    value_due: bool,
}

struct Printer<'d, 'f, 'g> {
    root: Value<'d>,
    out: &'f mut fmt::Formatter<'g>,
    tasks: Vec<Task<'d>>,
    /// What is being printed, the innermost last.
    open: Vec<NodeId>,
}

/// Prints at most [`MAX_OBJECTS`] objects of `value`.
pub(super) fn print(value: Value<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut printer = Printer {
        root: value,
        out: f,
        tasks: vec![Task::Value(value.id())],
        open: Vec::new(),
    };
    let mut printed = 0;
    while let Some(task) = printer.tasks.pop() {
        match task {
            Task::Text(text) => printer.out.write_str(&text)?,
            Task::Leave => {
                printer.open.pop();
            }
            Task::Items(items) => printer.next_item(items)?,
            Task::Value(_) if printed == MAX_OBJECTS => return printer.out.write_str("…"),
            Task::Value(id) => {
                printed += 1;
                if printer.open.contains(&id) {
                    printer.out.write_str("<cycle>")?;
                } else {
                    printer.value(id)?;
                }
            }
        }
    }
    Ok(())
}

/// What an object is printed as: text, parts and items in turn.
type Form<'d> = Vec<Task<'d>>;

fn text<'d>(text: impl Into<Cow<'static, str>>) -> Task<'d> {
    Task::Text(text.into())
}

impl<'d> Printer<'d, '_, '_> {
    fn next_item(&mut self, mut items: Items<'d>) -> fmt::Result {
        let Some((next, rest)) = items.rest.split_first() else {
            return Ok(());
        };
        self.out.write_str(match (items.value_due, items.first) {
            (true, _) => ": ",
            (false, true) => "",
            (false, false) => ", ",
        })?;
        items.first = false;
        items.value_due = items.pairs && !items.value_due;
        items.rest = rest;
        self.tasks.push(Task::Items(items));
        self.tasks.push(Task::Value(*next));
        Ok(())
    }

    fn value(&mut self, id: NodeId) -> fmt::Result {
        let value = self.root.at(id);
        if leaf(value, self.out)? {
            return Ok(());
        }
        self.open.push(id);
        self.tasks.push(Task::Leave);
        let form = self.form(id);
        self.tasks.extend(form.into_iter().rev());
        Ok(())
    }

    fn items(&self, of: NodeId) -> Task<'d> {
        let arena = self.root.arena();
        Task::Items(Items {
            rest: arena.children(of),
            pairs: matches!(arena.node(of), Node::Dict(_)),
            first: true,
            value_due: false,
        })
    }

    /// The form of what holds something, or could.
    fn form(&self, id: NodeId) -> Form<'d> {
        let arena = self.root.arena();
        let around =
            |open: &'static str, close: &'static str| vec![text(open), self.items(id), text(close)];
        match arena.node(id) {
            Node::List(_) => around("[", "]"),
            Node::Tuple(span) if span.len == 1 => around("(", ",)"),
            Node::Tuple(_) => around("(", ")"),
            Node::Dict(_) => around("{", "}"),
            Node::Set(span) if span.len == 0 => around("set(", ")"),
            Node::Set(_) => around("{", "}"),
            Node::Frozenset(span) if span.len == 0 => around("frozenset(", ")"),
            Node::Frozenset(_) => around("frozenset({", "})"),
            Node::Range(span) => match arena.span(span) {
                [start, stop, step] if matches!(arena.node(*step), Node::Int(1)) => vec![
                    text("range("),
                    Task::Value(*start),
                    text(", "),
                    Task::Value(*stop),
                    text(")"),
                ],
                _ => around("range(", ")"),
            },
            Node::Slice(_) => around("slice(", ")"),
            Node::Time { raw, tzinfo } => {
                let (clock, fold) = clock(raw);
                let mut form = vec![text("datetime.time("), text(clock)];
                zone(&mut form, tzinfo);
                form.push(text(if fold { ", fold=1)" } else { ")" }));
                form
            }
            Node::Datetime { raw, tzinfo } => {
                let [y0, y1, month, day, rest @ ..] = raw;
                let (clock, _) = clock(rest);
                let mut form = vec![
                    text("datetime.datetime("),
                    text(format!(
                        "{}, {}, {day}, {clock}",
                        u16::from_be_bytes([y0, y1]),
                        month & 0x7f
                    )),
                ];
                if month & 0x80 != 0 {
                    form.push(text(", fold=1"));
                }
                zone(&mut form, tzinfo);
                form.push(text(")"));
                form
            }
            Node::Timezone { offset, name } => {
                if name.is_none() && is_zero(arena.node(offset)) {
                    return vec![text("datetime.timezone.utc")];
                }
                let mut form = vec![text("datetime.timezone("), Task::Value(offset)];
                if let Some(name) = name {
                    form.extend([text(", "), Task::Value(name)]);
                }
                form.push(text(")"));
                form
            }
            Node::Fraction {
                numerator,
                denominator,
            } => vec![
                text("Fraction("),
                Task::Value(numerator),
                text(", "),
                Task::Value(denominator),
                text(")"),
            ],
            Node::Path { class, parts } => {
                let length = |id: &NodeId| self.root.at(*id).as_text().map_or(0, Text::len_bytes);
                let parts = arena.span(parts);
                if parts.len() < MAX_OBJECTS
                    && parts.iter().map(length).sum::<usize>() <= MAX_CONTENT
                {
                    let joined = self.root.at(id).path().map(|path| path.to_string());
                    let joined = joined.unwrap_or_default();
                    let quoted = format!("{:?}", Text::new(joined.as_bytes(), false));
                    return vec![text(class.name()), text("("), text(quoted), text(")")];
                }
                vec![text(class.name()), text("("), self.items(id), text(")")]
            }
            Node::Object(index) => self.object_form(id, &arena.objects[index as usize]),
            _ => vec![text(format!("<{}>", arena.kind(id)))],
        }
    }

    fn object_form(&self, id: NodeId, object: &Object) -> Form<'d> {
        match object {
            Object::Map {
                class,
                dict,
                factory,
                ..
            } => {
                let empty = self.root.arena().children(*dict).is_empty();
                let (open, close) = if empty { ("", "") } else { ("{", "}") };
                match class {
                    MapClass::OrderedDict => vec![
                        text("OrderedDict("),
                        text(open),
                        self.items(*dict),
                        text(close),
                        text(")"),
                    ],
                    MapClass::Counter => vec![
                        text("Counter("),
                        text(open),
                        self.items(*dict),
                        text(close),
                        text(")"),
                    ],
                    MapClass::DefaultDict => vec![
                        text("defaultdict("),
                        factory.map_or(text("None"), Task::Value),
                        text(", {"),
                        self.items(*dict),
                        text("})"),
                    ],
                }
            }
            Object::Deque { list, maxlen } => {
                let close = match maxlen {
                    Some(maxlen) => format!("], maxlen={maxlen})"),
                    None => "])".to_owned(),
                };
                vec![text("deque(["), self.items(*list), text(close)]
            }
            Object::Exception(exception) => vec![
                text(exception.class.name()),
                text("("),
                self.items(exception.args),
                text(")"),
            ],
            Object::Record(record) => self.record_form(record),
            Object::Dtype(_) | Object::Ndarray(_) | Object::NumpyScalar(_) => self.numpy_form(id),
        }
    }

    /// What a dtype is; and of an array its shape and dtype, with the items if they are objects.
    fn numpy_form(&self, id: NodeId) -> Form<'d> {
        let value = self.root.at(id);
        if let Some(dtype) = value.dtype() {
            return vec![text(format!("dtype('{}')", dtype.typestr()))];
        }
        if let Some(scalar) = value.numpy_scalar() {
            return vec![text(format!("<scalar of {}>", scalar.dtype().typestr()))];
        }
        let Some(array) = value.ndarray() else {
            return vec![text("<ndarray>")];
        };
        let shape: Vec<String> = array.shape().map(|size| size.to_string()).collect();
        let shape = format!(
            "<ndarray ({}) of {}",
            shape.join(", "),
            array.dtype().typestr()
        );
        let mut form = vec![text(shape)];
        if let Some(items) = array.objects() {
            form.extend([text(": "), self.items(items)]);
        }
        form.push(text(">"));
        form
    }

    fn record_form(&self, record: &RecordData) -> Form<'d> {
        let mut form = match record.origin {
            Origin::Call | Origin::New => vec![text("<record ")],
            Origin::State => vec![text("<state of ")],
            Origin::PersistentId => vec![text("<persistent id ")],
            Origin::Extension => vec![text("<extension ")],
            Origin::Buffer => vec![text("<buffer")],
        };
        if let Some(class) = record.class {
            form.push(match self.root.at(class).global() {
                Some(global) => text(name(global)),
                None => Task::Value(class),
            });
        }
        let arena = self.root.arena();
        match record.origin {
            Origin::Call | Origin::New => {
                let kwargs = record.kwargs.filter(|id| !arena.children(*id).is_empty());
                let args = !arena.children(record.args).is_empty();
                if args || kwargs.is_some() || record.origin == Origin::Call {
                    form.extend([text("("), self.items(record.args)]);
                    if let Some(kwargs) = kwargs {
                        form.extend([
                            text(if args { ", **{" } else { "**{" }),
                            self.items(kwargs),
                            text("}"),
                        ]);
                    }
                    form.push(text(")"));
                }
            }
            _ => form.push(self.items(record.args)),
        }
        if let Some(list) = record.list {
            form.extend([text(" items=["), self.items(list), text("]")]);
        }
        if let Some(dict) = record.dict {
            form.extend([text(" entries={"), self.items(dict), text("}")]);
        }
        match (record.attrs, record.states) {
            (Some(attrs), _) => form.extend([text(" {"), self.items(attrs), text("}")]),
            (None, Some(states)) => form.extend([text(" state="), self.items(states)]),
            (None, None) => {}
        }
        form.push(text(">"));
        form
    }
}

/// Module and name of a class or function, not more of each than of a str.
fn name(global: Global<'_>) -> String {
    let [module, qualname] = [global.module(), global.qualname()].map(|text| {
        let mut points = text.code_points();
        let mut shown: String = points
            .by_ref()
            .take(MAX_CONTENT)
            .map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER))
            .flat_map(char::escape_debug)
            .collect();
        if points.next().is_some() {
            shown.push('…');
        }
        shown
    });
    format!("{module}.{qualname}")
}

fn zone(form: &mut Form<'_>, tzinfo: Option<NodeId>) {
    if let Some(tzinfo) = tzinfo {
        form.extend([text(", tzinfo="), Task::Value(tzinfo)]);
    }
}

fn is_zero(node: Node) -> bool {
    matches!(
        node,
        Node::Timedelta {
            days: 0,
            seconds: 0,
            microseconds: 0
        }
    )
}

/// Hour and minute, and the rest as far as it is not zero; and the fold that the hour holds.
fn clock([hour, minute, second, us @ ..]: [u8; 6]) -> (String, bool) {
    let [u0, u1, u2] = us;
    let microsecond = u32::from_be_bytes([0, u0, u1, u2]);
    let mut clock = format!("{}, {minute}", hour & 0x7f);
    if second != 0 || microsecond != 0 {
        clock += &format!(", {second}");
    }
    if microsecond != 0 {
        clock += &format!(", {microsecond}");
    }
    (clock, hour & 0x80 != 0)
}

/// Prints what holds nothing; false if it is of a kind that could.
fn leaf(value: Value<'_>, f: &mut fmt::Formatter<'_>) -> Result<bool, fmt::Error> {
    let arena = value.arena();
    match value.node() {
        Node::None => f.write_str("None"),
        Node::Bool(true) => f.write_str("True"),
        Node::Bool(false) => f.write_str("False"),
        Node::Int(int) => write!(f, "{int}"),
        Node::BigInt(index) => {
            let int = &arena.big_ints[index as usize];
            // Decimal takes quadratic time.
            if int.bits() > 4096 {
                write!(f, "<int of {} bits>", int.bits())
            } else {
                write!(f, "{int}")
            }
        }
        Node::Float(float) => f.write_str(&float_repr(float)),
        Node::Complex(index) => f.write_str(&complex_repr(arena.complexes[index as usize])),
        Node::Str(bytes) => {
            print_text(Text::new(value.raw_bytes(bytes), bytes.flags.surrogates), f)
        }
        Node::Bytes(bytes) => print_bytes(value.raw_bytes(bytes), f),
        Node::Bytearray(bytes) => {
            f.write_str("bytearray(")?;
            print_bytes(value.raw_bytes(bytes), f)?;
            f.write_str(")")
        }
        Node::Date([y0, y1, month, day]) => {
            write!(
                f,
                "datetime.date({}, {month}, {day})",
                u16::from_be_bytes([y0, y1])
            )
        }
        Node::Timedelta {
            days,
            seconds,
            microseconds,
        } => {
            let parts = [
                ("days", i64::from(days)),
                ("seconds", seconds.into()),
                ("microseconds", microseconds.into()),
            ];
            let parts: Vec<_> = parts
                .iter()
                .filter(|(_, count)| *count != 0)
                .map(|(unit, count)| format!("{unit}={count}"))
                .collect();
            match parts.as_slice() {
                [] => f.write_str("datetime.timedelta(0)"),
                parts => write!(f, "datetime.timedelta({})", parts.join(", ")),
            }
        }
        Node::Decimal(_) => match value.decimal() {
            Some(decimal) if decimal.digits().len() > MAX_CONTENT => {
                write!(f, "<Decimal of {} digits>", decimal.digits().len())
            }
            Some(decimal) => write!(f, "Decimal('{decimal}')"),
            None => Ok(()),
        },
        Node::Uuid(index) => write!(f, "UUID('{}')", arena.uuids[index as usize]),
        Node::Global(_) => match value.global() {
            Some(global) if !global.is_known() => write!(f, "<global {}>", name(global)),
            Some(global) if global.is_function() => write!(f, "<function {}>", name(global)),
            Some(global) => write!(f, "<class {}>", name(global)),
            None => Ok(()),
        },
        _ => return Ok(false),
    }?;
    Ok(true)
}

/// A float as Python's `repr` has it: the shortest digits that give it back.
pub(super) fn float_repr(float: f64) -> String {
    let text = float_digits(float);
    if text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-')
    {
        text + ".0"
    } else {
        text
    }
}

/// [`float_repr`], but without `.0` at the end.
fn float_digits(float: f64) -> String {
    if float.is_nan() {
        return "nan".into();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{float:e}");
    // Rust writes every float with an exponent in this form.
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        format!("{float}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
    }
}

fn complex_repr([re, im]: [f64; 2]) -> String {
    let imaginary = float_digits(im);
    if re == 0.0 && re.is_sign_positive() {
        return format!("{imaginary}j");
    }
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    format!("({}{sign}{imaginary}j)", float_digits(re))
}

/// Prints a str in quotes.
pub(super) fn print_text(text: Text<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('\'')?;
    let mut points = text.code_points();
    for point in points.by_ref().take(MAX_CONTENT) {
        match char::from_u32(point) {
            Some('\'') => f.write_str("\\'")?,
            Some('"') => f.write_char('"')?,
            Some(char) => write!(f, "{}", char.escape_debug())?,
            None => write!(f, "\\u{point:04x}")?,
        }
    }
    f.write_char('\'')?;
    if points.next().is_some() {
        f.write_char('…')
    } else {
        Ok(())
    }
}

fn print_bytes(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let shown = &bytes[..bytes.len().min(MAX_CONTENT)];
    write!(f, "b'{}'", shown.escape_ascii())?;
    if shown.len() < bytes.len() {
        f.write_char('…')
    } else {
        Ok(())
    }
}
