//! Socket.IO: what an Engine.IO message holds.

use serde_json::Value;

use super::{MAX_HEADER_BYTES, PacketError};
use crate::ident::Namespace;

/// One Socket.IO packet, without its attachment.
#[derive(Clone, Debug, PartialEq)]
pub enum SocketPacket {
    /// Join a namespace, or the answer to it with the sid.
    Connect {
        /// Which.
        namespace: Namespace,
        /// Auth object, or the object with the sid.
        data: Option<Value>,
    },
    /// Leave a namespace.
    Disconnect {
        /// Which.
        namespace: Namespace,
    },
    /// An event with JSON arguments.
    Event {
        /// Where.
        namespace: Namespace,
        /// Id of the ack that the sender asks for.
        ack: Option<u64>,
        /// Its name.
        name: String,
        /// Its arguments.
        args: Vec<Value>,
    },
    /// The ack of an event.
    Ack {
        /// Where.
        namespace: Namespace,
        /// Which.
        id: u64,
        /// Its arguments.
        args: Vec<Value>,
    },
    /// A namespace cannot be joined.
    ConnectError {
        /// Which.
        namespace: Namespace,
        /// Why.
        data: Option<Value>,
    },
    /// An event whose only argument is one attachment, which follows.
    BinaryEvent {
        /// Where.
        namespace: Namespace,
        /// Id of the ack that the sender asks for.
        ack: Option<u64>,
        /// Its name.
        name: String,
    },
}

impl SocketPacket {
    /// Reads the text after Engine.IO's `4`.
    ///
    /// # Errors
    ///
    /// [`PacketError`] says which rule it breaks.
    ///
    /// # Example
    ///
    /// ```
    /// use agentix_protocol::packet::SocketPacket;
    ///
    /// let packet = SocketPacket::parse(r#"51-/rpc,["call",{"_placeholder":true,"num":0}]"#)?;
    /// assert!(matches!(packet, SocketPacket::BinaryEvent { name, .. } if name == "call"));
    /// # Ok::<(), agentix_protocol::packet::PacketError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, PacketError> {
        if text.len() > MAX_HEADER_BYTES {
            return Err(PacketError::HeaderTooLong(text.len()));
        }
        let mut chars = text.chars();
        let kind = chars.next().ok_or(PacketError::Empty)?;
        let mut rest = chars.as_str();
        let attachments = if matches!(kind, '5' | '6') {
            let (count, after) = take_number(rest)?;
            rest = after.strip_prefix('-').ok_or(PacketError::Number)?;
            let count = count.ok_or(PacketError::Number)?;
            u32::try_from(count).map_err(|_| PacketError::Number)?
        } else {
            0
        };
        let namespace = if rest.starts_with('/') {
            // Without a comma the namespace is all there is, as in `1/rpc`.
            let (name, after) = rest.split_once(',').unwrap_or((rest, ""));
            rest = after;
            // A query string is not part of the name.
            Namespace::new(name.split_once('?').map_or(name, |(name, _)| name))?
        } else {
            Namespace::new("/")?
        };
        let (id, json) = take_number(rest)?;
        match kind {
            '0' => Ok(Self::Connect {
                namespace,
                data: parse_optional(rest)?,
            }),
            '1' => Ok(Self::Disconnect { namespace }),
            '2' => {
                let (name, args) = parse_event(json)?;
                Ok(Self::Event {
                    namespace,
                    ack: id,
                    name,
                    args,
                })
            }
            '3' => Ok(Self::Ack {
                namespace,
                id: id.ok_or(PacketError::Number)?,
                args: parse_array(json)?,
            }),
            '4' => Ok(Self::ConnectError {
                namespace,
                data: parse_optional(rest)?,
            }),
            '5' if attachments != 1 => Err(PacketError::Attachments(attachments)),
            '5' => {
                let (name, args) = parse_event(json)?;
                match args.as_slice() {
                    [Value::Object(o)]
                        if o.get("_placeholder") == Some(&Value::Bool(true))
                            && o.get("num").and_then(Value::as_u64) == Some(0) =>
                    {
                        Ok(Self::BinaryEvent {
                            namespace,
                            ack: id,
                            name,
                        })
                    }
                    _ => Err(PacketError::Placeholder),
                }
            }
            // A binary ack: nothing in this protocol asks for one.
            '6' => Err(PacketError::Attachments(attachments)),
            other => Err(PacketError::Type(other)),
        }
    }

    /// Writes the text after Engine.IO's `4`.
    #[must_use]
    pub fn encode(&self) -> String {
        let part = |namespace: &Namespace| match namespace.as_str() {
            "/" => String::new(),
            name => format!("{name},"),
        };
        let number = |id: &Option<u64>| id.map_or(String::new(), |id| id.to_string());
        let event = |name: &str, args: &[Value]| {
            let mut all = vec![Value::from(name)];
            all.extend_from_slice(args);
            Value::Array(all)
        };
        match self {
            Self::Connect { namespace, data } => {
                let data = data.as_ref().map_or(String::new(), Value::to_string);
                format!("0{}{data}", part(namespace))
            }
            Self::Disconnect { namespace } => format!("1{}", part(namespace)),
            Self::Event {
                namespace,
                ack,
                name,
                args,
            } => {
                format!("2{}{}{}", part(namespace), number(ack), event(name, args))
            }
            Self::Ack {
                namespace,
                id,
                args,
            } => {
                format!("3{}{id}{}", part(namespace), Value::from(args.clone()))
            }
            Self::ConnectError { namespace, data } => {
                let data = data.as_ref().map_or(String::new(), Value::to_string);
                format!("4{}{data}", part(namespace))
            }
            Self::BinaryEvent {
                namespace,
                ack,
                name,
            } => format!(
                r#"51-{}{}[{},{{"_placeholder":true,"num":0}}]"#,
                part(namespace),
                number(ack),
                Value::from(name.as_str())
            ),
        }
    }
}

/// Leading digits as a number, and what follows.
fn take_number(text: &str) -> Result<(Option<u64>, &str), PacketError> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    if end == 0 {
        return Ok((None, text));
    }
    let number = text[..end].parse().map_err(|_| PacketError::Number)?;
    Ok((Some(number), &text[end..]))
}

fn parse_optional(text: &str) -> Result<Option<Value>, PacketError> {
    if text.is_empty() {
        return Ok(None);
    }
    serde_json::from_str(text)
        .map(Some)
        .map_err(|e| PacketError::Json(e.to_string()))
}

fn parse_array(text: &str) -> Result<Vec<Value>, PacketError> {
    serde_json::from_str(text).map_err(|e| PacketError::Json(e.to_string()))
}

fn parse_event(text: &str) -> Result<(String, Vec<Value>), PacketError> {
    let mut args = parse_array(text)?;
    if args.is_empty() {
        return Err(PacketError::EventName);
    }
    match args.remove(0) {
        Value::String(name) => Ok((name, args)),
        _ => Err(PacketError::EventName),
    }
}
