//! Classes of the user's own, as types of the user's own.

use serde::Deserialize;

use super::de::from_value;
use super::de_error::{DeserializeError, DeserializeErrorKind, PathSegment};
use super::de_kinds::found;
use super::policy::Policy;
use super::types::record::Record;
use super::value::Value;

/// A Python class that a type of yours stands for.
///
/// [`Policy::allow_type`] admits the class, and [`Value::to`] makes the type of what was decoded. For a
/// class that is no more than its attributes, `#[derive(Deserialize)]` and [`from_value`] do as well.
///
/// ```
/// use agentix_protocol::safepickle::{
///     Decoder, DeserializeError, FromRecord, Limits, Policy, Record,
/// };
///
/// /// In Python: a class `Circle` of the module `shapes`, with attributes `center` and `radius`.
/// #[derive(Debug, PartialEq)]
/// struct Circle { center: (f64, f64), area: f64 }
///
/// impl FromRecord for Circle {
///     const MODULE: &'static str = "shapes";
///     const QUALNAME: &'static str = "Circle";
///
///     fn from_record(record: Record<'_>) -> Result<Self, DeserializeError> {
///         let radius: f64 = record.field_as("radius")?;
///         Ok(Self { center: record.field_as("center")?, area: 3.0 * radius * radius })
///     }
/// }
///
/// let decoder = Decoder::new(Policy::agentix().allow_type::<Circle>(), Limits::default());
/// // What pickle.dumps(Circle(...)) writes, memo entries left out.
/// let stream = b"\x80\x04\x8c\x06shapes\x8c\x06Circle\x93)\x81}\
///     (\x8c\x06centerK\x01K\x02\x86\x8c\x06radiusK\x03ub.";
/// let document = decoder.decode(stream)?;
/// let circle = document.root().to::<Circle>()?;
/// assert_eq!(circle, Circle { center: (1.0, 2.0), area: 27.0 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FromRecord: Sized {
    /// The module of the class, as a pickle names it.
    const MODULE: &'static str;
    /// The name of the class inside its module: `Outer.Inner` for a class inside a class.
    const QUALNAME: &'static str;

    /// Makes the type of an object of the class. Its arguments, states and attributes are what the
    /// sender chose to write: anything may be missing or of another type.
    ///
    /// # Errors
    ///
    /// What is wrong, and where. [`Record::field_as`] and [`from_value`] say both; for errors of your
    /// own there is `serde::de::Error::custom`.
    fn from_record(record: Record<'_>) -> Result<Self, DeserializeError>;
}

impl Policy {
    /// Admits the class that a type stands for; see [`FromRecord`].
    #[must_use]
    pub fn allow_type<T: FromRecord>(self) -> Self {
        self.allow(T::MODULE, T::QUALNAME)
    }
}

impl<'d> Value<'d> {
    /// Makes a type of yours of an object of its class.
    ///
    /// # Errors
    ///
    /// [`DeserializeErrorKind::Mismatch`] if this is no record of the class; otherwise what
    /// [`FromRecord::from_record`] says.
    pub fn to<T: FromRecord>(self) -> Result<T, DeserializeError> {
        match self.record() {
            Some(record) if record.is_of(T::MODULE, T::QUALNAME) => T::from_record(record),
            _ => {
                let expected = format!("{}.{}", T::MODULE, T::QUALNAME);
                Err(DeserializeError::mismatch(&expected, &found(self)))
            }
        }
    }
}

impl<'d> Record<'d> {
    /// Whether its class is the one of this name.
    pub fn is_of(self, module: &str, qualname: &str) -> bool {
        self.class().and_then(Value::global).is_some_and(|class| {
            let names = [class.module(), class.qualname()];
            names.map(|name| name.as_generalised_utf8()) == [module, qualname].map(str::as_bytes)
        })
    }

    /// The instance attribute of a name, as a type of yours; see [`from_value`].
    ///
    /// # Errors
    ///
    /// [`DeserializeErrorKind::MissingField`] if there is no such attribute; otherwise as for
    /// [`from_value`].
    pub fn field_as<T: Deserialize<'d>>(self, name: &'static str) -> Result<T, DeserializeError> {
        let field = self
            .field(name)
            .ok_or(DeserializeErrorKind::MissingField(name))?;
        from_value(field).map_err(|error| error.within(PathSegment::Key(format!("{name:?}"))))
    }
}
