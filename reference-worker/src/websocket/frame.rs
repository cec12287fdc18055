//! WebSocket frames (RFC 6455), the server's side: bytes in, whole messages out.
//!
//! A decoder of our own, because those of the common libraries allocate a frame's declared length
//! before its bytes are there (AGX-LIM-006), and cannot bound texts more tightly than attachments
//! (AGX-CON-057).

use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::packet::MAX_HEADER_BYTES;
use bytes::Bytes;

/// Close codes that a runtime sends.
pub(crate) mod close_code {
    pub(crate) const NORMAL: u16 = 1000;
    pub(crate) const PROTOCOL_ERROR: u16 = 1002;
    pub(crate) const NOT_UTF8: u16 = 1007;
    pub(crate) const TOO_BIG: u16 = 1009;
    pub(crate) const SERVICE_RESTART: u16 = 1012;
}

/// Longest text message: the digit of Engine.IO and a Socket.IO packet.
const MAX_TEXT_BYTES: usize = MAX_HEADER_BYTES + 1;
/// Longest payload of a control frame (RFC 6455, 5.5).
const MAX_CONTROL_BYTES: usize = 125;

/// A message that arrived whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Text(String),
    Binary(Bytes),
    Ping(Bytes),
    Pong,
    /// The peer closes.
    Close,
}

/// Why a peer's frames cannot be followed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a WebSocket frame that breaks RFC 6455: {0}")]
    Protocol(&'static str),
    #[error("a text message that is not UTF-8")]
    NotUtf8,
    #[error("a message of more than {limit} bytes")]
    TooBig { limit: usize },
}

impl FrameError {
    /// The code to close with.
    pub(crate) fn close_code(self) -> u16 {
        match self {
            Self::Protocol(_) => close_code::PROTOCOL_ERROR,
            Self::NotUtf8 => close_code::NOT_UTF8,
            Self::TooBig { .. } => close_code::TOO_BIG,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    Close,
    Ping,
    Pong,
}

/// What a frame's payload belongs to.
#[derive(Clone, Copy, Debug)]
enum Payload {
    /// The message under way; is this its last frame?
    Data {
        last: bool,
    },
    Control(Control),
}

#[derive(Debug)]
struct Frame {
    payload: Payload,
    mask: [u8; 4],
    /// Payload bytes taken so far.
    taken: usize,
    left: usize,
}

/// Cuts a client's byte stream into messages; memory grows with what arrived.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Bytes of the next frame's head.
    head: Vec<u8>,
    frame: Option<Frame>,
    /// Kind of the message under way.
    message: Option<Kind>,
    data: Vec<u8>,
    control: Vec<u8>,
}

impl Decoder {
    /// Takes bytes off the front of `input`; `None` when it is used up.
    pub(crate) fn feed(&mut self, input: &mut &[u8]) -> Result<Option<Message>, FrameError> {
        loop {
            let Some(frame) = &mut self.frame else {
                if !self.feed_head(input)? {
                    return Ok(None);
                }
                continue;
            };
            let target = match frame.payload {
                Payload::Data { .. } => &mut self.data,
                Payload::Control(_) => &mut self.control,
            };
            let count = frame.left.min(input.len());
            let (now, later) = input.split_at(count);
            let start = target.len();
            target.extend_from_slice(now);
            unmask(&mut target[start..], frame.mask, frame.taken);
            *input = later;
            frame.taken += count;
            frame.left -= count;
            if frame.left > 0 {
                return Ok(None);
            }
            let payload = frame.payload;
            self.frame = None;
            match payload {
                Payload::Data { last: false } => {}
                Payload::Data { last: true } => {
                    let mut data = std::mem::take(&mut self.data);
                    // An attachment may be held for long.
                    data.shrink_to_fit();
                    return match self.message.take() {
                        Some(Kind::Text) => String::from_utf8(data)
                            .map(|text| Some(Message::Text(text)))
                            .map_err(|_| FrameError::NotUtf8),
                        // A data frame is decoded only while there is a message.
                        Some(Kind::Binary) | None => Ok(Some(Message::Binary(data.into()))),
                    };
                }
                Payload::Control(control) => {
                    let data = std::mem::take(&mut self.control);
                    return Ok(Some(match control {
                        Control::Ping => Message::Ping(data.into()),
                        Control::Pong => Message::Pong,
                        Control::Close if data.len() == 1 => {
                            return Err(FrameError::Protocol("a close code of one byte"));
                        }
                        Control::Close => Message::Close,
                    }));
                }
            }
        }
    }

