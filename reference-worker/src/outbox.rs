//! What waits to be sent to one host: nothing is dropped, and nothing waits for a slow reader but
//! the worker, and the worker only above a bound.
//!
//! Outcomes are held by the call table anyway. Once a host has [`INLINE_BYTES`] waiting, further
//! outcomes are queued by their id alone and taken from the table when their turn comes; one
//! evicted meanwhile becomes a definite `ResultUnavailable`. So only side-channel events pile up
//! here, and above [`HIGH_BYTES`] the worker's output is not read until the queue has drained to
//! [`LOW_BYTES`]. A host that does not get there in a minute is disconnected, so that it holds up
//! the others no longer than that.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agentix_protocol::event::RuntimeEvent;
use agentix_protocol::ident::CallId;
use agentix_protocol::message::Outcome;
use bytes::Bytes;
use tokio::sync::{Notify, watch};

/// Bytes that wait for one host before outcomes are queued by id alone: 1 MiB, about what a
/// socket's buffers hold.
const INLINE_BYTES: usize = 1024 * 1024;
/// Bytes of events that wait for one host before the worker's output is not read: 64 MiB.
const HIGH_BYTES: usize = 64 * 1024 * 1024;
/// Bytes at which reading goes on.
const LOW_BYTES: usize = HIGH_BYTES / 2;
/// Items that wait for one host before its own input is not read.
const MAX_ITEMS: usize = 65_536;
/// What an item costs beside its payload.
const ITEM_BYTES: usize = 256;

/// One Socket.IO packet to send, its attachment included.
#[derive(Debug)]
pub(crate) enum Item {
    /// The text of an Engine.IO packet.
    Text(String),
    /// A header and its attachment.
    Event(Arc<str>, Bytes),
    /// An outcome, or a refusal, on `/rpc`.
    Rpc(RuntimeEvent),
    /// The outcome that the call table holds for this id.
    Held(CallId),
}

impl Item {
    fn bytes(&self) -> usize {
        ITEM_BYTES
            + match self {
                Self::Text(text) => text.len(),
                Self::Event(_, payload) => payload.len(),
                Self::Rpc(RuntimeEvent::Outcome(Outcome { result, .. })) => match result {
                    Ok(value) => value.len(),
                    Err(error) => {
                        error.message.len() + error.traceback.as_ref().map_or(0, String::len)
                    }
                },
                Self::Rpc(RuntimeEvent::Rejected(error)) => error.message.len(),
                Self::Held(_) => 0,
            }
    }
}

impl Item {
    /// What the item counts against the bound that stops the worker's output.
    fn event_bytes(&self) -> usize {
        match self {
            Self::Event(..) => self.bytes(),
            Self::Text(_) | Self::Rpc(_) | Self::Held(_) => 0,
        }
    }
}

/// What goes ahead of all items.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Urgent {
    /// An Engine.IO packet.
    Packet(&'static str),
    /// The answer to an Engine.IO ping.
    Pong(String),
    /// The answer to a WebSocket ping.
    SocketPong(Bytes),
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Send what waits, then close with this WebSocket code.
    Drained(u16),
    /// Close with this WebSocket code; what waits is dropped.
    Now(u16),
}

/// What a writer has to do next.
#[derive(Debug)]
pub(crate) enum Next {
    Urgent(Urgent),
    Item(Item),
    /// Nothing until [`Outbox::changed`].
    Wait,
    Closed(u16),
}

#[derive(Debug)]
struct State {
    urgent: VecDeque<Urgent>,
    items: VecDeque<Item>,
    bytes: usize,
    /// Of these, what side-channel events take: outcomes are held by the call table anyway.
    event_bytes: usize,
    /// Since when this queue is one of those that stop the worker's output.
    over: Option<Instant>,
    closing: Option<Closing>,
}

/// How many queues are above the bound.
#[derive(Clone, Debug)]
pub(crate) struct Pressure(Arc<watch::Sender<usize>>);

impl Pressure {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Waits until no queue is above the bound.
    pub(crate) async fn clear(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|over| *over == 0).await;
    }
}

/// The queue; see the [module](self).
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    changed: Notify,
    pressure: Pressure,
}

impl Outbox {
    pub(crate) fn new(pressure: Pressure) -> Self {
        Self {
            state: Mutex::new(State {
                urgent: VecDeque::new(),
                items: VecDeque::new(),
                bytes: 0,
                event_bytes: 0,
                over: None,
                closing: None,
            }),
            changed: Notify::new(),
            pressure,
        }
    }

