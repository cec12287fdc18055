//! What can go wrong, split by when: connecting, staying connected, calling.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use agentix_protocol::error::RemoteError;
use agentix_protocol::http::Incompatible;
use agentix_protocol::ident::Namespace;
use agentix_protocol::packet::PacketError;
use agentix_protocol::safepickle::{DecodeError, DeserializeError, EncodeError};
use agentix_protocol::target::InvalidTarget;

use crate::url::RuntimeUrl;

/// Why there is no connection to a runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is not one of a runtime.
    #[error("{url:?} is no URL of a runtime: {reason}")]
    InvalidUrl {
        /// The URL.
        url: String,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// The URL asks for TLS, which this host does not speak.
    #[error(
        "{url}: TLS is not supported; use http:// over a network you trust, or a local proxy that speaks TLS"
    )]
    TlsUnsupported {
        /// The URL.
        url: String,
    },
    /// Nothing answers there.
    #[error("cannot reach the runtime at {url}: {source}")]
    Unreachable {
        /// Where.
        url: RuntimeUrl,
        /// What the operating system said.
        source: io::Error,
    },
    /// Something answers there, and it is not a runtime.
    #[error("{url} is not an Agentix runtime: {found}")]
    NotARuntime {
        /// Where.
        url: RuntimeUrl,
        /// What it did instead.
        found: Stranger,
    },
    /// A runtime of another version of the protocol.
    #[error("{url}: {source}")]
    Incompatible {
        /// Where.
        url: RuntimeUrl,
        /// Which of the two is too old.
        source: Incompatible,
    },
    /// The connection broke before, or right after, it was made.
    #[error("the connection to the runtime at {url} is lost: {source}")]
    Lost {
        /// Where.
        url: RuntimeUrl,
        /// Why.
        source: LinkError,
    },
    /// The runtime refused a namespace.
    #[error("the runtime at {url} refused to let this host join {namespace}: {message}")]
    NamespaceRefused {
        /// Where.
        url: RuntimeUrl,
        /// Which namespace.
        namespace: Namespace,
        /// What it said.
        message: String,
    },
    /// It took too long.
    #[error("the runtime at {url} did not complete the connection within {after:?}")]
    Timeout {
        /// Where.
        url: RuntimeUrl,
        /// The limit.
        after: Duration,
    },
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

/// What a server did that a runtime does not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stranger {
    /// Its answer to `GET /health` is not HTTP.
    #[error("its answer to GET /health is not HTTP ({0})")]
    NotHttp(String),
    /// It answered `GET /health` with another status than 200.
    #[error("it answers GET /health with status {0}")]
    HealthStatus(u16),
    /// The body of its `/health` is none of this protocol's.
    #[error("the body of its /health cannot be read ({0})")]
    HealthBody(String),
    /// It did not switch to a WebSocket at `/socket.io/`.
    #[error("it does not open a WebSocket at /socket.io/ ({0})")]
    NoWebSocket(String),
    /// The first message on the WebSocket does not open an Engine.IO session.
    #[error("it does not speak Engine.IO: its first message opens no session")]
    NoEngine,
}

/// Why a connection ended, or had to be ended.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The operating system reports an error.
    #[error("{0}")]
    Io(#[source] Arc<io::Error>),
    /// The peer broke the rules of WebSocket.
    #[error("the peer broke the WebSocket protocol: {0}")]
    WebSocket(String),
    /// The peer broke the rules of Engine.IO or Socket.IO.
    #[error("the peer sent a malformed packet: {0}")]
    Packet(#[from] PacketError),
    /// A packet that has no place here.
    #[error("the peer sent {0} out of turn")]
    OutOfTurn(&'static str),
    /// A message above the limit.
    #[error("the peer sent a message of {len} bytes or more, the limit is {limit}")]
    TooLarge {
        /// Its length in bytes, as far as it is known.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// More than this host is ready to hold for the peer.
    #[error("the peer sends faster than it reads")]
    Flood,
    /// Nothing came for the time of a ping and its answer (AGX-CON-074).
    #[error("nothing has arrived for {after:?}")]
    Silent {
        /// Ping interval and timeout together.
        after: Duration,
    },
    /// The peer closed the WebSocket.
    #[error("the peer closed the connection with code {code}{}{reason}", if .reason.is_empty() { "" } else { ": " })]
    Closed {
        /// The close code; 1005 when it gave none.
        code: u16,
        /// Its reason; often empty.
        reason: String,
    },
    /// The connection ended in the middle.
    #[error("the peer ended the connection without closing it")]
    Ended,
    /// The peer closed the Engine.IO session, or dropped this host from `/rpc`.
    #[error("the peer ended the session")]
    Left,
}

impl From<tokio_websockets::Error> for LinkError {
    fn from(error: tokio_websockets::Error) -> Self {
        match error {
            tokio_websockets::Error::Io(error) => Self::Io(Arc::new(error)),
            tokio_websockets::Error::PayloadTooLong { len, max_len } => Self::TooLarge {
                len,
                limit: max_len,
            },
            tokio_websockets::Error::AlreadyClosed => Self::Ended,
            other => Self::WebSocket(other.to_string()),
        }
    }
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The sandbox answered with an error: the function raised, the call was cancelled, the worker
    /// died. [`RemoteError::traceback`] has the remote traceback where there is one.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The target breaks a rule; nothing was sent.
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    /// The arguments have no pickled form; nothing was sent.
    #[error("the arguments cannot be encoded: {0}")]
    Encode(#[from] EncodeError),
    /// The call is above the limit; nothing was sent (AGX-CALL-076).
    #[error(
        "the call takes {len} bytes, more than the limit of {limit}; pass large data by another way"
    )]
    PayloadTooLarge {
        /// Bytes of the message.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The function returned, and the restricted decoder refuses the value: it names a class that
    /// is not admitted, breaks the format, or exceeds a limit. This is final: the runtime has
    /// been told that the outcome arrived, and a repeat would be a new call (AGX-CALL-025).
    #[error("the result is refused: {0}")]
    Decode(#[from] DecodeError),
    /// The function returned, and the value is not of the declared type. As final as
    /// [`CallError::Decode`].
    #[error("the result is not of the declared type: {0}")]
    Type(#[from] DeserializeError),
    /// The runtime sent an outcome that breaks the protocol.
    #[error("the runtime sent a malformed outcome: {reason}")]
    Malformed {
        /// Which field.
        reason: String,
    },
    /// The connection is lost and is not made again. Whether the function ran is not known.
    #[error("the call has no outcome, and whether it ran is not known: {source}")]
    Disconnected {
        /// Why the last attempt to connect failed; where reconnects are off, why the connection
        /// was lost.
        source: Arc<ConnectError>,
    },
    /// The client was closed before the call ended; the call was cancelled.
    #[error("the client was closed before the call ended")]
    Closed,
    /// The call took longer than [`ClientConfig::call_deadline`](crate::ClientConfig), and was
    /// cancelled.
    #[error("the call has not ended within {after:?} and was cancelled")]
    DeadlineExceeded {
        /// The limit.
        after: Duration,
    },
    /// The operating system gave no random bits for the id of the call; nothing was sent.
    #[error("no random bits for the id of the call: {0}")]
    Entropy(String),
}