    /// Takes bytes of a head; true when it is whole.
    fn feed_head(&mut self, input: &mut &[u8]) -> Result<bool, FrameError> {
        loop {
            let wanted = match self.head[..] {
                [_, second, ..] => {
                    let length = match second & 0x7f {
                        126 => 2,
                        127 => 8,
                        _ => 0,
                    };
                    2 + length + 4
                }
                _ => 2,
            };
            let count = (wanted - self.head.len()).min(input.len());
            let (now, later) = input.split_at(count);
            self.head.extend_from_slice(now);
            *input = later;
            if self.head.len() < wanted {
                return Ok(false);
            }
            if wanted > 2 {
                self.frame = Some(self.parse_head()?);
                self.head.clear();
                return Ok(true);
            }
        }
    }

    fn parse_head(&mut self) -> Result<Frame, FrameError> {
        use FrameError::Protocol;
        let (&first, &second) = match &self.head[..] {
            [first, second, ..] => (first, second),
            _ => return Err(Protocol("a head without two bytes")),
        };
        if first & 0x70 != 0 {
            return Err(Protocol("a reserved bit"));
        }
        if second & 0x80 == 0 {
            return Err(Protocol("no mask from a client"));
        }
        let last = first & 0x80 != 0;
        let (length, mask) = self.head[2..].split_at(self.head.len() - 6);
        let len = match length {
            [] => u64::from(second & 0x7f),
            bytes => bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let mask = mask.try_into().unwrap_or_default();
        let control = match first & 0x0f {
            0x8 => Some(Control::Close),
            0x9 => Some(Control::Ping),
            0xa => Some(Control::Pong),
            _ => None,
        };
        let payload = if let Some(control) = control {
            if !last || len > MAX_CONTROL_BYTES {
                return Err(Protocol("a control frame in fragments or too long"));
            }
            Payload::Control(control)
        } else {
            self.message = Some(match (first & 0x0f, self.message) {
                (0x0, Some(kind)) => kind,
                (0x1, None) => Kind::Text,
                (0x2, None) => Kind::Binary,
                (0x0, None) => return Err(Protocol("a continuation of nothing")),
                (0x1 | 0x2, Some(_)) => return Err(Protocol("a message inside a message")),
                _ => return Err(Protocol("a reserved opcode")),
            });
            let limit = match self.message {
                Some(Kind::Text) => MAX_TEXT_BYTES,
                _ => MAX_MESSAGE_BYTES,
            };
            if len > limit - self.data.len() {
                return Err(FrameError::TooBig { limit });
            }
            Payload::Data { last }
        };
        Ok(Frame {
            payload,
            mask,
            taken: 0,
            left: len,
        })
    }
}

/// Undoes the mask of payload bytes, of which `taken` came before.
fn unmask(data: &mut [u8], mut mask: [u8; 4], taken: usize) {
    mask.rotate_left(taken % 4);
    let wide = u64::from(u32::from_ne_bytes(mask));
    let wide = wide << 32 | wide;
    let (chunks, rest) = data.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.into_iter().cycle()) {
        *byte ^= mask;
    }
}

/// Opcode of a frame that a runtime sends; messages are never fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Opcode {
    Text = 1,
    Binary = 2,
    Close = 8,
    Pong = 10,
}

