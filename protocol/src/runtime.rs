//! The runtime's call table: which calls run, who owns them, and which outcomes are held.
//!
//! ```text
//!   call, POST /call                     outcome (stored, then sent)
//!  ───────────────────► Running ───────────────────────────────────► Done
//!                          │ cancel: Cancelled is stored and sent       │ ack, eviction, or 60 s
//!                          └───────────────────────────────► Done       │ after an HTTP answer
//!                                                                       ▼
//!                                                                    Closed
//! ```
//!
//! A call id names one execution: a `call` with an id that is Running, Done or Closed never
//! starts anything. Feed one input, then drain [`RuntimeCalls::poll_output`]; after
//! [`RuntimeCalls::poll_timeout`] has passed, call [`RuntimeCalls::timeout`].

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::closed::ClosedIds;
use crate::error::RemoteError;
use crate::event::{BadHostEvent, HostEvent, RuntimeEvent};
use crate::http::{self, BadCallBody, CallReply, Prefer};
use crate::ident::CallId;
use crate::limits::{MAX_RETAINED, MAX_RETAINED_BYTES};
use crate::message::{BadCall, Call, Outcome};

/// Names one connection on `/rpc`, for the life of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// Names one `POST /call`, for the life of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HttpId(pub u64);

/// Bounds on what a runtime holds.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RuntimeConfig {
    /// Outcomes held at once: 4,096.
    pub max_retained: usize,
    /// Bytes of outcomes held at once: 1 GiB.
    pub max_retained_bytes: usize,
    /// How long an outcome that HTTP delivered stays resumable: 60 s.
    pub http_retention: Duration,
    /// Closed ids remembered: 1,000,000, in at most 24 MiB (AGX-CALL-005, AGX-CALL-006). The last so
    /// many always are, up to a ninth more may be.
    pub closed_ids: usize,
    /// Makes the fingerprints of closed ids unpredictable; pass random bits.
    pub seed: u64,
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self {
            max_retained: MAX_RETAINED,
            max_retained_bytes: MAX_RETAINED_BYTES,
            http_retention: Duration::from_secs(60),
            closed_ids: ClosedIds::DEFAULT_CAPACITY,
            seed: 0,
        }
    }
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeOutput {
    /// Send an event to one connection.
    Emit(ConnId, RuntimeEvent),
    /// Answer a `POST /call`; the wait is what `preference-applied` states. When the caller is
    /// gone, report it with [`RuntimeCalls::undelivered`].
    Reply(HttpId, CallReply, Prefer),
    /// Give a call to the worker.
    Start(Call),
    /// Stop a call in the worker.
    Cancel(CallId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    Connection(ConnId),
    /// A call over HTTP without a known submitter: everybody.
    Everybody,
    /// The owner left: whoever resumes.
    Nobody,
}

#[derive(Debug)]
struct Waiter {
    http: HttpId,
    prefer: Prefer,
    deadline: Instant,
}

#[derive(Debug)]
enum Entry {
    Running {
        owner: Owner,
        waiter: Option<Waiter>,
        /// Is the outcome due on `/rpc`, whatever the waiter gets?
        due_on_rpc: bool,
    },
    Done(Done),
}

#[derive(Debug)]
struct Done {
    outcome: Outcome,
    bytes: usize,
    serial: u64,
    /// After an HTTP answer: when the outcome is let go.
    expires: Option<Instant>,
    owner: Owner,
    /// Of an outcome for everybody: the connections that have it and have not acked.
    unacked: HashSet<ConnId>,
    /// Of an outcome for everybody: has one of them acked?
    acked: bool,
}

/// The machine; see the [module](self).
#[derive(Debug)]
pub struct RuntimeCalls {
    config: RuntimeConfig,
    entries: HashMap<CallId, Entry>,
    /// Held outcomes, oldest first.
    retained: BTreeSet<(u64, CallId)>,
    retained_bytes: usize,
    next_serial: u64,
    closed: ClosedIds,
    /// Connections on `/rpc` and their sids.
    connections: HashMap<ConnId, String>,
    waiting_http: HashMap<HttpId, CallId>,
    timers: BTreeSet<(Instant, CallId)>,
    outputs: VecDeque<RuntimeOutput>,
}

impl RuntimeCalls {
    /// An empty table.
    #[must_use]
    pub fn new(config: RuntimeConfig) -> Self {
        Self {
            closed: ClosedIds::new(config.closed_ids, config.seed),
            config,
            entries: HashMap::new(),
            retained: BTreeSet::new(),
            retained_bytes: 0,
            next_serial: 0,
            connections: HashMap::new(),
            waiting_http: HashMap::new(),
            timers: BTreeSet::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes the next thing to do.
    pub fn poll_output(&mut self) -> Option<RuntimeOutput> {
        self.outputs.pop_front()
    }

    /// When [`RuntimeCalls::timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Calls that have no outcome yet.
    #[must_use]
    pub fn running(&self) -> usize {
        self.entries.len() - self.retained.len()
    }

    /// Outcomes that are held, and their bytes.
    #[must_use]
    pub fn retained(&self) -> (usize, usize) {
        (self.retained.len(), self.retained_bytes)
    }

    /// The outcome that is held for this call. A host that reads slowly is sent it from here when
    /// its turn comes, so that what waits for it is held once.
    #[must_use]
    pub fn held(&self, id: &CallId) -> Option<&Outcome> {
        match self.entries.get(id) {
            Some(Entry::Done(done)) => Some(&done.outcome),
            Some(Entry::Running { .. }) | None => None,
        }
    }

    /// A host joined `/rpc`.
    pub fn connected(&mut self, connection: ConnId, sid: impl Into<String>) {
        self.connections.insert(connection, sid.into());
    }

    /// A host left `/rpc`. What it owns stays, for whoever resumes it.
    pub fn disconnected(&mut self, connection: ConnId) {
        self.connections.remove(&connection);
        let mut finished = Vec::new();
        for (id, entry) in &mut self.entries {
            match entry {
                Entry::Running { owner, .. } | Entry::Done(Done { owner, .. })
                    if *owner == Owner::Connection(connection) =>
                {
                    *owner = Owner::Nobody;
                }
                Entry::Done(done) => {
                    // When all the others have acked, somebody has it; when nobody has, it stays.
                    let was_receiver = done.unacked.remove(&connection);
                    if was_receiver && done.unacked.is_empty() && done.acked {
                        finished.push(id.clone());
                    }
                }
                Entry::Running { .. } => {}
            }
        }
        for id in finished {
            self.free(&id);
        }
    }

    /// An event came on `/rpc`. Returns whether to answer the Socket.IO ack that it asks for.
    pub fn event(&mut self, from: ConnId, name: &str, payload: &Bytes, now: Instant) -> bool {
        match HostEvent::decode(name, payload) {
            Ok(HostEvent::Call(call)) => self.call(from, call),
            Ok(HostEvent::Cancel(id)) => self.cancel(from, &id, now),
            Ok(HostEvent::Resume(ids)) => {
                for id in ids {
                    self.resume(from, &id);
                }
            }
            Ok(HostEvent::Ack(id)) => self.ack(from, &id),
            Err(BadHostEvent::Call(bad)) => {
                let error = bad.to_error();
                match bad.call_id {
                    // An error for that id would be taken for its outcome.
                    Some(id) if self.is_closed(&id) => self.resume(from, &id),
                    Some(id) => self.emit(from, Outcome::error(id, error)),
                    None => {
                        let event = RuntimeEvent::Rejected(error);
                        self.outputs.push_back(RuntimeOutput::Emit(from, event));
                    }
                }
            }
            Err(BadHostEvent::Field(_)) => {}
            Err(BadHostEvent::Unknown | BadHostEvent::NotAMessage(_)) => return false,
        }
        true
    }

    /// A `POST /call` came. `owner_sid` is the `agentix-sid` header.
    pub fn http_call(
        &mut self,
        http: HttpId,
        body: &Bytes,
        prefer: Prefer,
        owner_sid: Option<&str>,
        now: Instant,
    ) {
        let (id, call) = match http::decode_call(body) {
            Ok(call) => (call.call_id.clone(), Some(call)),
            // A repeat, whatever its other fields hold.
            Err(BadCallBody::Call(BadCall {
                call_id: Some(id), ..
            })) if self.is_closed(&id) => (id, None),
            Err(bad) => {
                let error = match bad {
                    BadCallBody::Call(bad) => bad.to_error(),
                    BadCallBody::NotAMessage(e) => RemoteError::bad_request(e.to_string()),
                };
                self.reply(http, CallReply::BadRequest(error), prefer);
                return;
            }
        };
        let submitter = owner_sid
            .and_then(|sid| self.connections.iter().find(|(_, known)| *known == sid))
            .map(|(connection, _)| Owner::Connection(*connection));
        match (self.entries.get_mut(&id), call) {
            (
                Some(Entry::Running {
                    owner, due_on_rpc, ..
                }),
                _,
            ) => {
                *owner = submitter.unwrap_or(owner.clone());
                *due_on_rpc = true;
                self.reply(http, CallReply::Accepted(id), prefer);
            }
            (Some(Entry::Done(done)), _) => {
                done.owner = submitter.unwrap_or(done.owner.clone());
                let reply = CallReply::Done(done.outcome.result.clone());
                self.reply(http, reply, prefer);
            }
            (None, Some(call)) if !self.closed.contains(&id) => {
                let deadline = now + prefer.wait;
                self.timers.insert((deadline, id.clone()));
                self.waiting_http.insert(http, id.clone());
                let entry = Entry::Running {
                    owner: submitter.unwrap_or(Owner::Everybody),
                    waiter: Some(Waiter {
                        http,
                        prefer,
                        deadline,
                    }),
                    due_on_rpc: false,
                };
                self.entries.insert(id, entry);
                self.outputs.push_back(RuntimeOutput::Start(call));
            }
            (None, _) => {
                let gone = RemoteError::result_unavailable();
                self.reply(http, CallReply::Done(Err(gone)), prefer);
            }
        }
    }

    /// The HTTP caller is gone before its answer: its call goes on as if answered 202.
    pub fn http_gone(&mut self, http: HttpId) {
        if let Some(id) = self.waiting_http.remove(&http)
            && let Some(Entry::Running {
                waiter, due_on_rpc, ..
            }) = self.entries.get_mut(&id)
            && let Some(waiter) = waiter.take()
        {
            *due_on_rpc = true;
            self.timers.remove(&(waiter.deadline, id));
        }
    }

    /// The outcome of this call was the answer of a [`RuntimeOutput::Reply`] whose caller turned
    /// out to be gone: it is delivered as if that had been a 202.
    pub fn undelivered(&mut self, id: &CallId) {
        if let Some(Entry::Done(done)) = self.entries.get_mut(id)
            && let Some(at) = done.expires.take()
        {
            self.timers.remove(&(at, id.clone()));
            self.deliver(id);
        }
    }

    /// A call ended in the worker, or with it.
    pub fn outcome(&mut self, outcome: Outcome, now: Instant) {
        if matches!(
            self.entries.get(&outcome.call_id),
            Some(Entry::Running { .. })
        ) {
            self.finish(outcome, None, now);
        }
    }

    /// Time has passed.
    pub fn timeout(&mut self, now: Instant) {
        while let Some((at, id)) = self.timers.first().cloned() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            match self.entries.get_mut(&id) {
                Some(Entry::Running {
                    waiter, due_on_rpc, ..
                }) => {
                    if let Some(waiter) = waiter.take() {
                        *due_on_rpc = true;
                        self.waiting_http.remove(&waiter.http);
                        self.reply(waiter.http, CallReply::Accepted(id), waiter.prefer);
                    }
                }
                Some(Entry::Done(done)) if done.expires.is_some_and(|expires| expires <= now) => {
                    self.free(&id);
                }
                Some(Entry::Done(_)) | None => {}
            }
        }
    }

    fn reply(&mut self, http: HttpId, reply: CallReply, prefer: Prefer) {
        self.outputs
            .push_back(RuntimeOutput::Reply(http, reply, prefer));
    }

    fn emit(&mut self, to: ConnId, outcome: Outcome) {
        self.outputs
            .push_back(RuntimeOutput::Emit(to, RuntimeEvent::Outcome(outcome)));
    }

    /// Does this id name an execution already?
    fn is_closed(&self, id: &CallId) -> bool {
        self.entries.contains_key(id) || self.closed.contains(id)
    }

    fn call(&mut self, from: ConnId, call: Call) {
        if self.is_closed(&call.call_id) {
            // A repeated call counts as a resume.
            self.resume(from, &call.call_id);
            return;
        }
        let owner = Owner::Connection(from);
        let entry = Entry::Running {
            owner,
            waiter: None,
            due_on_rpc: true,
        };
        self.entries.insert(call.call_id.clone(), entry);
        self.outputs.push_back(RuntimeOutput::Start(call));
    }

    fn resume(&mut self, from: ConnId, id: &CallId) {
        match self.entries.get_mut(id) {
            Some(Entry::Running {
                owner, due_on_rpc, ..
            }) => {
                *owner = Owner::Connection(from);
                *due_on_rpc = true;
            }
            Some(Entry::Done(done)) => {
                done.owner = Owner::Connection(from);
                // Held like any outcome on `/rpc` from now on, no longer for a time only.
                if let Some(at) = done.expires.take() {
                    self.timers.remove(&(at, id.clone()));
                }
                let outcome = done.outcome.clone();
                self.emit(from, outcome);
            }
            None => self.emit(
                from,
                Outcome::error(id.clone(), RemoteError::result_unavailable()),
            ),
        }
    }

    fn ack(&mut self, from: ConnId, id: &CallId) {
        let Some(Entry::Done(done)) = self.entries.get_mut(id) else {
            return;
        };
        let was_receiver = done.unacked.remove(&from);
        let went_to_everybody = done.owner == Owner::Everybody && done.expires.is_none();
        if went_to_everybody {
            done.acked |= was_receiver;
            if !done.unacked.is_empty() || !done.acked {
                return;
            }
        } else if was_receiver && done.owner != Owner::Connection(from) {
            // It acks what everybody got; the outcome has a new owner since.
            return;
        }
        self.free(id);
    }

    fn cancel(&mut self, from: ConnId, id: &CallId, now: Instant) {
        if matches!(self.entries.get(id), Some(Entry::Running { .. })) {
            self.outputs.push_back(RuntimeOutput::Cancel(id.clone()));
            self.finish(
                Outcome::error(id.clone(), RemoteError::cancelled()),
                Some(from),
                now,
            );
        }
    }

    /// Stores the outcome of a running call, then sends it.
    fn finish(&mut self, outcome: Outcome, canceller: Option<ConnId>, now: Instant) {
        let id = outcome.call_id.clone();
        let Some(Entry::Running {
            owner,
            waiter,
            due_on_rpc,
        }) = self.entries.remove(&id)
        else {
            return;
        };
        let bytes = match &outcome.result {
            Ok(value) => value.len(),
            Err(error) => {
                let traceback = error.traceback.as_ref().map_or(0, String::len);
                error.error_type.as_str().len() + error.message.len() + traceback
            }
        };
        let serial = self.next_serial;
        self.next_serial += 1;
        let expires = (waiter.is_some() && !due_on_rpc).then(|| now + self.config.http_retention);
        if let Some(at) = expires {
            self.timers.insert((at, id.clone()));
        }
        self.retained.insert((serial, id.clone()));
        self.retained_bytes += bytes;
        let result = outcome.result.clone();
        let done = Done {
            outcome,
            bytes,
            serial,
            expires,
            owner,
            unacked: HashSet::new(),
            acked: false,
        };
        self.entries.insert(id.clone(), Entry::Done(done));

        if let Some(waiter) = waiter {
            self.timers.remove(&(waiter.deadline, id.clone()));
            self.waiting_http.remove(&waiter.http);
            self.reply(waiter.http, CallReply::Done(result), waiter.prefer);
        }
        let mut sent = Vec::new();
        if expires.is_none() {
            sent = self.deliver(&id);
        }
        if let Some(canceller) = canceller
            && !sent.contains(&canceller)
            && let Some(Entry::Done(done)) = self.entries.get(&id)
        {
            let outcome = done.outcome.clone();
            self.emit(canceller, outcome);
        }
        self.evict();
    }

    /// Sends a stored outcome to its owner, or to everybody; returns to whom.
    fn deliver(&mut self, id: &CallId) -> Vec<ConnId> {
        let Some(Entry::Done(done)) = self.entries.get_mut(id) else {
            return Vec::new();
        };
        let to = match done.owner {
            Owner::Connection(connection) => vec![connection],
            Owner::Nobody => Vec::new(),
            Owner::Everybody => {
                let mut all: Vec<ConnId> = self.connections.keys().copied().collect();
                all.sort();
                done.unacked.extend(&all);
                all
            }
        };
        let outcome = done.outcome.clone();
        for &connection in &to {
            self.emit(connection, outcome.clone());
        }
        to
    }

    fn evict(&mut self) {
        while self.retained.len() > self.config.max_retained
            || self.retained_bytes > self.config.max_retained_bytes
        {
            let Some((_, oldest)) = self.retained.first().cloned() else {
                return;
            };
            self.free(&oldest);
        }
    }

    fn free(&mut self, id: &CallId) {
        if let Some(Entry::Done(done)) = self.entries.remove(id) {
            self.retained.remove(&(done.serial, id.clone()));
            self.retained_bytes -= done.bytes;
            if let Some(at) = done.expires {
                self.timers.remove(&(at, id.clone()));
            }
        }
        self.closed.insert(id);
    }
}
