//! Engine.IO 4 and Socket.IO 5 packets: text and attachments on one side, typed packets on the
//! other.

mod assemble;
mod engine;
mod socket;

pub use assemble::{Assembler, Event, Incoming, Payload};
pub use engine::{EnginePacket, Handshake, PollingItem, join_polling, split_polling};
pub use socket::SocketPacket;

/// Longest text of one Socket.IO packet that is parsed, in bytes: 1 MiB. Payloads travel as
/// attachments, so a longer header is no honest one; plain JSON events fit as well.
pub const MAX_HEADER_BYTES: usize = 1024 * 1024;

/// Why a peer's packet is refused. The connection cannot be followed any further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// An empty packet.
    #[error("an empty packet")]
    Empty,
    /// No such packet type.
    #[error("unknown packet type {0:?}")]
    Type(char),
    /// The text is longer than [`MAX_HEADER_BYTES`].
    #[error("a packet header of {0} bytes, more than {MAX_HEADER_BYTES}")]
    HeaderTooLong(usize),
    /// A number in the header is malformed.
    #[error("a malformed number in the packet header")]
    Number,
    /// The namespace is malformed.
    #[error(transparent)]
    Namespace(#[from] crate::ident::InvalidNamespace),
    /// The JSON does not parse, or is not what the packet type needs.
    #[error("malformed JSON in a packet: {0}")]
    Json(String),
    /// An event whose first element is no string.
    #[error("an event without a name")]
    EventName,
    /// A binary event with another number of attachments than one.
    #[error("an event with {0} attachments; this protocol has exactly one")]
    Attachments(u32),
    /// The argument of a binary event is no placeholder for its attachment.
    #[error("a binary event without a placeholder")]
    Placeholder,
    /// A text packet while an attachment is due.
    #[error("a text packet while an attachment is due")]
    AttachmentDue,
    /// An attachment that nothing announced.
    #[error("an attachment that nothing announced")]
    UnexpectedAttachment,
    /// Base64 of a polled attachment does not decode.
    #[error("malformed base64 in a polled attachment")]
    Base64,
}
