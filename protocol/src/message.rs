//! The bodies of the protocol. Each has one type here, and one spelling for each edge in
//! [`event`](crate::event), [`frame`](crate::frame) and [`http`](crate::http).

use bytes::Bytes;

use crate::codec::{DecodeError, FieldError, FieldErrorKind, Fields, Writer};
use crate::error::{ErrorType, RemoteError};
use crate::ident::CallId;
use crate::names::field;

/// A request to run a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Names this execution for the life of the runtime.
    pub call_id: CallId,
    /// The target as it stands on the wire; the worker resolves it. Hosts write a
    /// [`CallTarget`](crate::target::CallTarget) here.
    pub callable: String,
    /// Pickled `(args tuple, kwargs dict)`.
    pub arguments: Bytes,
    /// Pickled context variables, when there are any.
    pub context: Option<Bytes>,
}

/// How a call ended. Each call has exactly one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The call.
    pub call_id: CallId,
    /// The pickled result, or the error.
    pub result: Result<Bytes, RemoteError>,
}

/// A message that is no acceptable `call`, with the id to answer to if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCall {
    /// The id, when that field is valid.
    pub call_id: Option<CallId>,
    /// Which rule is broken.
    pub reason: FieldError,
}

impl BadCall {
    /// The error to answer with.
    #[must_use]
    pub fn to_error(&self) -> RemoteError {
        RemoteError::bad_request(self.reason.to_string())
    }
}

/// Bytes that are no map at all, so that there is nobody to answer to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAMessage {
    /// The bytes break a rule of the codec.
    #[error("not msgpack: {0}")]
    Codec(#[from] DecodeError),
    /// The bytes are one value, which is no map.
    #[error("not a map")]
    NotAMap,
}

/// Fields of a call, in the order in which they are written.
pub(crate) const CALL_FIELDS: &[&str] = &[
    field::CALL_ID,
    field::CALLABLE,
    field::ARGUMENTS,
    field::CONTEXT,
];
/// Fields of an error map, in the order in which they are written.
pub(crate) const ERROR_FIELDS: &[&str] = &[
    field::TYPE,
    field::MESSAGE,
    field::TRACEBACK,
    field::CANCELLED,
    field::RETURNCODE,
];

pub(crate) fn parse_fields(payload: &Bytes, names: &[&'static str]) -> Result<Fields, NotAMessage> {
    Fields::parse(payload, names)?.ok_or(NotAMessage::NotAMap)
}

pub(crate) fn read_call_id(fields: &Fields) -> Result<CallId, FieldError> {
    CallId::new(fields.str(field::CALL_ID)?).map_err(|_| FieldError {
        field: field::CALL_ID,
        kind: FieldErrorKind::Value {
            expected: "1 to 128 bytes of UTF-8",
        },
    })
}

impl Call {
    /// Takes a call out of the fields of a `call` event, a `POST /call` body or a `call` frame.
    ///
    /// # Errors
    ///
    /// [`BadCall`] names the field that is missing or has another type.
    pub(crate) fn from_fields(fields: &Fields) -> Result<Self, BadCall> {
        let call_id = match read_call_id(fields) {
            Ok(id) => id,
            Err(reason) => {
                return Err(BadCall {
                    call_id: None,
                    reason,
                });
            }
        };
        let read = || -> Result<_, FieldError> {
            let callable = fields.str(field::CALLABLE)?.to_owned();
            let arguments = fields.bin(field::ARGUMENTS)?;
            let context = if fields.has(field::CONTEXT) {
                Some(fields.bin(field::CONTEXT)?)
            } else {
                None
            };
            Ok((callable, arguments, context))
        };
        match read() {
            Ok((callable, arguments, context)) => Ok(Self {
                call_id,
                callable,
                arguments,
                context,
            }),
            Err(reason) => Err(BadCall {
                call_id: Some(call_id),
                reason,
            }),
        }
    }

    /// Bytes of the message, about: for capacity and accounting.
    #[must_use]
    pub fn size_hint(&self) -> usize {
        let context = self.context.as_ref().map_or(0, Bytes::len);
        self.arguments.len() + context + self.callable.len() + self.call_id.as_str().len() + 64
    }

    /// Writes the payload of `call` on `/rpc`, which is also the body of `POST /call`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(self.size_hint());
        w.map(if self.context.is_some() { 4 } else { 3 });
        self.write_entries(&mut w);
        if let Some(context) = &self.context {
            w.str(field::CONTEXT);
            w.bin(context);
        }
        w.into_vec()
    }

    /// The entries that every spelling begins with.
    pub(crate) fn write_entries(&self, w: &mut Writer) {
        w.str(field::CALL_ID);
        w.str(self.call_id.as_str());
        w.str(field::CALLABLE);
        w.str(&self.callable);
        w.str(field::ARGUMENTS);
        w.bin(&self.arguments);
    }
}

