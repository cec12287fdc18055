//! A stream that knows when it last received a byte.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// A stream that notes when bytes arrive, so that a long message in progress counts as a sign of
/// life (AGX-CON-075), and that can bound how many may arrive.
#[derive(Debug)]
pub struct Metered<S> {
    inner: S,
    last: Instant,
    /// Bytes that may still arrive.
    allowance: u64,
}

impl<S> Metered<S> {
    /// A stream that may receive `allowance` bytes before the bound is lifted.
    pub(super) fn new(inner: S, allowance: u64) -> Self {
        Self {
            inner,
            last: Instant::now(),
            allowance,
        }
    }

    /// When the last byte arrived; at first, when the stream was made.
    #[must_use]
    pub fn last_read(&self) -> Instant {
        self.last
    }

    pub(super) fn lift_bound(&mut self) {
        self.allowance = u64::MAX;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = (buf.filled().len() - before) as u64;
        if read > 0 {
            self.last = Instant::now();
            self.allowance = self.allowance.checked_sub(read).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "an endless response header")
            })?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
