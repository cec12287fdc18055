//! How much waits for the worker to read it: above a bound, hosts are not read.
//!
//! A call that was accepted cannot be refused any more, so without this a host that sends faster
//! than the worker reads would fill the runtime's memory. What a host sends meanwhile, a `cancel`
//! too, waits in its connection until the worker reads on or ends.

use std::sync::Arc;

use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use tokio::sync::watch;

/// Bytes of frames that wait for the worker before hosts are not read: one message of the largest
/// size, or many of the usual ones.
const MAX_BYTES: usize = MAX_MESSAGE_BYTES;

/// The number of bytes; clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Backlog(Arc<watch::Sender<usize>>);

/// Counts as long as it lives.
#[derive(Debug)]
pub(crate) struct Charge {
    backlog: Backlog,
    bytes: usize,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    pub(crate) fn charge(&self, bytes: usize) -> Charge {
        self.0.send_modify(|sum| *sum += bytes);
        Charge {
            backlog: self.clone(),
            bytes,
        }
    }

    /// Waits until less than the bound is there.
    pub(crate) async fn room(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|sum| *sum < MAX_BYTES).await;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let bytes = self.bytes;
        self.backlog.0.send_modify(|sum| *sum -= bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn room_is_where_less_than_the_bound_waits() {
        let backlog = Backlog::new();
        let mut context = Context::from_waker(Waker::noop());
        let mut room = || pin!(backlog.room()).poll(&mut context);
        let first = backlog.charge(MAX_BYTES - 1);
        assert_eq!(room(), Poll::Ready(()));
        let second = backlog.charge(1);
        assert_eq!(room(), Poll::Pending);
        drop(first);
        assert_eq!(room(), Poll::Ready(()));
        drop(second);
        assert_eq!(*backlog.0.borrow(), 0);
    }
}
