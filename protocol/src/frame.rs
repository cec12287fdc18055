//! Frames between runtime and worker: tag and fields on one side, the same typed bodies on the
//! other.

use bytes::Bytes;

use crate::codec::{DecodeError, FieldError, Fields, Writer};
use crate::error::RemoteError;
use crate::ident::{CallId, InvalidNamespace, Namespace};
use crate::message::{
    BadCall, Call, Outcome, read_call_id, read_error_field, write_error, write_result,
};
use crate::names::{field, tag};

/// What a runtime sends to its worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToWorker {
    /// Run a function.
    Call(Call),
    /// Stop a call.
    Cancel(CallId),
    /// End orderly.
    Shutdown,
    /// A host sent an event on a side channel.
    SioInbound(PipeEvent),
}

/// What a worker sends to its runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromWorker {
    /// Calls may come.
    Ready,
    /// The worker cannot start.
    BootError(RemoteError),
    /// A call ended.
    Outcome(Outcome),
    /// A `call` without a valid id was refused; on the wire its id is the empty string
    /// (AGX-WRK-012).
    Rejected(RemoteError),
    /// This namespace has handlers now.
    SioOpen(Namespace),
    /// Send this event to the hosts.
    SioEmit(PipeEvent),
}

/// A side-channel event on the pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeEvent {
    /// Where.
    pub namespace: Namespace,
    /// Which.
    pub event: String,
    /// The payload: one msgpack value, relayed as it is.
    pub data: Bytes,
}

/// A frame that is lost, alone: the pipe goes on (AGX-PIPE).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadFrame {
    /// A frame of length 0 stands for an empty map: ignored without a word.
    #[error("an empty frame")]
    Empty,
    /// The body breaks a rule of the codec.
    #[error("the body is not msgpack: {0}")]
    Codec(#[from] DecodeError),
    /// The body is one value, which is no map.
    #[error("the body is not a map")]
    NotAMap,
    /// `type` is missing or no string.
    #[error(transparent)]
    Tag(FieldError),
    /// No such tag in this direction.
    #[error("unknown frame type {0:?}")]
    UnknownTag(String),
    /// A `call` to answer with `BadRequest`, where it has an id.
    #[error("bad call: {}", .0.reason)]
    Call(BadCall),
    /// A field of this frame is missing or has another type.
    #[error("frame {tag}: {reason}")]
    Field {
        /// The frame's tag.
        tag: &'static str,
        /// Which field.
        reason: FieldError,
        /// The call that the frame is about, when that field is valid.
        call_id: Option<CallId>,
    },
    /// The namespace is malformed.
    #[error("frame {tag}: {reason}")]
    Namespace {
        /// The frame's tag.
        tag: &'static str,
        /// Which rule.
        reason: InvalidNamespace,
    },
}

const FIELDS: &[&str] = &[
    field::TYPE,
    field::CALL_ID,
    field::CALLABLE,
    field::ARGUMENTS,
    field::CONTEXT,
    field::VALUE,
    field::ERROR,
    field::NAMESPACE,
    field::EVENT,
    field::DATA,
];

const NIL: &[u8] = &[0xc0];

fn parse(body: &Bytes) -> Result<Fields, BadFrame> {
    if body.is_empty() {
        return Err(BadFrame::Empty);
    }
    Fields::parse_relaying(body, FIELDS, &[field::DATA])?.ok_or(BadFrame::NotAMap)
}

fn read_namespace(tag: &'static str, fields: &Fields) -> Result<Namespace, BadFrame> {
    let name = fields
        .str(field::NAMESPACE)
        .map_err(|reason| BadFrame::Field {
            tag,
            reason,
            call_id: None,
        })?;
    Namespace::new(name).map_err(|reason| BadFrame::Namespace { tag, reason })
}

fn read_event(tag: &'static str, fields: &Fields) -> Result<PipeEvent, BadFrame> {
    let namespace = read_namespace(tag, fields)?;
    let event = fields
        .str(field::EVENT)
        .map_err(|reason| BadFrame::Field {
            tag,
            reason,
            call_id: None,
        })?
        .to_owned();
    let data = fields
        .raw(field::DATA)
        .cloned()
        .unwrap_or(Bytes::from_static(NIL));
    Ok(PipeEvent {
        namespace,
        event,
        data,
    })
}

fn head(entries: usize, tag: &str, capacity: usize) -> Writer {
    let mut w = Writer::with_capacity(capacity);
    w.map(entries + 1);
    w.str(field::TYPE);
    w.str(tag);
    w
}

fn event_frame(tag: &str, event: &PipeEvent) -> Vec<u8> {
    let size = event.data.len() + event.event.len() + event.namespace.as_str().len() + 64;
    let mut w = head(3, tag, size);
    w.str(field::NAMESPACE);
    w.str(event.namespace.as_str());
    w.str(field::EVENT);
    w.str(&event.event);
    w.str(field::DATA);
    w.raw(&event.data);
    w.into_vec()
}