/// The head of a whole, unmasked message with a payload of `len` bytes, and how much of the array
/// it takes.
pub(crate) fn head(opcode: Opcode, len: usize) -> ([u8; 10], usize) {
    let mut head = [0; 10];
    head[0] = 0x80 | opcode as u8;
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(short @ 0..126), _) => {
            head[1] = short;
            (head, 2)
        }
        (_, Ok(medium)) => {
            head[1] = 126;
            head[2..4].copy_from_slice(&medium.to_be_bytes());
            (head, 4)
        }
        _ => {
            head[1] = 127;
            head[2..].copy_from_slice(&(len as u64).to_be_bytes());
            (head, 10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: [u8; 4] = [1, 2, 3, 4];

    /// A client's frame.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let (mut head, len) = head(Opcode::Text, payload.len());
        head[0] = first;
        head[1] |= 0x80;
        let mut out = head[..len].to_vec();
        out.extend_from_slice(&MASK);
        let start = out.len();
        out.extend_from_slice(payload);
        unmask(&mut out[start..], MASK, 0);
        out
    }

    /// All messages of a stream that arrives in pieces of `step` bytes.
    fn decode(stream: &[u8], step: usize) -> Result<Vec<Message>, FrameError> {
        let mut decoder = Decoder::default();
        let mut messages = Vec::new();
        for mut piece in stream.chunks(step) {
            while let Some(message) = decoder.feed(&mut piece)? {
                messages.push(message);
            }
        }
        Ok(messages)
    }

    #[test]
    fn messages_survive_any_split() {
        let long: Vec<u8> = (0..70_000_u32).map(|i| i as u8).collect();
        let stream = [
            frame(0x81, b"2probe"),
            frame(0x02, &long[..300]),
            frame(0x89, b"ping"),
            frame(0x00, b""),
            frame(0x80, &long[300..]),
            frame(0x82, b""),
            frame(0x8a, b""),
            frame(0x88, &1000_u16.to_be_bytes()),
        ]
        .concat();
        let expected = [
            Message::Text("2probe".into()),
            Message::Ping(Bytes::from_static(b"ping")),
            Message::Binary(long.into()),
            Message::Binary(Bytes::new()),
            Message::Pong,
            Message::Close,
        ];
        for step in [1, 2, 3, 7, 1000, stream.len()] {
            assert_eq!(
                decode(&stream, step).unwrap(),
                expected,
                "in pieces of {step}"
            );
        }
    }

    #[test]
    fn broken_frames_are_refused() {
        let unmasked = [0x81, 0x01, b'x', 0, 0, 0, 0];
        for (what, stream) in [
            ("unmasked", unmasked.to_vec()),
            ("reserved bit", frame(0xc1, b"")),
            ("reserved opcode", frame(0x83, b"")),
            ("continuation of nothing", frame(0x80, b"")),
            (
                "message in a message",
                [frame(0x01, b"a"), frame(0x81, b"b")].concat(),
            ),
            ("long control frame", frame(0x89, &[0; 126])),
            ("fragmented control frame", frame(0x09, b"")),
            ("close code of one byte", frame(0x88, b"x")),
        ] {
            assert!(
                matches!(decode(&stream, 5), Err(FrameError::Protocol(_))),
                "{what}"
            );
        }
        assert_eq!(decode(&frame(0x81, &[0xff]), 99), Err(FrameError::NotUtf8));
    }

    #[test]
    fn limits_hold_before_the_bytes_are_there() {
        let declare = |first: u8, len: u64| {
            let mut head = vec![first, 0xff];
            head.extend_from_slice(&len.to_be_bytes());
            head.extend_from_slice(&MASK);
            head
        };
        let max = MAX_MESSAGE_BYTES as u64;
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(&mut &declare(0x82, max)[..]), Ok(None));
        assert!(decoder.data.capacity() < 4096);
        for (first, len) in [(0x82, max + 1), (0x82, u64::MAX), (0x81, 1 << 21)] {
            assert!(matches!(
                decode(&declare(first, len), 99),
                Err(FrameError::TooBig { .. })
            ));
        }
        let fragments = [frame(0x02, &[0; 10]), declare(0x80, max - 9)].concat();
        assert!(matches!(
            decode(&fragments, 99),
            Err(FrameError::TooBig { .. })
        ));
    }

    #[test]
    fn heads_have_the_shortest_length() {
        assert_eq!(
            head(Opcode::Text, 125),
            ([0x81, 125, 0, 0, 0, 0, 0, 0, 0, 0], 2)
        );
        assert_eq!(head(Opcode::Binary, 126).1, 4);
        assert_eq!(head(Opcode::Binary, 65_535).0[..4], [0x82, 126, 0xff, 0xff]);
        assert_eq!(head(Opcode::Binary, 65_536).1, 10);
    }
}
