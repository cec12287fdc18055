//! Printing in the manner of Python's `repr`, bounded and without recursion.

use std::fmt::{self, Write};

use super::arena::{Node, NodeId};
use super::value::{Text, Value};

/// Objects printed at most; what follows is left out with a count of dots.
const MAX_OBJECTS: usize = 1000;
/// Code points of one str, or bytes of one bytes object, printed at most.
const MAX_CONTENT: usize = 1000;

struct Open<'d> {
    id: NodeId,
    rest: &'d [NodeId],
    close: &'static str,
    /// Whether items come in pairs.
    dict: bool,
    first: bool,
    /// A value is due after a key.
    value_due: bool,
}

/// Prints at most [`MAX_OBJECTS`] objects of `value`.
pub(super) fn print(value: Value<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut printed = 0;
    let mut current = Some(value);
    loop {
        if let Some(value) = current.take() {
            if printed == MAX_OBJECTS {
                return f.write_str("…");
            }
            printed += 1;
            if open.iter().any(|container| container.id == value.id()) {
                f.write_str("<cycle>")?;
            } else if let Some((start, close)) = brackets(value) {
                let dict = matches!(value.node(), Node::Dict(_));
                f.write_str(start)?;
                let rest = value.arena().children(value.id());
                open.push(Open {
                    id: value.id(),
                    rest,
                    close,
                    dict,
                    first: true,
                    value_due: false,
                });
            } else {
                leaf(value, f)?;
            }
        }
        let Some(container) = open.last_mut() else {
            return Ok(());
        };
        let Some((next, rest)) = container.rest.split_first() else {
            f.write_str(container.close)?;
            open.pop();
            continue;
        };
        f.write_str(match (container.value_due, container.first) {
            (true, _) => ": ",
            (false, true) => "",
            (false, false) => ", ",
        })?;
        container.first = false;
        container.value_due = container.dict && !container.value_due;
        container.rest = rest;
        current = Some(value.at(*next));
    }
}

fn brackets(value: Value<'_>) -> Option<(&'static str, &'static str)> {
    Some(match value.node() {
        Node::List(_) => ("[", "]"),
        Node::Tuple(span) if span.len == 1 => ("(", ",)"),
        Node::Tuple(_) => ("(", ")"),
        Node::Dict(_) => ("{", "}"),
        Node::Set(span) if span.len == 0 => ("set(", ")"),
        Node::Set(_) => ("{", "}"),
        Node::Frozenset(span) if span.len == 0 => ("frozenset(", ")"),
        Node::Frozenset(_) => ("frozenset({", "})"),
        _ => return None,
    })
}

fn leaf(value: Value<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value.node() {
        Node::None => f.write_str("None"),
        Node::Bool(true) => f.write_str("True"),
        Node::Bool(false) => f.write_str("False"),
        Node::Int(int) => write!(f, "{int}"),
        Node::BigInt(index) => {
            let int = &value.arena().big_ints[index as usize];
            // Decimal takes quadratic time.
            if int.bits() > 4096 {
                write!(f, "<int of {} bits>", int.bits())
            } else {
                write!(f, "{int}")
            }
        }
        Node::Float(float) => float_repr(float, f),
        Node::Str(bytes) => {
            print_text(Text::new(value.raw_bytes(bytes), bytes.flags.surrogates), f)
        }
        Node::Bytes(bytes) => print_bytes(value.raw_bytes(bytes), f),
        Node::Bytearray(bytes) => {
            f.write_str("bytearray(")?;
            print_bytes(value.raw_bytes(bytes), f)?;
            f.write_str(")")
        }
        _ => write!(f, "<{}>", value.kind()),
    }
}

fn float_repr(float: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if float.is_nan() {
        f.write_str("nan")
    } else if float.is_infinite() {
        f.write_str(if float > 0.0 { "inf" } else { "-inf" })
    } else {
        write!(f, "{float:?}")
    }
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