impl ToWorker {
    /// Reads a frame's body.
    ///
    /// # Errors
    ///
    /// [`BadFrame`]: that frame is lost, the pipe goes on.
    pub fn decode(body: &Bytes) -> Result<Self, BadFrame> {
        let fields = parse(body)?;
        Ok(match fields.str(field::TYPE).map_err(BadFrame::Tag)? {
            tag::CALL => Self::Call(Call::from_fields(&fields).map_err(BadFrame::Call)?),
            tag::CANCEL => {
                Self::Cancel(read_call_id(&fields).map_err(|reason| BadFrame::Field {
                    tag: tag::CANCEL,
                    reason,
                    call_id: None,
                })?)
            }
            tag::SHUTDOWN => Self::Shutdown,
            tag::SIO_INBOUND => Self::SioInbound(read_event(tag::SIO_INBOUND, &fields)?),
            other => return Err(BadFrame::UnknownTag(other.to_owned())),
        })
    }

    /// Writes the frame's body, without its length.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Call(call) => {
                let mut w = head(4, tag::CALL, call.size_hint());
                call.write_entries(&mut w);
                w.str(field::CONTEXT);
                match &call.context {
                    Some(context) => w.bin(context),
                    None => w.nil(),
                }
                w.into_vec()
            }
            Self::Cancel(id) => {
                let mut w = head(1, tag::CANCEL, 0);
                w.str(field::CALL_ID);
                w.str(id.as_str());
                w.into_vec()
            }
            Self::Shutdown => head(0, tag::SHUTDOWN, 0).into_vec(),
            Self::SioInbound(event) => event_frame(tag::SIO_INBOUND, event),
        }
    }
}

impl FromWorker {
    /// Reads a frame's body.
    ///
    /// # Errors
    ///
    /// [`BadFrame`]: that frame is lost, the pipe goes on.
    pub fn decode(body: &Bytes) -> Result<Self, BadFrame> {
        let fields = parse(body)?;
        let outcome = |tag: &'static str| {
            let call_id = read_call_id(&fields).map_err(|reason| BadFrame::Field {
                tag,
                reason,
                call_id: None,
            })?;
            let result = if tag == tag::RESULT {
                fields.bin(field::VALUE).map(Ok)
            } else {
                read_error_field(&fields).map(Err)
            };
            match result {
                Ok(result) => Ok(Self::Outcome(Outcome { call_id, result })),
                Err(reason) => Err(BadFrame::Field {
                    tag,
                    reason,
                    call_id: Some(call_id),
                }),
            }
        };
        Ok(match fields.str(field::TYPE).map_err(BadFrame::Tag)? {
            tag::READY => Self::Ready,
            tag::BOOT_ERROR => {
                Self::BootError(read_error_field(&fields).map_err(|reason| BadFrame::Field {
                    tag: tag::BOOT_ERROR,
                    reason,
                    call_id: None,
                })?)
            }
            tag::RESULT => outcome(tag::RESULT)?,
            tag::ERROR if fields.str(field::CALL_ID) == Ok("") => {
                Self::Rejected(read_error_field(&fields).map_err(|reason| BadFrame::Field {
                    tag: tag::ERROR,
                    reason,
                    call_id: None,
                })?)
            }
            tag::ERROR => outcome(tag::ERROR)?,
            tag::SIO_OPEN => Self::SioOpen(read_namespace(tag::SIO_OPEN, &fields)?),
            tag::SIO_EMIT => Self::SioEmit(read_event(tag::SIO_EMIT, &fields)?),
            other => return Err(BadFrame::UnknownTag(other.to_owned())),
        })
    }

    /// Writes the frame's body, without its length.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ready => head(0, tag::READY, 0).into_vec(),
            Self::BootError(error) => {
                let mut w = head(1, tag::BOOT_ERROR, 0);
                w.str(field::ERROR);
                write_error(&mut w, error);
                w.into_vec()
            }
            Self::Outcome(outcome) => {
                let tag = if outcome.result.is_ok() {
                    tag::RESULT
                } else {
                    tag::ERROR
                };
                let mut w = head(2, tag, outcome.size_hint() + 16);
                w.str(field::CALL_ID);
                w.str(outcome.call_id.as_str());
                write_result(&mut w, &outcome.result);
                w.into_vec()
            }
            Self::Rejected(error) => {
                let mut w = head(2, tag::ERROR, 0);
                w.str(field::CALL_ID);
                w.str("");
                w.str(field::ERROR);
                write_error(&mut w, error);
                w.into_vec()
            }
            Self::SioOpen(namespace) => {
                let mut w = head(1, tag::SIO_OPEN, 0);
                w.str(field::NAMESPACE);
                w.str(namespace.as_str());
                w.into_vec()
            }
            Self::SioEmit(event) => event_frame(tag::SIO_EMIT, event),
        }
    }
}
