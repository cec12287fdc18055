//! HTTP bodies: read under a limit, and written so that it shows whether they were taken.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// Bytes of one piece of a response.
const PIECE_BYTES: usize = 64 * 1024;
/// How long the rest of a request's body is read and thrown away before it is refused.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest pause between two pieces of a body, so that a caller that has vanished holds no
/// descriptor for good.
const PIECE_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a request has no body.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoBody {
    #[error("a body of more than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("nothing more of the body came for {} s", PIECE_TIMEOUT.as_secs())]
    Stalled,
    #[error("the connection was lost: {0}")]
    Lost(#[from] hyper::Error),
}

/// Reads a whole body; memory grows with what arrived. `on_bytes` is called as bytes arrive.
///
/// The rest of a body over the limit is read and thrown away, so that a caller that sends first
/// and reads then gets its answer; a caller that waits for leave to send is refused at once.
pub(crate) async fn read(
    mut body: Incoming,
    expects_continue: bool,
    limit: usize,
    on_bytes: impl Fn(),
) -> Result<Bytes, NoBody> {
    let declared = body.size_hint().lower();
    let declared = usize::try_from(declared).unwrap_or(usize::MAX);
    let too_large = NoBody::TooLarge { limit };
    if declared > limit && expects_continue {
        return Err(too_large);
    }
    let mut data = Vec::new();
    while declared <= limit
        && let Some(frame) = tokio::time::timeout(PIECE_TIMEOUT, body.frame())
            .await
            .map_err(|_| NoBody::Stalled)?
    {
        let Ok(piece) = frame?.into_data() else {
            continue;
        };
        on_bytes();
        if data.len() + piece.len() > limit {
            drop(data);
            return discard(body, too_large).await;
        }
        data.extend_from_slice(&piece);
    }
    if declared > limit {
        return discard(body, too_large).await;
    }
    data.shrink_to_fit();
    Ok(data.into())
}

async fn discard(mut body: Incoming, error: NoBody) -> Result<Bytes, NoBody> {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    // A caller that takes longer sees its connection closed after the answer.
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, rest).await;
    Err(error)
}

/// Called when the connection ended before the last piece of a response was taken.
type Abandoned = Box<dyn FnOnce() + Send>;

/// A response in pieces.
pub(crate) struct Pieces {
    data: Bytes,
    abandoned: Option<Abandoned>,
}

impl Pieces {
    /// A body; nothing happens when it is not taken.
    pub(crate) fn new(data: impl Into<Bytes>) -> Self {
        Self {
            data: data.into(),
            abandoned: None,
        }
    }

    /// Says what to do when the connection ends before the last piece was taken.
    pub(crate) fn or_else(mut self, abandoned: impl FnOnce() + Send + 'static) -> Self {
        self.abandoned = Some(Box::new(abandoned));
        self
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let count = self.data.len().min(PIECE_BYTES);
        let piece = self.data.split_to(count);
        if self.data.is_empty() {
            self.abandoned = None;
        }
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.len() as u64)
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if let Some(abandoned) = self.abandoned.take() {
            abandoned();
        }
    }
}
