//! Values and names in one line of text, bounded.

use std::fmt::{self, Write as _};

use agentix_protocol::safepickle::numpy::{ArrayOrder, Dtype, Ndarray};
use agentix_protocol::safepickle::{Kind, Origin, Text, Value};

use super::stream::Name;
use crate::json::numpy::{Number, number};
use crate::terminal::is_hidden;

/// Bits of the longest int that is written in decimal, about 4,300 digits: more takes quadratic time.
pub(super) const DECIMAL_BITS: u64 = 14_285;

/// What a value is, without its parts.
pub(super) fn head(value: Value<'_>, content: usize) -> String {
    let count = |len: usize, one: &str, many: &str| match len {
        1 => format!("{}, 1 {one}", value.kind()),
        _ => format!("{}, {len} {many}", value.kind()),
    };
    let items = |len| count(len, "item", "items");
    if let Some(text) = value.as_text() {
        return quoted(text, content);
    }
    if let Some(bytes) = value.as_bytes() {
        return shown_bytes(bytes, content);
    }
    if let Some(bytes) = value.as_bytearray() {
        return format!("bytearray {}", shown_bytes(bytes, content));
    }
    if let Some(int) = value.as_big_int() {
        return if int.bits() > DECIMAL_BITS.min((content as u64).saturating_mul(3)) {
            let hex = cut(&format!("{:#x}", *int), content);
            format!("int of {} bits, {hex}", int.bits())
        } else {
            int.to_string()
        };
    }
    if let Some(entries) = value.entries() {
        return match (value.kind(), entries.len()) {
            (Kind::Dict, 0) => "{}".to_owned(),
            (_, len) => count(len, "entry", "entries"),
        };
    }
    if let Some(deque) = value.deque() {
        let items = items(deque.items.len());
        return match deque.maxlen {
            Some(maxlen) => format!("{items}, maxlen {maxlen}"),
            None => items,
        };
    }
    if let Some(global) = value.global() {
        let what = if global.is_function() {
            "function"
        } else {
            "class or function"
        };
        return format!("{what} {}", global_name(value, content));
    }
    if let Some(exception) = value.exception() {
        return format!("exception {}", exception.class().name());
    }
    if let Some(dtype) = value.dtype() {
        return format!("dtype {}", dtype_name(dtype));
    }
    if let Some(array) = value.ndarray() {
        return ndarray(array, content);
    }
    if let Some(scalar) = value.numpy_scalar() {
        let dtype = scalar.dtype();
        let shown = match (scalar.data(), scalar.text()) {
            (_, Some(text)) => format!(", '{}'", cut(&text, content).escape_default()),
            (Some(data), _) => format!(", {}", element(dtype, data, content)),
            _ => String::new(),
        };
        return format!("scalar of dtype {}{shown}", dtype_name(dtype));
    }
    match value.kind() {
        Kind::List => value
            .list()
            .map_or_else(String::new, |list| match list.len() {
                0 => "[]".to_owned(),
                len => items(len),
            }),
        Kind::Tuple => value
            .tuple()
            .map_or_else(String::new, |tuple| match tuple.len() {
                0 => "()".to_owned(),
                len => items(len),
            }),
        Kind::Set => value.set().map_or_else(String::new, |set| items(set.len())),
        Kind::Frozenset => value
            .frozenset()
            .map_or_else(String::new, |set| items(set.len())),
        Kind::Slice => "slice".to_owned(),
        Kind::Record => record(value, content),
        _ => printed(value, content),
    }
}

fn dtype_name(dtype: Dtype<'_>) -> String {
    match (dtype.fields(), dtype.subarray()) {
        (Some(fields), _) => format!("of {} bytes, {} fields", dtype.itemsize(), fields.len()),
        (_, Some(subarray)) => format!(
            "of {} bytes, shape {}",
            dtype.itemsize(),
            shape(subarray.shape())
        ),
        _ => dtype.typestr(),
    }
}

fn shape(dimensions: impl Iterator<Item = u64>) -> String {
    let dimensions: Vec<_> = dimensions.map(|dimension| dimension.to_string()).collect();
    format!("[{}]", dimensions.join(", "))
}

/// Shape, dtype and the first elements, unless they are objects.
fn ndarray(array: Ndarray<'_>, content: usize) -> String {
    let dtype = array.dtype();
    let order = match array.order() {
        ArrayOrder::RowFirst => "",
        ArrayOrder::ColumnFirst => ", stored column first",
        _ => ", stored in another order",
    };
    let shape = shape(array.shape());
    let mut out = format!("ndarray, shape {shape}{order}, dtype {}", dtype_name(dtype));
    let Some(elements) = array.elements() else {
        return out;
    };
    let start = out.len();
    for (at, bytes) in elements.enumerate() {
        if out.len() - start >= content {
            out.push_str(&format!(" … ({} more elements)", array.len() - at as u64));
            break;
        }
        out.push_str(if at == 0 { ": " } else { " " });
        out.push_str(&element(dtype, bytes, content));
    }
    out
}

