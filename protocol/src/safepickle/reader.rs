//! The one reader of a stream: bytes of arguments, lines of text, frames.

use super::error::Malformed;
use super::opcode::Opcode;

/// Reads a stream from front to back.
///
/// An opcode and its argument lie in one frame, or both outside of any: so there is one way to read
/// a stream, and nothing can be hidden from a reader behind the end of a frame.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    input: &'a [u8],
    /// The next byte to read.
    at: usize,
    /// Where the argument of the current opcode must have ended.
    end: usize,
    /// Where the current frame ends; at or before `at` if there is none.
    frame_end: usize,
}

type Read<T> = Result<T, Malformed>;

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            at: 0,
            end: input.len(),
            frame_end: 0,
        }
    }

    /// How many bytes have been read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next opcode, unless the input ends here.
    pub(super) fn opcode(&mut self) -> Option<Opcode> {
        let byte = *self.input.get(self.at)?;
        self.end = if self.at < self.frame_end {
            self.frame_end
        } else {
            self.input.len()
        };
        self.at += 1;
        Some(Opcode::from_byte(byte))
    }

    /// The next `len` bytes of the argument.
    pub(super) fn take(&mut self, len: usize) -> Read<&'a [u8]> {
        let available = self.end - self.at;
        if len > available {
            return Err(self.cut(len as u64));
        }
        let bytes = &self.input[self.at..self.at + len];
        self.at += len;
        Ok(bytes)
    }

    /// Why `needed` bytes cannot be had.
    fn cut(&self, needed: u64) -> Malformed {
        let available = (self.input.len() - self.at) as u64;
        if needed > available {
            Malformed::Truncated { needed, available }
        } else {
            Malformed::FrameCrossed
        }
    }

    /// The next `N` bytes of the argument.
    pub(super) fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| self.cut(N as u64))
    }

    /// A byte: an int, a small size, or a small index.
    pub(super) fn u8(&mut self) -> Read<u8> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// A size of 32 bits.
    pub(super) fn u32_size(&mut self) -> Read<usize> {
        let size = u32::from_le_bytes(self.array()?);
        usize::try_from(size).map_err(|_| self.cut(u64::from(size)))
    }

    /// A size of 64 bits.
    pub(super) fn u64_size(&mut self) -> Read<usize> {
        let size = u64::from_le_bytes(self.array()?);
        usize::try_from(size).map_err(|_| self.cut(size))
    }

    /// A size of 31 bits and a sign.
    pub(super) fn i32_size(&mut self) -> Read<usize> {
        let size = i32::from_le_bytes(self.array()?);
        usize::try_from(size).map_err(|_| Malformed::NegativeSize)
    }

    /// The text up to the next newline, which is read as well.
    pub(super) fn line(&mut self) -> Read<&'a [u8]> {
        let rest = &self.input[self.at..];
        let Some(len) = rest.iter().position(|byte| *byte == b'\n') else {
            return Err(Malformed::NoNewline);
        };
        if self.at + len >= self.end {
            return Err(Malformed::FrameCrossed);
        }
        self.at += len + 1;
        Ok(&rest[..len])
    }

    /// Opens a frame of the size that follows.
    pub(super) fn frame(&mut self) -> Read<()> {
        let size = u64::from_le_bytes(self.array()?);
        if self.at < self.frame_end {
            return Err(Malformed::FrameInFrame);
        }
        let available = self.input.len() - self.at;
        match usize::try_from(size) {
            Ok(size) if size <= available => {
                self.frame_end = self.at + size;
                Ok(())
            }
            _ => Err(Malformed::FrameTooLong {
                size,
                available: available as u64,
            }),
        }
    }
}
