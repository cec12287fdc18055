//! Reading outcomes: what `call:result`, `call:error`, terminal frames and the bodies of `POST /call` say.

use agentix_protocol::codec::Value as Msgpack;

use crate::messages;
use crate::msgpack::{Msg, bin, map, text};
use crate::pickle;
use crate::verdict::{Verdict, check, equal_bytes, fail, shorten};

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// With a value, pickled.
    Value(Vec<u8>),
    /// With an error.
    Error(RemoteError),
}

/// An error map, read as tolerantly as AGX-RPC-041 has it: cases that judge its form compare bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RemoteError {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) traceback: Option<String>,
    pub(crate) cancelled: bool,
    pub(crate) returncode: Option<i64>,
}

/// A terminal message: which call, how it ended, and its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    pub(crate) call_id: String,
    pub(crate) outcome: Outcome,
    pub(crate) bytes: Vec<u8>,
}

impl Terminal {
    /// Reads the payload of `call:result` or `call:error`, or the body of a `result` or `error` frame.
    pub(crate) fn read(is_value: bool, bytes: &[u8]) -> Verdict<Self> {
        let message = decode(bytes)?;
        let Some(call_id) = message.field("call_id").and_then(Msgpack::as_str) else {
            return fail(
                "AGX-RPC-001",
                "a str `call_id` in an outcome",
                shorten(bytes),
            );
        };
        Ok(Self {
            call_id: call_id.to_owned(),
            outcome: Outcome::read(is_value, &message, bytes)?,
            bytes: bytes.to_vec(),
        })
    }
}

fn decode(bytes: &[u8]) -> Verdict<Msgpack<'_>> {
    match Msgpack::decode(bytes) {
        Ok(message @ Msgpack::Map(_)) => Ok(message),
        Ok(_) => fail("AGX-RPC-001", "a map", shorten(bytes)),
        Err(error) => fail(
            "AGX-RPC-001",
            "msgpack",
            format_args!("{error}: {}", shorten(bytes)),
        ),
    }
}

impl Outcome {
    fn read(is_value: bool, message: &Msgpack<'_>, bytes: &[u8]) -> Verdict<Self> {
        if is_value {
            return match message.field("value").and_then(Msgpack::as_bin) {
                Some(value) => Ok(Self::Value(value.to_vec())),
                None => fail("AGX-RPC-030", "a bin `value`", shorten(bytes)),
            };
        }
        match message.field("error") {
            Some(error @ Msgpack::Map(_)) => Ok(Self::Error(RemoteError::read(error))),
            _ => fail("AGX-RPC-040", "a map `error`", shorten(bytes)),
        }
    }

    /// Reads the body of a 200, 400 or 413 of `POST /call`.
    pub(crate) fn read_http(bytes: &[u8]) -> Verdict<Self> {
        let message = decode(bytes)?;
        match message.field("ok").and_then(Msgpack::as_bool) {
            Some(ok) => Self::read(ok, &message, bytes),
            None => fail("AGX-HTTP-020", "a bool `ok` in the body", shorten(bytes)),
        }
    }

    /// Ends the case unless this is a value, and gives it unpickled.
    pub(crate) fn value(self, requirement: &'static str) -> Verdict<pickle::Value> {
        match self {
            Self::Value(bytes) => match pickle::Value::load(&bytes) {
                Ok(value) => Ok(value),
                Err(reason) => fail(
                    requirement,
                    "a pickle of a plain value",
                    format_args!("{reason}: {}", shorten(&bytes)),
                ),
            },
            Self::Error(error) => fail(requirement, "a value", format_args!("{error:?}")),
        }
    }

    /// Ends the case unless this is that value.
    pub(crate) fn is(self, requirement: &'static str, expected: &pickle::Value) -> Verdict {
        let value = self.value(requirement)?;
        check(
            value == *expected,
            requirement,
            format_args!("the value {expected:?}"),
            format_args!("{value:?}"),
        )
    }

