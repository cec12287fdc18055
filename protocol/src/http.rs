//! The short HTTP path: bodies of `/health` and `/call`, and the `Prefer` header.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::codec::{FieldError, Writer};
use crate::error::RemoteError;
use crate::ident::CallId;
use crate::message::{
    BadCall, CALL_FIELDS, Call, NotAMessage, parse_fields, read_call_id, read_error_field,
    write_result,
};
use crate::names::{PROTOCOL_VERSION, field};

/// Status codes of `POST /call`.
pub mod status {
    /// The outcome is in the body.
    pub const DONE: u16 = 200;
    /// The call runs on; its outcome comes over `/rpc`.
    pub const ACCEPTED: u16 = 202;
    /// The request is no acceptable call.
    pub const BAD_REQUEST: u16 = 400;
    /// The request is above the size limit.
    pub const TOO_LARGE: u16 = 413;
}

/// Body of `GET /health`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// Version of the runtime's own software; ignored where `protocol` is present.
    pub version: String,
    /// Version of the protocol, such as `1.0`; absent from runtimes before 1.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// What a host may expect from a runtime (AGX-VER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// States protocol 1.x: every guarantee holds, so a call may be sent again.
    V1,
    /// The Python implementation from 0.2.7: compatible, without the guarantees.
    Legacy,
}

/// A runtime that this host cannot talk to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Incompatible {
    /// Older than 0.2.7: it speaks on `/`, and calls would hang.
    #[error(
        "the runtime has version {version}, which is older than 0.2.7 and speaks another protocol; update the runtime"
    )]
    TooOld {
        /// The version it states.
        version: String,
    },
    /// A protocol that is not 1.x.
    #[error(
        "the runtime speaks protocol {protocol}, this host speaks {PROTOCOL_VERSION}; update the older of the two"
    )]
    Protocol {
        /// The protocol it states.
        protocol: String,
    },
}

impl Health {
    /// The answer of a healthy runtime of this crate's protocol version.
    #[must_use]
    pub fn healthy(version: &str) -> Self {
        Self {
            status: "ok".to_owned(),
            version: version.to_owned(),
            protocol: Some(PROTOCOL_VERSION.to_owned()),
        }
    }

    /// Decides whether a host can talk to this runtime, and with which guarantees.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] when it cannot.
    ///
    /// # Example
    ///
    /// ```
    /// use agentix_protocol::http::{Health, Peer};
    ///
    /// assert_eq!(Health::healthy("0.1.0").peer(), Ok(Peer::V1));
    /// let old = Health { status: "ok".into(), version: "0.2.6".into(), protocol: None };
    /// assert!(old.peer().is_err());
    /// ```
    pub fn peer(&self) -> Result<Peer, Incompatible> {
        if let Some(protocol) = &self.protocol {
            let major = protocol.split('.').next().unwrap_or_default();
            return if major == "1" {
                Ok(Peer::V1)
            } else {
                Err(Incompatible::Protocol {
                    protocol: protocol.clone(),
                })
            };
        }
        // A part that is no number, as in `0.2.7rc1`, counts by its leading digits.
        let number = |part: &str| -> u64 {
            let end = part
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(part.len());
            part[..end].parse().unwrap_or(0)
        };
        let mut parts = self.version.split('.').map(number);
        let version = [0; 3].map(|_: u64| parts.next().unwrap_or(0));
        if version >= [0, 2, 7] {
            Ok(Peer::Legacy)
        } else {
            Err(Incompatible::TooOld {
                version: self.version.clone(),
            })
        }
    }
}

/// Why a `POST /call` body is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadCallBody {
    /// The body is no map.
    #[error(transparent)]
    NotAMessage(#[from] NotAMessage),
    /// A field is missing or has another type.
    #[error("{}", .0.reason)]
    Call(BadCall),
}

/// Reads the body of `POST /call`.
///
/// # Errors
///
/// [`BadCallBody`]; answer with status 400 and `BadRequest`.
pub fn decode_call(body: &Bytes) -> Result<Call, BadCallBody> {
    Call::from_fields(&parse_fields(body, CALL_FIELDS)?).map_err(BadCallBody::Call)
}

/// The answer to `POST /call`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallReply {
    /// 200: the call ended.
    Done(Result<Bytes, RemoteError>),
    /// 202: it runs on.
    Accepted(CallId),
    /// 400: no acceptable call.
    BadRequest(RemoteError),
    /// 413: above the size limit.
    TooLarge(RemoteError),
}

/// An answer to `POST /call` that this protocol does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadCallReply {
    /// Another status.
    #[error("unexpected HTTP status {0}")]
    Status(u16),
    /// The body is no map.
    #[error(transparent)]
    NotAMessage(#[from] NotAMessage),
    /// A field is missing or has another type.
    #[error(transparent)]
    Field(#[from] FieldError),
}

const REPLY_FIELDS: &[&str] = &[field::OK, field::VALUE, field::ERROR, field::CALL_ID];

impl CallReply {
    /// HTTP status of this answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Done(_) => status::DONE,
            Self::Accepted(_) => status::ACCEPTED,
            Self::BadRequest(_) => status::BAD_REQUEST,
            Self::TooLarge(_) => status::TOO_LARGE,
        }
    }

    /// Body of this answer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let result = match self {
            Self::Accepted(id) => {
                let mut w = Writer::default();
                w.map(1);
                w.str(field::CALL_ID);
                w.str(id.as_str());
                return w.into_vec();
            }
            Self::Done(result) => result,
            Self::BadRequest(error) | Self::TooLarge(error) => &Err(error.clone()),
        };
        let mut w = Writer::with_capacity(result.as_ref().map_or(64, |value| value.len() + 32));
        w.map(2);
        w.str(field::OK);
        w.bool(result.is_ok());
        write_result(&mut w, result);
        w.into_vec()
    }

    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// [`BadCallReply`] when the status or the body is none of this protocol's.
    pub fn decode(status: u16, body: &Bytes) -> Result<Self, BadCallReply> {
        let fields = || parse_fields(body, REPLY_FIELDS);
        Ok(match status {
            status::DONE => {
                let fields = fields()?;
                Self::Done(if fields.bool(field::OK)? {
                    Ok(fields.bin(field::VALUE)?)
                } else {
                    Err(read_error_field(&fields)?)
                })
            }
            status::ACCEPTED => Self::Accepted(read_call_id(&fields()?)?),
            status::BAD_REQUEST => Self::BadRequest(read_error_field(&fields()?)?),
            status::TOO_LARGE => Self::TooLarge(read_error_field(&fields()?)?),
            other => return Err(BadCallReply::Status(other)),
        })
    }
}