impl Outcome {
    /// A call that returned; `value` is the pickled result.
    #[must_use]
    pub fn value(call_id: CallId, value: Bytes) -> Self {
        Self {
            call_id,
            result: Ok(value),
        }
    }

    /// A call that failed.
    #[must_use]
    pub fn error(call_id: CallId, error: RemoteError) -> Self {
        Self {
            call_id,
            result: Err(error),
        }
    }

    /// Bytes of the message, about: for capacity and accounting.
    #[must_use]
    pub fn size_hint(&self) -> usize {
        let body = match &self.result {
            Ok(value) => value.len(),
            Err(error) => {
                let traceback = error.traceback.as_ref().map_or(0, String::len);
                error.message.len() + traceback + error.error_type.as_str().len() + 96
            }
        };
        body + self.call_id.as_str().len() + 32
    }

    /// Writes the payload of `call:result` or `call:error`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(self.size_hint());
        w.map(2);
        self.write_entries(&mut w);
        w.into_vec()
    }

    pub(crate) fn write_entries(&self, w: &mut Writer) {
        w.str(field::CALL_ID);
        w.str(self.call_id.as_str());
        write_result(w, &self.result);
    }
}

/// Writes `value` or `error`.
pub(crate) fn write_result(w: &mut Writer, result: &Result<Bytes, RemoteError>) {
    match result {
        Ok(value) => {
            w.str(field::VALUE);
            w.bin(value);
        }
        Err(error) => {
            w.str(field::ERROR);
            write_error(w, error);
        }
    }
}

/// Writes an error map, always with its five keys.
pub(crate) fn write_error(w: &mut Writer, error: &RemoteError) {
    w.map(5);
    w.str(field::TYPE);
    w.str(error.error_type.as_str());
    w.str(field::MESSAGE);
    w.str(&error.message);
    w.str(field::TRACEBACK);
    match &error.traceback {
        Some(text) => w.str(text),
        None => w.nil(),
    }
    w.str(field::CANCELLED);
    w.bool(error.cancelled);
    w.str(field::RETURNCODE);
    match error.returncode {
        Some(code) => w.int(code),
        None => w.nil(),
    }
}

/// Reads `error` out of a message's fields.
pub(crate) fn read_error_field(fields: &Fields) -> Result<RemoteError, FieldError> {
    Ok(read_error(&fields.map(field::ERROR, ERROR_FIELDS)?))
}

/// Reads an error map. A missing key, a nil or another type stands for its default, so that no
/// peer can make an error unreadable.
fn read_error(fields: &Fields) -> RemoteError {
    let error_type = fields.str(field::TYPE).unwrap_or("Unknown");
    RemoteError {
        error_type: ErrorType::from(error_type),
        message: fields.str(field::MESSAGE).unwrap_or_default().to_owned(),
        traceback: fields.str(field::TRACEBACK).ok().map(str::to_owned),
        cancelled: fields.bool(field::CANCELLED).unwrap_or(false),
        returncode: fields.int(field::RETURNCODE).ok(),
    }
}
