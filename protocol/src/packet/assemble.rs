//! Puts header and attachment together again.

use bytes::Bytes;
use serde_json::Value;

use super::{PacketError, SocketPacket};
use crate::ident::Namespace;

/// One event, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where.
    pub namespace: Namespace,
    /// Its name.
    pub name: String,
    /// Id of the ack that the sender asks for.
    pub ack: Option<u64>,
    /// What it carries.
    pub payload: Payload,
}

/// What an event carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// One attachment: the msgpack payload.
    Binary(Bytes),
    /// Plain JSON arguments.
    Json(Vec<Value>),
}

/// A whole Socket.IO packet that arrived.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// Anything but a binary event.
    Packet(SocketPacket),
    /// An event of either kind.
    Event(Event),
}

/// Takes messages in the order in which they arrived and gives whole packets.
///
/// A header and its attachment are adjacent on the wire; anything else is an error that ends the
/// connection (AGX-CON).
#[derive(Debug, Default)]
pub struct Assembler {
    due: Option<Event>,
}

impl Assembler {
    /// Takes the text after Engine.IO's `4`. `None` when the attachment is still to come.
    ///
    /// # Errors
    ///
    /// [`PacketError`]; the connection cannot be followed any further.
    pub fn text(&mut self, text: &str) -> Result<Option<Incoming>, PacketError> {
        if self.due.is_some() {
            return Err(PacketError::AttachmentDue);
        }
        Ok(match SocketPacket::parse(text)? {
            SocketPacket::BinaryEvent {
                namespace,
                ack,
                name,
            } => {
                let payload = Payload::Binary(Bytes::new());
                self.due = Some(Event {
                    namespace,
                    name,
                    ack,
                    payload,
                });
                None
            }
            SocketPacket::Event {
                namespace,
                ack,
                name,
                args,
            } => {
                let payload = Payload::Json(args);
                Some(Incoming::Event(Event {
                    namespace,
                    name,
                    ack,
                    payload,
                }))
            }
            packet => Some(Incoming::Packet(packet)),
        })
    }

    /// Takes an attachment.
    ///
    /// # Errors
    ///
    /// [`PacketError::UnexpectedAttachment`] when no header announced one.
    pub fn binary(&mut self, attachment: Bytes) -> Result<Incoming, PacketError> {
        let mut event = self.due.take().ok_or(PacketError::UnexpectedAttachment)?;
        event.payload = Payload::Binary(attachment);
        Ok(Incoming::Event(event))
    }

    /// Is an attachment due?
    #[must_use]
    pub fn is_attachment_due(&self) -> bool {
        self.due.is_some()
    }
}
