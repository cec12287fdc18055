//! Frames on the pipe: a 32-bit little-endian length, then that many bytes.
//!
//! The decoder takes bytes in pieces of any size. It allocates as bytes arrive, never from the
//! declared length alone (AGX-PIPE).

use bytes::{Buf, Bytes, BytesMut};

use crate::limits::MAX_MESSAGE_BYTES;

/// Bytes of the length before each frame.
pub const HEADER_BYTES: usize = 4;

/// A frame whose declared length is above the limit. The stream cannot be followed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame of {len} bytes, more than the limit of {limit}; the pipe is lost")]
pub struct FrameTooLong {
    /// The declared length.
    pub len: usize,
    /// The limit.
    pub limit: usize,
}

/// A body that does not fit a frame; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {len} bytes does not fit a frame of at most {limit}")]
pub struct BodyTooLong {
    /// Length of the body.
    pub len: usize,
    /// The limit.
    pub limit: usize,
}

/// The length prefix of a frame with this body; write it, then the body.
///
/// # Errors
///
/// [`BodyTooLong`] above 256 MiB.
///
/// # Example
///
/// ```
/// assert_eq!(agentix_protocol::framing::header(12)?, [12, 0, 0, 0]);
/// # Ok::<(), agentix_protocol::framing::BodyTooLong>(())
/// ```
pub fn header(body_len: usize) -> Result<[u8; HEADER_BYTES], BodyTooLong> {
    let too_long = BodyTooLong {
        len: body_len,
        limit: MAX_MESSAGE_BYTES,
    };
    if body_len > MAX_MESSAGE_BYTES {
        return Err(too_long);
    }
    u32::try_from(body_len)
        .map(u32::to_le_bytes)
        .map_err(|_| too_long)
}

/// Largest body that is always copied out of the buffer, and never split off: about what a read
/// brings.
const COPY_BYTES: usize = 64 * 1024;

/// Cuts a byte stream into frame bodies.
///
/// A body shares its memory with no other body: one that is held for long, as a small outcome
/// may be, holds nothing but itself.
///
/// # Example
///
/// ```
/// use agentix_protocol::framing::FrameDecoder;
///
/// let mut decoder = FrameDecoder::default();
/// decoder.push(&[1, 0, 0]);
/// assert_eq!(decoder.next_frame()?, None);
/// decoder.push(&[0, 0x80]);
/// assert_eq!(decoder.next_frame()?.as_deref(), Some(&[0x80][..]));
/// assert!(decoder.is_empty());
/// # Ok::<(), agentix_protocol::framing::FrameTooLong>(())
/// ```
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    limit: usize,
}

impl Default for FrameDecoder {
    fn default() -> Self {
        Self::with_limit(MAX_MESSAGE_BYTES)
    }
}

impl FrameDecoder {
    /// A decoder with a lower limit on one frame's body, in bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            limit,
        }
    }

    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The buffer, for readers that append to it directly. Only append.
    pub fn buffer_mut(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Takes the next whole frame's body; `None` when more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`FrameTooLong`], and from then on always.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameTooLong> {
        let Some(&[a, b, c, d]) = self.buffer.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let declared = u32::from_le_bytes([a, b, c, d]);
        let len = usize::try_from(declared).unwrap_or(usize::MAX);
        if len > self.limit {
            return Err(FrameTooLong {
                len,
                limit: self.limit,
            });
        }
        if self.buffer.len() - HEADER_BYTES < len {
            return Ok(None);
        }
        self.buffer.advance(HEADER_BYTES);
        // Whatever is copied is no longer than this body: the whole stays linear.
        if len <= COPY_BYTES || len < self.buffer.len() - len {
            let body = Bytes::copy_from_slice(&self.buffer[..len]);
            self.buffer.advance(len);
            return Ok(Some(body));
        }
        let body = self.buffer.split_to(len).freeze();
        self.buffer = BytesMut::from(&self.buffer[..]);
        Ok(Some(body))
    }

    /// Are there no bytes of a further frame?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_on_both_sides() {
        assert!(header(MAX_MESSAGE_BYTES).is_ok());
        assert_eq!(
            header(MAX_MESSAGE_BYTES + 1),
            Err(BodyTooLong {
                len: MAX_MESSAGE_BYTES + 1,
                limit: MAX_MESSAGE_BYTES
            })
        );
        let mut decoder = FrameDecoder::default();
        decoder.push(&0x1000_0001_u32.to_le_bytes());
        let error = FrameTooLong {
            len: 0x1000_0001,
            limit: MAX_MESSAGE_BYTES,
        };
        assert_eq!(decoder.next_frame(), Err(error));
        decoder.push(&[0; 64]);
        assert_eq!(decoder.next_frame(), Err(error));
    }

    #[test]
    fn bodies_share_no_memory() {
        let frame = |len: usize| {
            let mut frame = header(len).unwrap().to_vec();
            frame.resize(HEADER_BYTES + len, 0xc0);
            frame
        };
        let large = COPY_BYTES + 1;
        let mut decoder = FrameDecoder::default();
        decoder.push(&[frame(3), frame(large), frame(5), frame(large)].concat());
        for len in [3, large, 5, large] {
            let body = decoder.next_frame().unwrap().unwrap();
            assert_eq!(body.len(), len);
            // Nobody else holds its memory, so it can be taken over.
            assert!(body.try_into_mut().is_ok());
        }
        assert!(decoder.is_empty());
    }

    #[test]
    fn a_declared_length_allocates_nothing() {
        let mut decoder = FrameDecoder::default();
        decoder.push(&0x1000_0000_u32.to_le_bytes());
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(decoder.buffer.capacity() < 4096);
    }
}
