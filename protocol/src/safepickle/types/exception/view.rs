//! Exceptions as a reader sees them.

use std::fmt::{self, Write};

use super::class::Layout;
use super::{ExceptionClass, ExceptionData};
use crate::safepickle::arena::NodeId;
use crate::safepickle::builder::{BuildError, Builder};
use crate::safepickle::object::Object;
use crate::safepickle::value::{Entries, Items, Kind, Text, Value};

/// An exception of the builtins.
///
/// Python sets some fields by the arguments: `OSError(2, "No such file", "a")` is a
/// `FileNotFoundError` with the file name as a field.
///
/// ```
/// use agentix_protocol::safepickle::{self, ExceptionClass};
/// // pickle.dumps(OSError(2, "No such file", "/a"), 4), memo entries left out
/// let stream = b"\x80\x04\x8c\x08builtins\x8c\x11FileNotFoundError\x93\
///     K\x02\x8c\x0cNo such file\x8c\x02/a\x87R.";
/// let document = safepickle::decode(stream)?;
/// let error = document.root().exception().unwrap();
/// assert_eq!(error.class(), ExceptionClass::FileNotFoundError);
/// assert!(error.class().is_subclass_of(ExceptionClass::OSError));
/// assert_eq!(error.errno(), Some(2));
/// assert_eq!(error.field("filename").and_then(|name| name.as_str()), Some("/a"));
/// assert_eq!(error.args().len(), 2);
/// assert_eq!(error.to_string(), "[Errno 2] No such file: '/a'");
/// # Ok::<(), safepickle::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Exception<'d> {
    value: Value<'d>,
    data: &'d ExceptionData,
}

impl<'d> Value<'d> {
    /// An exception of the builtins.
    pub fn exception(self) -> Option<Exception<'d>> {
        match self.arena().object(self.id()) {
            Some(Object::Exception(data)) => Some(Exception { value: self, data }),
            _ => None,
        }
    }
}

impl<'d> Exception<'d> {
    /// Its class.
    pub fn class(self) -> ExceptionClass {
        self.data.class
    }

    /// `args`.
    pub fn args(self) -> Items<'d> {
        self.value.items_of(self.data.args)
    }

    /// What its class keeps apart from arguments and attributes, by name. A field that Python leaves
    /// out until it is set (`characters_written`) is not there then; others are None.
    pub fn fields(self) -> impl ExactSizeIterator<Item = (&'static str, Value<'d>)> + use<'d> {
        let names = self.data.class.field_names().iter().copied();
        let value = self.value;
        let fields = value.arena().children(self.data.fields).iter();
        names.zip(fields.map(move |id| value.at(*id)))
    }

    /// The field of a name.
    pub fn field(self, name: &str) -> Option<Value<'d>> {
        self.fields()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }

    /// The instance attributes, if there are any: whatever its state holds that is no field.
    pub fn attrs(self) -> Option<Entries<'d>> {
        self.value.attrs()
    }

    /// The notes that were added to it (`__notes__`), where they are strs.
    pub fn notes(self) -> impl Iterator<Item = Text<'d>> + use<'d> {
        let notes = self.attrs().and_then(|attrs| attrs.value("__notes__"));
        let items = notes.and_then(|notes| notes.list().or_else(|| notes.tuple()));
        items
            .into_iter()
            .flat_map(|items| items.iter())
            .filter_map(Value::as_text)
    }

    /// The error number of an OSError, if it is an int.
    pub fn errno(self) -> Option<i64> {
        match self.data.class.layout() {
            Layout::OsError => self.field("errno")?.as_i64(),
            _ => None,
        }
    }

    /// What a group holds.
    pub fn exceptions(self) -> Option<Items<'d>> {
        match self.data.class.layout() {
            Layout::Group => self.field("exceptions")?.tuple(),
            _ => None,
        }
    }
}

impl Builder {
    /// An exception, as a call of its class with arguments makes it: with the class and the fields that
    /// Python gives it for them. [`Builder::build`] with a dict sets fields and attributes.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if Python refuses the arguments.
    pub fn exception(
        &mut self,
        class: ExceptionClass,
        args: &[NodeId],
    ) -> Result<NodeId, BuildError> {
        let class = self.global("builtins", class.name())?;
        self.call(class, args)
    }
}

