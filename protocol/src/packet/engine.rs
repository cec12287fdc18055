//! Engine.IO: the transport's own packets.

use std::time::Duration;

use bytes::Bytes;
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::PacketError;

/// One Engine.IO packet. A binary WebSocket message is an attachment and has no packet around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnginePacket {
    /// The runtime opens the session.
    Open(Handshake),
    /// Either side leaves.
    Close,
    /// Keepalive, or the probe of an upgrade.
    Ping(String),
    /// Its answer.
    Pong(String),
    /// A Socket.IO packet.
    Message(String),
    /// The host moves to this transport.
    Upgrade,
    /// Nothing; releases a poll.
    Noop,
}

/// What a runtime says when it opens a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Id of the Engine.IO session.
    pub sid: String,
    /// Transports that the session can move to.
    pub upgrades: Vec<String>,
    /// Time between pings.
    pub ping_interval: Duration,
    /// Time that a ping may stay unanswered.
    pub ping_timeout: Duration,
    /// Largest message, in bytes.
    pub max_payload: u64,
}

impl EnginePacket {
    /// Reads the text of one packet.
    ///
    /// # Errors
    ///
    /// [`PacketError`] when it is none.
    pub fn parse(text: &str) -> Result<Self, PacketError> {
        let mut chars = text.chars();
        let kind = chars.next().ok_or(PacketError::Empty)?;
        let rest = chars.as_str();
        Ok(match kind {
            '0' => Self::Open(Handshake::parse(rest)?),
            '1' => Self::Close,
            '2' => Self::Ping(rest.to_owned()),
            '3' => Self::Pong(rest.to_owned()),
            '4' => Self::Message(rest.to_owned()),
            '5' => Self::Upgrade,
            '6' => Self::Noop,
            other => return Err(PacketError::Type(other)),
        })
    }

    /// Writes the text of this packet.
    #[must_use]
    pub fn encode(&self) -> String {
        match self {
            Self::Open(handshake) => format!("0{}", handshake.to_json()),
            Self::Close => "1".to_owned(),
            Self::Ping(data) => format!("2{data}"),
            Self::Pong(data) => format!("3{data}"),
            Self::Message(data) => format!("4{data}"),
            Self::Upgrade => "5".to_owned(),
            Self::Noop => "6".to_owned(),
        }
    }
}

impl Handshake {
    fn parse(text: &str) -> Result<Self, PacketError> {
        if text.len() > super::MAX_HEADER_BYTES {
            return Err(PacketError::HeaderTooLong(text.len()));
        }
        let json: Value =
            serde_json::from_str(text).map_err(|e| PacketError::Json(e.to_string()))?;
        let missing = |name: &str| PacketError::Json(format!("no {name}"));
        let millis = |name: &str| {
            json[name]
                .as_u64()
                .map(Duration::from_millis)
                .ok_or_else(|| missing(name))
        };
        Ok(Self {
            sid: json["sid"]
                .as_str()
                .ok_or_else(|| missing("sid"))?
                .to_owned(),
            upgrades: json["upgrades"]
                .as_array()
                .map(|list| {
                    list.iter()
                        .filter_map(|v| v.as_str().map(str::to_owned))
                        .collect()
                })
                .unwrap_or_default(),
            ping_interval: millis("pingInterval")?,
            ping_timeout: millis("pingTimeout")?,
            max_payload: json["maxPayload"].as_u64().unwrap_or(u64::MAX),
        })
    }

    fn to_json(&self) -> String {
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        // Built by hand to keep the usual key order.
        format!(
            r#"{{"sid":{},"upgrades":{},"pingTimeout":{},"pingInterval":{},"maxPayload":{}}}"#,
            json!(self.sid),
            json!(self.upgrades),
            millis(self.ping_timeout),
            millis(self.ping_interval),
            self.max_payload
        )
    }
}

/// One item of a polling body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollingItem {
    /// A packet's text.
    Text(String),
    /// An attachment.
    Binary(Bytes),
}

const SEPARATOR: char = '\x1e';

/// Takes a polling body apart.
///
/// # Errors
///
/// [`PacketError::Base64`] when an attachment does not decode.
pub fn split_polling(body: &str) -> Result<Vec<PollingItem>, PacketError> {
    body.split(SEPARATOR)
        .map(|item| match item.strip_prefix('b') {
            Some(encoded) => BASE64
                .decode(encoded.as_bytes())
                .map(|bytes| PollingItem::Binary(bytes.into()))
                .map_err(|_| PacketError::Base64),
            None => Ok(PollingItem::Text(item.to_owned())),
        })
        .collect()
}

/// Puts a polling body together.
#[must_use]
pub fn join_polling(items: &[PollingItem]) -> String {
    let mut out = String::new();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(SEPARATOR);
        }
        match item {
            PollingItem::Text(text) => out.push_str(text),
            PollingItem::Binary(bytes) => {
                out.push('b');
                BASE64.encode_append(bytes, &mut out);
            }
        }
    }
    out
}
