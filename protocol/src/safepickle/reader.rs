//! The one reader of a stream: bytes of arguments, lines of text, frames.

use super::error::Malformed;
use super::opcode::Opcode;

/// Reads a stream from front to back.
///
/// An opcode and its argument lie in one frame, or both outside of any: so there is one way to read
/// a stream, and nothing can be hidden from a reader behind the end of a frame.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    /// How long the input is.
    len: usize,
    /// What is left of the current frame, or outside of any, of the input.
    rest: &'a [u8],
    /// What lies behind the current frame.
    behind: &'a [u8],
    /// Whether `rest` is, or was, what is left of a frame.
    framed: bool,
}

type Read<T> = Result<T, Malformed>;

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            len: input.len(),
            rest: input,
            behind: &[],
            framed: false,
        }
    }

    /// How many bytes have been read.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.len - self.available()
    }

    /// How many bytes there are to read.
    #[inline]
    fn available(&self) -> usize {
        self.rest.len() + self.behind.len()
    }

    /// The next opcode, unless the input ends here.
    #[inline]
    pub(super) fn opcode(&mut self) -> Option<Opcode> {
        if self.rest.is_empty() {
            self.leave_frame();
        }
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(Opcode::from_byte(*byte))
    }

    /// Goes on behind a frame that has been read to its end.
    #[cold]
    fn leave_frame(&mut self) {
        self.rest = std::mem::take(&mut self.behind);
        self.framed = false;
    }

    /// The next `len` bytes of the argument.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Read<&'a [u8]> {
        let Some((bytes, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.cut(len as u64));
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// Why `needed` bytes cannot be had.
    #[cold]
    fn cut(&self, needed: u64) -> Malformed {
        let available = self.available() as u64;
        if needed > available {
            Malformed::Truncated { needed, available }
        } else {
            Malformed::FrameCrossed
        }
    }

    /// The next `N` bytes of the argument.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else {
            return Err(self.cut(N as u64));
        };
        self.rest = rest;
        Ok(*bytes)
    }

    /// A byte: an int, a small size, or a small index.
    #[inline]
    pub(super) fn u8(&mut self) -> Read<u8> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// A size of 32 bits.
    #[inline]
    pub(super) fn u32_size(&mut self) -> Read<usize> {
        let size = u32::from_le_bytes(self.array()?);
        usize::try_from(size).map_err(|_| self.cut(u64::from(size)))
    }

    /// A size of 64 bits.
    #[inline]
    pub(super) fn u64_size(&mut self) -> Read<usize> {
        let size = u64::from_le_bytes(self.array()?);
        usize::try_from(size).map_err(|_| self.cut(size))
    }

    /// A size of 31 bits and a sign.
    #[inline]
    pub(super) fn i32_size(&mut self) -> Read<usize> {
        let size = i32::from_le_bytes(self.array()?);
        usize::try_from(size).map_err(|_| Malformed::NegativeSize)
    }

    /// The text up to the next newline, which is read as well.
    pub(super) fn line(&mut self) -> Read<&'a [u8]> {
        let Some(len) = newline(self.rest) else {
            return Err(match newline(self.behind) {
                Some(_) => Malformed::FrameCrossed,
                None => Malformed::NoNewline,
            });
        };
        let (line, rest) = self.rest.split_at(len);
        self.rest = &rest[1..];
        Ok(line)
    }

    /// Opens a frame of the size that follows.
    pub(super) fn frame(&mut self) -> Read<()> {
        let size = u64::from_le_bytes(self.array()?);
        if self.framed {
            if !self.rest.is_empty() {
                return Err(Malformed::FrameInFrame);
            }
            self.leave_frame();
        }
        let frame = usize::try_from(size)
            .ok()
            .and_then(|size| self.rest.split_at_checked(size));
        let Some((frame, behind)) = frame else {
            return Err(Malformed::FrameTooLong {
                size,
                available: self.rest.len() as u64,
            });
        };
        (self.rest, self.behind, self.framed) = (frame, behind, true);
        Ok(())
    }
}

/// Where the first newline is.
fn newline(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| *byte == b'\n')
}