/// An element of an array: a number where it is one, else its bytes.
fn element(dtype: Dtype<'_>, bytes: &[u8], content: usize) -> String {
    match number(dtype, bytes) {
        Some(Number::Bool(true)) => "True".to_owned(),
        Some(Number::Bool(false)) => "False".to_owned(),
        Some(Number::Int(int)) => int.to_string(),
        Some(Number::Uint(int)) => int.to_string(),
        Some(Number::Single(float)) => format!("{float:?}"),
        Some(Number::Double(float)) => format!("{float:?}"),
        None => shown_bytes(bytes, content),
    }
}

fn record(value: Value<'_>, content: usize) -> String {
    let Some(record) = value.record() else {
        return String::new();
    };
    let what = match record.origin() {
        Origin::Call => "call of",
        Origin::New if record.framework().is_some() => "record",
        Origin::New => "object of",
        Origin::State => return "state given to what takes none".to_owned(),
        Origin::PersistentId => return "persistent id".to_owned(),
        Origin::Extension => return "extension code".to_owned(),
        Origin::Buffer => return "out-of-band buffer".to_owned(),
        _ => "record of",
    };
    match record.class() {
        Some(class) if class.global().is_some() => {
            format!("{what} {}", global_name(class, content))
        }
        _ => format!("{what} an object"),
    }
}

fn global_name(value: Value<'_>, content: usize) -> String {
    value.global().map_or_else(String::new, |global| {
        dotted(
            &readable(global.module(), content.saturating_mul(10)),
            &readable(global.qualname(), content.saturating_mul(10)),
        )
    })
}

/// A text with surrogates as escapes, as events have it.
pub(super) fn readable(text: Text<'_>, most: usize) -> String {
    let mut out = String::new();
    for (at, point) in text.code_points().enumerate() {
        if at == most {
            out.push('…');
            break;
        }
        match char::from_u32(point) {
            Some(c) => out.push(c),
            None => out.push_str(&format!("\\u{point:04x}")),
        }
    }
    out
}

/// A name as it is shown: `module.qualname`, in quotes where that could be misread.
pub(super) fn name(name: &Name, content: usize) -> String {
    let most = content.saturating_mul(10);
    dotted(&cut(&name.module, most), &cut(&name.qualname, most))
}

fn dotted(module: &str, qualname: &str) -> String {
    if is_plain(module) && is_plain(qualname) {
        return format!("{module}.{qualname}");
    }
    // What is not ASCII may look like what it is not.
    let quoted = |text: &str| format!("'{}'", text.escape_default());
    format!("{}.{}", quoted(module), quoted(qualname))
}

/// Whether a name can stand without quotes.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

/// Whether a shell takes a word as it is.
pub(super) fn is_shell_safe(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-'))
}

/// A str in quotes, cut after `most` code points.
pub(super) fn quoted(text: Text<'_>, most: usize) -> String {
    let mut out = String::from("'");
    let mut points = text.code_points();
    for point in points.by_ref().take(most) {
        match char::from_u32(point) {
            Some('\'') => out.push_str("\\'"),
            Some('\\') => out.push_str("\\\\"),
            Some(c) if is_hidden(c) => out.extend(c.escape_default()),
            Some(c) => out.push(c),
            None => out.push_str(&format!("\\u{point:04x}")),
        }
    }
    out.push('\'');
    match points.count() {
        0 => out,
        left => format!("{out}… ({left} more characters)"),
    }
}

/// Bytes in quotes, cut after `most`.
pub(super) fn shown_bytes(bytes: &[u8], most: usize) -> String {
    let shown = &bytes[..bytes.len().min(most)];
    let quoted = format!("b'{}'", shown.escape_ascii());
    match bytes.len() - shown.len() {
        0 => quoted,
        left => format!("{quoted}… ({left} more bytes)"),
    }
}

/// The beginning of a text.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A value as the decoder prints it.
fn printed(value: Value<'_>, content: usize) -> String {
    let mut out = Bounded {
        text: String::new(),
        left: content,
    };
    // An error means that the bound was reached.
    let whole = write!(out, "{value:?}").is_ok();
    if !whole {
        out.text.push('…');
    }
    out.text
}

/// Text that takes so many characters and no more.
struct Bounded {
    text: String,
    left: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(c);
        }
        Ok(())
    }
}
