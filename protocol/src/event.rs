//! Socket.IO events on `/rpc`: event name and payload on one side, typed bodies on the other.

use bytes::Bytes;

use crate::codec::{FieldError, Fields, Writer};
use crate::error::RemoteError;
use crate::ident::CallId;
use crate::message::{
    self, BadCall, Call, NotAMessage, Outcome, parse_fields, read_call_id, write_result,
};
use crate::names::{event, field};

/// What a host sends on `/rpc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// Run a function.
    Call(Call),
    /// Stop a call.
    Cancel(CallId),
    /// Send these outcomes again.
    Resume(Vec<CallId>),
    /// This outcome was consumed.
    Ack(CallId),
}

/// What a runtime sends on `/rpc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeEvent {
    /// A call ended.
    Outcome(Outcome),
    /// A `call` without a valid id was refused; on the wire its id is the empty string.
    Rejected(RemoteError),
}

/// An event that is no acceptable [`HostEvent`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHostEvent {
    /// No such event: ignored.
    #[error("unknown event")]
    Unknown,
    /// The payload is no map: ignored.
    #[error(transparent)]
    NotAMessage(#[from] NotAMessage),
    /// A `call` to answer with `BadRequest`.
    #[error("bad call: {}", .0.reason)]
    Call(BadCall),
    /// A field of another event is missing or has another type: ignored.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// An event that is no acceptable [`RuntimeEvent`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRuntimeEvent {
    /// No such event: ignored.
    #[error("unknown event")]
    Unknown,
    /// The payload is no map.
    #[error(transparent)]
    NotAMessage(#[from] NotAMessage),
    /// The id is missing or not valid.
    #[error(transparent)]
    CallId(FieldError),
    /// The id is valid and another field is not: that call has to end all the same.
    #[error("call {call_id}: {reason}")]
    Outcome {
        /// The call.
        call_id: CallId,
        /// Which field.
        reason: FieldError,
    },
}

impl HostEvent {
    /// Reads an event.
    ///
    /// # Errors
    ///
    /// [`BadHostEvent`] says whether to ignore it or to answer.
    pub fn decode(name: &str, payload: &Bytes) -> Result<Self, BadHostEvent> {
        Ok(match name {
            event::CALL => Self::Call(
                Call::from_fields(&parse_fields(payload, message::CALL_FIELDS)?)
                    .map_err(BadHostEvent::Call)?,
            ),
            event::CANCEL => Self::Cancel(single_id(payload)?),
            event::ACK => Self::Ack(single_id(payload)?),
            event::RESUME => {
                let fields = parse_fields(payload, &[field::CALL_IDS])?;
                let ids = fields.strings(field::CALL_IDS);
                // Strings that no call can have name nothing.
                Self::Resume(
                    ids.into_iter()
                        .filter_map(|id| CallId::new(id).ok())
                        .collect(),
                )
            }
            _ => return Err(BadHostEvent::Unknown),
        })
    }

    /// Event name on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Call(_) => event::CALL,
            Self::Cancel(_) => event::CANCEL,
            Self::Resume(_) => event::RESUME,
            Self::Ack(_) => event::ACK,
        }
    }

    /// Payload on the wire.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        match self {
            Self::Call(call) => call.encode(),
            Self::Cancel(id) | Self::Ack(id) => {
                let mut w = Writer::default();
                w.map(1);
                w.str(field::CALL_ID);
                w.str(id.as_str());
                w.into_vec()
            }
            Self::Resume(ids) => {
                let mut w = Writer::default();
                w.map(1);
                w.str(field::CALL_IDS);
                w.array(ids.len());
                for id in ids {
                    w.str(id.as_str());
                }
                w.into_vec()
            }
        }
    }
}

fn single_id(payload: &Bytes) -> Result<CallId, BadHostEvent> {
    Ok(read_call_id(&parse_fields(payload, &[field::CALL_ID])?)?)
}

const OUTCOME_FIELDS: &[&str] = &[field::CALL_ID, field::VALUE, field::ERROR];

impl RuntimeEvent {
    /// Reads an event.
    ///
    /// # Errors
    ///
    /// [`BadRuntimeEvent`] says what is wrong, and with which call where that can be told.
    pub fn decode(name: &str, payload: &Bytes) -> Result<Self, BadRuntimeEvent> {
        let is_result = match name {
            event::CALL_RESULT => true,
            event::CALL_ERROR => false,
            _ => return Err(BadRuntimeEvent::Unknown),
        };
        let fields = parse_fields(payload, OUTCOME_FIELDS)?;
        let read = |fields: &Fields| {
            if is_result {
                fields.bin(field::VALUE).map(Ok)
            } else {
                message::read_error_field(fields).map(Err)
            }
        };
        if !is_result && fields.str(field::CALL_ID) == Ok("") {
            let error = message::read_error_field(&fields).map_err(BadRuntimeEvent::CallId)?;
            return Ok(Self::Rejected(error));
        }
        let call_id = read_call_id(&fields).map_err(BadRuntimeEvent::CallId)?;
        match read(&fields) {
            Ok(result) => Ok(Self::Outcome(Outcome { call_id, result })),
            Err(reason) => Err(BadRuntimeEvent::Outcome { call_id, reason }),
        }
    }

    /// Event name on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Outcome(Outcome { result: Ok(_), .. }) => event::CALL_RESULT,
            Self::Outcome(Outcome { result: Err(_), .. }) | Self::Rejected(_) => event::CALL_ERROR,
        }
    }

    /// Payload on the wire.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        match self {
            Self::Outcome(outcome) => outcome.encode(),
            Self::Rejected(error) => {
                let mut w = Writer::default();
                w.map(2);
                w.str(field::CALL_ID);
                w.str("");
                write_result(&mut w, &Err(error.clone()));
                w.into_vec()
            }
        }
    }
}