    /// No code panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an item; in a closed queue it is dropped.
    pub(crate) fn push(&self, item: Item) {
        let mut state = self.lock();
        if state.closing.is_some() {
            return;
        }
        let item = match item {
            Item::Rpc(RuntimeEvent::Outcome(outcome)) if state.bytes > INLINE_BYTES => {
                Item::Held(outcome.call_id)
            }
            item => item,
        };
        state.bytes += item.bytes();
        state.event_bytes += item.event_bytes();
        state.items.push_back(item);
        self.balance(&mut state);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Queues something ahead of all items, once.
    pub(crate) fn push_urgent(&self, urgent: Urgent) {
        let mut state = self.lock();
        if state.closing.is_some() || state.urgent.contains(&urgent) {
            return;
        }
        state.urgent.push_back(urgent);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Ends the session; the first call decides how, but `Now` overrides `Drained`.
    pub(crate) fn close(&self, closing: Closing) {
        let mut state = self.lock();
        match (state.closing, closing) {
            (Some(Closing::Now(_)), _) | (Some(_), Closing::Drained(_)) => return,
            _ => state.closing = Some(closing),
        }
        if matches!(closing, Closing::Now(_)) {
            state.urgent.clear();
            state.items.clear();
            state.bytes = 0;
            state.event_bytes = 0;
            self.balance(&mut state);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closing.is_some()
    }

    /// Takes what is to be sent next.
    pub(crate) fn next(&self) -> Next {
        let mut state = self.lock();
        if let Some(urgent) = state.urgent.pop_front() {
            return Next::Urgent(urgent);
        }
        if let Some(item) = state.items.pop_front() {
            state.bytes -= item.bytes();
            state.event_bytes -= item.event_bytes();
            self.balance(&mut state);
            let room_again = state.items.len() == MAX_ITEMS / 2;
            drop(state);
            if room_again {
                self.changed.notify_waiters();
            }
            return Next::Item(item);
        }
        match state.closing {
            Some(Closing::Drained(code) | Closing::Now(code)) => Next::Closed(code),
            None => Next::Wait,
        }
    }

    /// Waits until `done`, which is asked again after every change.
    async fn until(&self, done: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if done(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until [`Outbox::next`] has something.
    pub(crate) async fn changed(&self) {
        self.until(|state| {
            !state.urgent.is_empty() || !state.items.is_empty() || state.closing.is_some()
        })
        .await;
    }

    /// Waits until the session is closed.
    pub(crate) async fn closed(&self) {
        self.until(|state| state.closing.is_some()).await;
    }

    /// Waits until a host that does not read may send again.
    pub(crate) async fn room(&self) {
        if self.lock().items.len() < MAX_ITEMS {
            return;
        }
        self.until(|state| state.items.len() <= MAX_ITEMS / 2 || state.closing.is_some())
            .await;
    }

    /// For how long this queue has stopped the worker's output.
    pub(crate) fn over(&self, now: Instant) -> Duration {
        let over = self.lock().over;
        over.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn balance(&self, state: &mut State) {
        let over = match state.over {
            None => state.event_bytes > HIGH_BYTES && state.items.len() > 1,
            Some(_) => state.event_bytes > LOW_BYTES,
        };
        if over != state.over.is_some() {
            state.over = over.then(Instant::now);
            self.pressure
                .0
                .send_modify(|count| *count = if over { *count + 1 } else { *count - 1 });
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.close(Closing::Now(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(n: u128, len: usize) -> Item {
        let value = Bytes::from(vec![0; len]);
        Item::Rpc(RuntimeEvent::Outcome(Outcome::value(
            CallId::from_random(n),
            value,
        )))
    }

    fn event(len: usize) -> Item {
        Item::Event("51-/app,".into(), Bytes::from(vec![0; len]))
    }

    /// A host that asks for very many outcomes and reads none stops nobody's worker.
    #[test]
    fn outcomes_never_stop_the_worker() {
        let pressure = Pressure::new();
        let outbox = Outbox::new(pressure.clone());
        for n in 0..300_000 {
            outbox.push(outcome(n, 64));
        }
        assert!(outbox.lock().bytes > HIGH_BYTES);
        assert_eq!(*pressure.0.borrow(), 0);
    }

    #[test]
    fn outcomes_behind_a_full_queue_are_left_in_the_table() {
        let outbox = Outbox::new(Pressure::new());
        outbox.push(outcome(1, 2 * INLINE_BYTES));
        outbox.push(outcome(2, 5));
        assert!(matches!(outbox.next(), Next::Item(Item::Rpc(_))));
        assert!(
            matches!(outbox.next(), Next::Item(Item::Held(id)) if id == CallId::from_random(2))
        );
        assert!(matches!(outbox.next(), Next::Wait));
    }

    #[test]
    fn events_above_the_bound_stop_the_worker_until_they_are_taken() {
        let pressure = Pressure::new();
        let over = || *pressure.0.borrow();
        let outbox = Outbox::new(pressure.clone());
        outbox.push(event(HIGH_BYTES));
        assert_eq!(over(), 0, "one message alone never stops anything");
        outbox.push(event(LOW_BYTES + 1));
        assert_eq!(over(), 1);
        assert!(matches!(outbox.next(), Next::Item(_)));
        assert_eq!(over(), 1);
        assert!(matches!(outbox.next(), Next::Item(_)));
        assert_eq!(over(), 0);
        outbox.push(event(HIGH_BYTES));
        outbox.push(event(1));
        assert_eq!(over(), 1);
        outbox.close(Closing::Now(1000));
        assert_eq!(over(), 0);
        outbox.push(event(1));
        assert!(matches!(outbox.next(), Next::Closed(1000)));
    }

    #[test]
    fn what_is_urgent_goes_first_and_once() {
        let outbox = Outbox::new(Pressure::new());
        outbox.push(event(1));
        outbox.push_urgent(Urgent::Packet("2"));
        outbox.push_urgent(Urgent::Packet("2"));
        outbox.close(Closing::Drained(1012));
        assert!(matches!(outbox.next(), Next::Urgent(Urgent::Packet("2"))));
        assert!(matches!(outbox.next(), Next::Item(Item::Event(..))));
        assert!(matches!(outbox.next(), Next::Closed(1012)));
    }
}
