//! The host's call table: what was sent, what was accepted, what is awaited.
//!
//! ```text
//!   call ──► Queued ──────► Sent ── Socket.IO ack ──► Accepted ── outcome ──► ended, acked
//!     │     (no link)        ▲                           ▲
//!     └────► Posted ─────────┘ no answer                 │ 202
//!               └────────────────────────────────────────┘
//!               └── 200 ──► ended, acked
//! ```
//!
//! A lost link ends nothing: on the next one, accepted calls are resumed, and calls that may have
//! been lost on the way are sent again where the peer states protocol 1.x, and resumed where it
//! does not. Feed one input, then drain [`HostCalls::poll_output`].

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use crate::error::RemoteError;
use crate::event::{BadRuntimeEvent, HostEvent, RuntimeEvent};
use crate::http::{CallReply, Peer};
use crate::ident::CallId;
use crate::limits::MAX_MESSAGE_BYTES;
use crate::message::{Call, Outcome};

/// How a call failed, as far as the call table can tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// The sandbox answered with an error.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The call is above the limit and was not sent.
    #[error(
        "the call takes {len} bytes, more than the limit of {limit}; pass large data by another way"
    )]
    PayloadTooLarge {
        /// Bytes of the message.
        len: usize,
        /// The limit.
        limit: usize,
    },
    /// The runtime sent an outcome for this call that cannot be read.
    #[error("the runtime sent a malformed outcome: {reason}")]
    Malformed {
        /// Which field.
        reason: String,
    },
    /// The connection is lost and no further attempt is made. Whether the function ran is not
    /// known.
    #[error("the connection to the runtime is lost; whether the call ran is not known")]
    Disconnected,
    /// The client was closed first.
    #[error("the client was closed before the call ended")]
    Closed,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallState {
    /// Waits for a connection.
    Queued,
    /// On its way over HTTP, without an answer.
    Posted,
    /// Sent on `/rpc`, not known to be accepted.
    Sent,
    /// The runtime has it.
    Accepted,
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOutput {
    /// Send an event on `/rpc`. With `ask_ack`, ask for a Socket.IO ack and report it with
    /// [`HostCalls::acked`].
    Emit {
        /// The event.
        event: HostEvent,
        /// Ask for an ack?
        ask_ack: bool,
    },
    /// Send the call as `POST /call`; report with [`HostCalls::http_reply`] or
    /// [`HostCalls::http_failed`].
    Post(Call),
    /// Give the outcome to whoever awaits it.
    End(CallId, Result<Bytes, CallFailure>),
}

#[derive(Debug)]
struct Entry {
    call: Call,
    serial: u64,
    state: CallState,
    /// Nobody awaits it any more.
    cancelled: bool,
    /// Which link it was posted under.
    epoch: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Down,
    Up(Peer),
    Gone,
    Closed,
}

/// The machine; see the [module](self).
#[derive(Debug)]
pub struct HostCalls {
    entries: HashMap<CallId, Entry>,
    link: LinkState,
    /// What the peer stated last, also while the link is down.
    peer: Peer,
    epoch: u64,
    next_serial: u64,
    use_http: bool,
    outputs: VecDeque<HostOutput>,
}

impl HostCalls {
    /// An empty table. With `use_http`, calls go over `POST /call` first.
    #[must_use]
    pub fn new(use_http: bool) -> Self {
        Self {
            entries: HashMap::new(),
            link: LinkState::Down,
            peer: Peer::Legacy,
            epoch: 0,
            next_serial: 0,
            use_http,
            outputs: VecDeque::new(),
        }
    }

    /// Takes the next thing to do.
    pub fn poll_output(&mut self) -> Option<HostOutput> {
        self.outputs.pop_front()
    }

    /// How far a call is; `None` when it ended or never was.
    #[must_use]
    pub fn state(&self, id: &CallId) -> Option<CallState> {
        self.entries.get(id).map(|entry| entry.state)
    }

    /// Calls without an outcome, cancelled ones included.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.entries.len()
    }

    /// Makes a call. Its id must be new.
    pub fn call(&mut self, call: Call) {
        match self.link {
            LinkState::Gone => return self.end(call.call_id, Err(CallFailure::Disconnected)),
            LinkState::Closed => return self.end(call.call_id, Err(CallFailure::Closed)),
            LinkState::Down | LinkState::Up(_) => {}
        }
        if call.size_hint() > MAX_MESSAGE_BYTES / 2 {
            let len = call.encode().len();
            if len > MAX_MESSAGE_BYTES {
                let failure = CallFailure::PayloadTooLarge {
                    len,
                    limit: MAX_MESSAGE_BYTES,
                };
                return self.end(call.call_id, Err(failure));
            }
        }
        let state = match self.link {
            LinkState::Up(_) if self.use_http => {
                self.outputs.push_back(HostOutput::Post(call.clone()));
                CallState::Posted
            }
            LinkState::Up(_) => {
                self.emit_call(call.clone());
                CallState::Sent
            }
            _ => CallState::Queued,
        };
        let serial = self.next_serial;
        self.next_serial += 1;
        let id = call.call_id.clone();
        let epoch = self.epoch;
        self.entries.insert(
            id,
            Entry {
                call,
                serial,
                state,
                cancelled: false,
                epoch,
            },
        );
    }

    /// Nobody awaits this call any more.
    pub fn cancel(&mut self, id: &CallId) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        if entry.state == CallState::Queued {
            self.entries.remove(id);
            return;
        }
        if !entry.cancelled {
            entry.cancelled = true;
            // A posted call may still be on its way: its answer brings a second cancel.
            self.emit_if_up(HostEvent::Cancel(id.clone()));
        }
    }

    /// `/rpc` is joined on a new connection.
    pub fn connected(&mut self, peer: Peer) {
        if matches!(self.link, LinkState::Gone | LinkState::Closed) {
            return;
        }
        self.link = LinkState::Up(peer);
        self.peer = peer;
        self.epoch += 1;
        let mut pending: Vec<(u64, CallId)> = self
            .entries
            .iter()
            .map(|(id, entry)| (entry.serial, id.clone()))
            .collect();
        pending.sort();
        let mut resume = Vec::new();
        for (_, id) in pending {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            match (entry.state, entry.cancelled) {
                (CallState::Posted, _) => {}
                (_, true) => {
                    // The outcome, or ResultUnavailable, lets the entry go.
                    self.outputs.push_back(HostOutput::Emit {
                        event: HostEvent::Cancel(id.clone()),
                        ask_ack: false,
                    });
                    resume.push(id);
                }
                (CallState::Queued, false) => {
                    entry.state = CallState::Sent;
                    let call = entry.call.clone();
                    self.emit_call(call);
                }
                (CallState::Sent, false) if peer == Peer::V1 => {
                    let call = entry.call.clone();
                    self.emit_call(call);
                }
                (CallState::Sent | CallState::Accepted, false) => resume.push(id),
            }
        }
        if !resume.is_empty() {
            self.emit_if_up(HostEvent::Resume(resume));
        }
    }

    /// The connection is lost; another attempt will be made.
    pub fn disconnected(&mut self) {
        if let LinkState::Up(_) = self.link {
            self.link = LinkState::Down;
        }
    }

    /// The connection is lost and no further attempt is made.
    pub fn gone(&mut self) {
        self.link = LinkState::Gone;
        self.end_all(&CallFailure::Disconnected);
    }

    /// The client leaves: calls without an outcome are cancelled.
    pub fn close(&mut self) {
        if matches!(self.link, LinkState::Up(_)) {
            let mut sent: Vec<(u64, CallId)> = self
                .entries
                .iter()
                .filter(|(_, entry)| entry.state != CallState::Queued && !entry.cancelled)
                .map(|(id, entry)| (entry.serial, id.clone()))
                .collect();
            sent.sort();
            for (_, id) in sent {
                self.emit_if_up(HostEvent::Cancel(id));
            }
        }
        self.link = LinkState::Closed;
        self.end_all(&CallFailure::Closed);
    }

    /// The Socket.IO ack of a `call` came: the runtime has accepted it.
    pub fn acked(&mut self, id: &CallId) {
        if let Some(entry) = self.entries.get_mut(id)
            && entry.state == CallState::Sent
        {
            entry.state = CallState::Accepted;
        }
    }

    /// An event came on `/rpc`.
    ///
    /// # Errors
    ///
    /// What is wrong with an event that could not be read, for the log; the table has done with
    /// it what can be done.
    pub fn event(&mut self, name: &str, payload: &Bytes) -> Result<(), BadRuntimeEvent> {
        match RuntimeEvent::decode(name, payload) {
            Ok(RuntimeEvent::Outcome(Outcome { call_id, result })) => {
                self.outcome(&call_id, result.map_err(CallFailure::Remote));
                Ok(())
            }
            // An answer to a call without a valid id: this host sends none.
            Ok(RuntimeEvent::Rejected(_)) => Ok(()),
            Err(bad) => {
                if let BadRuntimeEvent::Outcome { call_id, reason } = &bad {
                    let reason = reason.to_string();
                    self.outcome(call_id, Err(CallFailure::Malformed { reason }));
                }
                Err(bad)
            }
        }
    }

    /// `POST /call` was answered.
    pub fn http_reply(&mut self, id: &CallId, reply: CallReply) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        match reply {
            CallReply::Done(result) => self.outcome(id, result.map_err(CallFailure::Remote)),
            CallReply::Accepted(_) => {
                entry.state = CallState::Accepted;
                let (moved, cancelled) = (entry.epoch != self.epoch, entry.cancelled);
                if cancelled {
                    self.emit_if_up(HostEvent::Cancel(id.clone()));
                }
                if moved || cancelled {
                    // The owner that the runtime knows is a connection of the past.
                    self.emit_if_up(HostEvent::Resume(vec![id.clone()]));
                }
            }
            // Not accepted, so there is nothing to ack.
            CallReply::BadRequest(error) | CallReply::TooLarge(error) => {
                let cancelled = entry.cancelled;
                self.entries.remove(id);
                if !cancelled {
                    self.end(id.clone(), Err(CallFailure::Remote(error)));
                }
            }
        }
    }

    /// `POST /call` has no usable answer. `maybe_accepted` is false when it is certain that the
    /// runtime did not take the call: no connection was made, or there is no such route.
    pub fn http_failed(&mut self, id: &CallId, maybe_accepted: bool) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        if entry.cancelled {
            if !maybe_accepted {
                self.entries.remove(id);
                return;
            }
            entry.state = CallState::Accepted;
            self.emit_if_up(HostEvent::Cancel(id.clone()));
            self.emit_if_up(HostEvent::Resume(vec![id.clone()]));
            return;
        }
        if maybe_accepted && self.peer == Peer::Legacy {
            entry.state = CallState::Accepted;
            self.emit_if_up(HostEvent::Resume(vec![id.clone()]));
            return;
        }
        if matches!(self.link, LinkState::Up(_)) {
            entry.state = CallState::Sent;
            let call = entry.call.clone();
            self.emit_call(call);
        } else {
            entry.state = CallState::Queued;
        }
    }

    fn outcome(&mut self, id: &CallId, result: Result<Bytes, CallFailure>) {
        let Some(entry) = self.entries.remove(id) else {
            return;
        };
        if !entry.cancelled {
            self.end(id.clone(), result);
        }
        self.emit_if_up(HostEvent::Ack(id.clone()));
    }

    fn emit_call(&mut self, call: Call) {
        self.outputs.push_back(HostOutput::Emit {
            event: HostEvent::Call(call),
            ask_ack: true,
        });
    }

    fn emit_if_up(&mut self, event: HostEvent) {
        if matches!(self.link, LinkState::Up(_)) {
            self.outputs.push_back(HostOutput::Emit {
                event,
                ask_ack: false,
            });
        }
    }

    fn end(&mut self, id: CallId, result: Result<Bytes, CallFailure>) {
        self.outputs.push_back(HostOutput::End(id, result));
    }

    fn end_all(&mut self, failure: &CallFailure) {
        let mut all: Vec<(u64, CallId, bool)> = self
            .entries
            .drain()
            .map(|(id, entry)| (entry.serial, id, entry.cancelled))
            .collect();
        all.sort();
        for (_, id, cancelled) in all {
            if !cancelled {
                self.end(id, Err(failure.clone()));
            }
        }
    }
}