/// The `Prefer` header of `POST /call`: how long the runtime waits before it answers 202.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use agentix_protocol::http::Prefer;
///
/// let prefer = Prefer { wait: Duration::from_millis(200) };
/// assert_eq!(prefer.to_string(), "respond-async, wait=0.2");
/// assert_eq!(Prefer::parse("Respond-Async; WAIT=\"2.0\"").applied(), "wait=2");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefer {
    /// How long to wait.
    pub wait: Duration,
}

impl Prefer {
    /// What a runtime waits when the header does not say, and what a host asks for by default:
    /// 1 s, long enough for most functions and short enough that a lost response costs little.
    pub const DEFAULT_WAIT: Duration = Duration::from_secs(1);
    /// The longest wait that a runtime grants: one hour. Longer ones are cut to it.
    pub const MAX_WAIT: Duration = Duration::from_secs(3600);

    /// Reads the header's value; whatever it does not say is the default.
    #[must_use]
    pub fn parse(header: &str) -> Self {
        let lower = header.to_ascii_lowercase();
        let mut rest = lower.as_str();
        let mut at_boundary = true;
        while !rest.is_empty() {
            if at_boundary && let Some(wait) = rest.strip_prefix("wait").and_then(parse_wait) {
                return Self { wait };
            }
            let mut chars = rest.chars();
            at_boundary = chars
                .next()
                .is_some_and(|c| matches!(c, ',' | ';') || c.is_ascii_whitespace());
            rest = chars.as_str();
        }
        Self {
            wait: Self::DEFAULT_WAIT,
        }
    }

    /// Value of the `preference-applied` header.
    #[must_use]
    pub fn applied(&self) -> String {
        format!("wait={}", self.wait.as_secs_f64())
    }
}

/// Reads what follows `wait`: `=` with or without blanks around it, an optional quotation mark,
/// digits and an optional fraction.
fn parse_wait(text: &str) -> Option<Duration> {
    let text = text
        .trim_ascii_start()
        .strip_prefix('=')?
        .trim_ascii_start();
    let text = text.strip_prefix('"').unwrap_or(text);
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let whole = digits(text);
    if whole == 0 {
        return None;
    }
    let fraction = text[whole..].strip_prefix('.').map_or(0, digits);
    let end = if fraction > 0 {
        whole + 1 + fraction
    } else {
        whole
    };
    let seconds: f64 = text[..end].parse().unwrap_or(f64::INFINITY);
    let wait = Duration::try_from_secs_f64(seconds).unwrap_or(Prefer::MAX_WAIT);
    Some(wait.min(Prefer::MAX_WAIT))
}

impl fmt::Display for Prefer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "respond-async, {}", self.applied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefer_takes_what_it_understands() {
        let wait = |header: &str| Prefer::parse(header).wait.as_secs_f64();
        assert_eq!(wait("respond-async, wait=0.25"), 0.25);
        assert_eq!(wait("wait=5"), 5.0);
        assert_eq!(wait("WAIT=\"5\""), 5.0);
        assert_eq!(wait("WAIT = 4"), 4.0);
        assert_eq!(wait("waiting=4, wait=2"), 2.0);
        assert_eq!(wait("wait=abc, wait=5"), 5.0);
        assert_eq!(wait("x-wait=5"), 1.0);
        assert_eq!(wait("wait=-1"), 1.0);
        assert_eq!(wait("wait=1e3"), 1.0);
        assert_eq!(wait("wait=3."), 3.0);
        assert_eq!(wait(""), 1.0);
        assert_eq!(wait("wait=0"), 0.0);
        assert_eq!(wait(&format!("wait={}", "9".repeat(400))), 3600.0);
        assert_eq!(Prefer::parse("wait=2.0").applied(), "wait=2");
    }

    #[test]
    fn peers() {
        let health = |version: &str, protocol: Option<&str>| Health {
            status: "ok".into(),
            version: version.into(),
            protocol: protocol.map(str::to_owned),
        };
        assert_eq!(health("0.0.1", Some("1.0")).peer(), Ok(Peer::V1));
        assert_eq!(health("0.0.1", Some("1.7")).peer(), Ok(Peer::V1));
        assert!(matches!(
            health("9.0", Some("2.0")).peer(),
            Err(Incompatible::Protocol { .. })
        ));
        assert_eq!(health("0.2.7", None).peer(), Ok(Peer::Legacy));
        assert_eq!(health("0.10.0", None).peer(), Ok(Peer::Legacy));
        assert_eq!(health("1.0", None).peer(), Ok(Peer::Legacy));
        assert!(matches!(
            health("0.2.6", None).peer(),
            Err(Incompatible::TooOld { .. })
        ));
        assert!(matches!(
            health("", None).peer(),
            Err(Incompatible::TooOld { .. })
        ));
    }
}