    /// Ends the case unless this is an error.
    pub(crate) fn error(self, requirement: &'static str) -> Verdict<RemoteError> {
        match self {
            Self::Error(error) => Ok(error),
            Self::Value(bytes) => fail(
                requirement,
                "an error",
                format_args!("a value: {}", shorten(&bytes)),
            ),
        }
    }

    /// Ends the case unless this is an error of that type.
    pub(crate) fn error_of(self, requirement: &'static str, kind: &str) -> Verdict<RemoteError> {
        let error = self.error(requirement)?;
        check(
            error.kind == kind,
            requirement,
            format_args!("an error of type {kind}"),
            format_args!("{error:?}"),
        )?;
        Ok(error)
    }

    /// Ends the case unless this is an error of that type that was not cancelled.
    pub(crate) fn plain_error_of(
        self,
        requirement: &'static str,
        kind: &str,
    ) -> Verdict<RemoteError> {
        let error = self.error_of(requirement, kind)?;
        check(
            !error.cancelled,
            requirement,
            "`cancelled` false: nobody cancelled the call",
            format_args!("{error:?}"),
        )?;
        Ok(error)
    }

    /// Ends the case unless this is `Cancelled`, with `cancelled` true.
    pub(crate) fn cancelled(self, requirement: &'static str) -> Verdict {
        let error = self.error_of(requirement, "Cancelled")?;
        check(
            error.cancelled,
            requirement,
            "`cancelled` true",
            format_args!("{error:?}"),
        )
    }
}

impl RemoteError {
    fn read(error: &Msgpack<'_>) -> Self {
        let string = |key| {
            error
                .field(key)
                .and_then(Msgpack::as_str)
                .map(str::to_owned)
        };
        Self {
            kind: string("type").unwrap_or_else(|| "Unknown".to_owned()),
            message: string("message").unwrap_or_default(),
            traceback: string("traceback"),
            cancelled: error
                .field("cancelled")
                .and_then(Msgpack::as_bool)
                .unwrap_or(false),
            returncode: error.field("returncode").and_then(Msgpack::as_i64),
        }
    }

    /// This error as the specification writes it.
    pub(crate) fn message(&self) -> Msg {
        messages::error(
            &self.kind,
            &self.message,
            self.traceback.as_deref(),
            self.cancelled,
            self.returncode,
        )
    }
}

/// Ends the case unless the payload of an outcome has exactly the bytes that the specification gives it: its keys, in
/// order, in their shortest form.
pub(crate) fn exact_payload(terminal: &Terminal) -> Verdict {
    let (requirement, expected) = match &terminal.outcome {
        Outcome::Value(value) => ("AGX-COD-001", messages::result(&terminal.call_id, value)),
        Outcome::Error(error) => (
            "AGX-RPC-040",
            map([
                ("call_id", text(&terminal.call_id)),
                ("error", error.message()),
            ])
            .bytes(),
        ),
    };
    equal_bytes(requirement, "payload", &expected, &terminal.bytes)
}

/// The same for a terminal frame.
pub(crate) fn exact_frame(terminal: &Terminal) -> Verdict {
    let (requirement, expected) = match &terminal.outcome {
        Outcome::Value(value) => (
            "AGX-PIPE-020",
            messages::frame::result(&terminal.call_id, value),
        ),
        Outcome::Error(error) => (
            "AGX-RPC-040",
            messages::frame::error(&terminal.call_id, error.message()),
        ),
    };
    equal_bytes(requirement, "frame", &expected, &terminal.bytes)
}

/// The same for the body of a 200, 400 or 413.
pub(crate) fn exact_body(outcome: &Outcome, body: &[u8]) -> Verdict {
    let (requirement, expected) = match outcome {
        Outcome::Value(value) => (
            "AGX-HTTP-020",
            map([("ok", Msg::Bool(true)), ("value", bin(value))]),
        ),
        Outcome::Error(error) => (
            "AGX-RPC-040",
            map([("ok", Msg::Bool(false)), ("error", error.message())]),
        ),
    };
    equal_bytes(requirement, "body", &expected.bytes(), body)
}