/// The message in the manner of Python's `str`, a bounded amount of it. Values in it that are no strs
/// are printed as by `Debug` of [`Value`].
impl fmt::Display for Exception<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = |name| self.field(name).filter(|value| !value.is_none());
        match self.class().layout() {
            Layout::OsError => match (field("errno"), field("strerror"), field("filename")) {
                (errno, strerror, Some(filename)) => {
                    f.write_str("[Errno ")?;
                    shown(errno, f)?;
                    f.write_str("] ")?;
                    shown(strerror, f)?;
                    write!(f, ": {filename:?}")?;
                    match field("filename2") {
                        Some(filename2) => write!(f, " -> {filename2:?}"),
                        None => Ok(()),
                    }
                }
                (Some(errno), Some(strerror), None) => {
                    f.write_str("[Errno ")?;
                    shown(Some(errno), f)?;
                    f.write_str("] ")?;
                    shown(Some(strerror), f)
                }
                _ => self.args_shown(f),
            },
            Layout::ImportError => match field("msg") {
                Some(msg) if msg.kind() == Kind::Str => shown(Some(msg), f),
                _ => self.args_shown(f),
            },
            Layout::SyntaxError => {
                shown(field("msg"), f)?;
                let file = field("filename").and_then(Value::as_text);
                let file = file.map(|file| file.to_string_lossy());
                let file = file.as_deref().and_then(|file| file.rsplit('/').next());
                match (file, field("lineno").and_then(Value::as_i64)) {
                    (Some(file), Some(line)) => write!(f, " ({file}, line {line})"),
                    (Some(file), None) => write!(f, " ({file})"),
                    (None, Some(line)) => write!(f, " (line {line})"),
                    (None, None) => Ok(()),
                }
            }
            Layout::UnicodeEncode | Layout::UnicodeDecode | Layout::UnicodeTranslate => {
                self.unicode_shown(f)
            }
            Layout::Group => {
                shown(field("message"), f)?;
                let count = self.exceptions().map_or(0, |nested| nested.len());
                let s = if count == 1 { "" } else { "s" };
                write!(f, " ({count} sub-exception{s})")
            }
            _ => self.args_shown(f),
        }
    }
}

impl Exception<'_> {
    fn unicode_shown(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(encoding) = self.field("encoding") {
            f.write_char('\'')?;
            shown(Some(encoding), f)?;
            f.write_str("' codec ")?;
        }
        let (verb, noun) = match self.class().layout() {
            Layout::UnicodeEncode => ("encode", "character"),
            Layout::UnicodeDecode => ("decode", "byte"),
            _ => ("translate", "character"),
        };
        write!(f, "can't {verb} {noun}")?;
        let position = |name| self.field(name).and_then(Value::as_i64).unwrap_or_default();
        let (start, end) = (position("start"), position("end"));
        let at = usize::try_from(start)
            .ok()
            .filter(|_| Some(end) == start.checked_add(1));
        let object = self.field("object");
        let point = at.and_then(|at| match object?.as_bytes() {
            Some(bytes) => bytes.get(at).map(|byte| u32::from(*byte)),
            None => object?.as_text()?.code_points().nth(at),
        });
        match point {
            Some(byte) if noun == "byte" => write!(f, " 0x{byte:02x} in position {start}: ")?,
            Some(point) if point < 0x100 => write!(f, " '\\x{point:02x}' in position {start}: ")?,
            Some(point) if point < 0x1_0000 => {
                write!(f, " '\\u{point:04x}' in position {start}: ")?;
            }
            Some(point) => write!(f, " '\\U{point:08x}' in position {start}: ")?,
            None => write!(f, "s in position {start}-{}: ", end.saturating_sub(1))?,
        }
        shown(self.field("reason"), f)
    }

    fn args_shown(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args = self.args();
        match args.len() {
            0 => Ok(()),
            1 if self.class() != ExceptionClass::KeyError => shown(args.at(0), f),
            1 => match args.at(0) {
                Some(key) => write!(f, "{key:?}"),
                None => Ok(()),
            },
            _ => write!(f, "{:?}", self.value.at(self.data.args)),
        }
    }
}

/// A value in a message: a str as it is.
fn shown(value: Option<Value<'_>>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        None => f.write_str("None"),
        Some(value) => match value.as_text() {
            Some(text) => f.write_str(&text.to_string_lossy()),
            None => write!(f, "{value:?}"),
        },
    }
}
