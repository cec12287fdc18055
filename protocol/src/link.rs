//! The runtime's end of the pipe: one worker at a time, started, fed, watched and stopped.
//!
//! ```text
//!            call                    spawned, ready                  shutdown
//!   Idle ───────────► Starting ───────────────────────► Ready ───────────────► Stopping
//!    ▲  ◄── back-off ──── │ spawn failed, boot_error,     │ end of stream,        │ exit
//!    │                    │ exit or 15 s: waiting calls   │ exit, lost pipe       ▼
//!    │                    ▼ get WorkerUnavailable         ▼                    Stopped
//!    └──────────────────────────────────────────────── Dying
//!                 exit status and end of stream both known, or 2 s:
//!                 running calls get WorkerDied
//! ```
//!
//! Feed one input, then drain [`Link::poll_output`]; after [`Link::poll_timeout`] has passed,
//! call [`Link::timeout`]. Inputs about an older worker than the current one are ignored.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::{ErrorType, RemoteError};
use crate::frame::{BadFrame, FromWorker, PipeEvent, ToWorker};
use crate::framing::{self, FrameTooLong};
use crate::ident::{CallId, Namespace};
use crate::limits::{HELD_BYTES, HELD_EVENTS};
use crate::message::{Call, Outcome};

/// Counts the workers of one runtime: 1 for the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// How a worker process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// As `returncode` carries it: the exit code, or minus the signal.
    #[must_use]
    pub fn returncode(self) -> i64 {
        match self {
            Self::Code(code) => code.into(),
            Self::Signal(signal) => -i64::from(signal),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(9) => f.write_str("killed by signal 9 (likely OOM-killed)"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

/// Times that govern a worker's life.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LinkConfig {
    /// Time from spawn to `ready`: 15 s, enough for a cold interpreter on a busy machine.
    pub start_timeout: Duration,
    /// First pause after a failed start: 0.5 s.
    pub backoff_initial: Duration,
    /// Longest pause: 30 s; each pause doubles the one before.
    pub backoff_max: Duration,
    /// Time between the end of a worker's stream and its exit status, either way round: 2 s.
    pub exit_grace: Duration,
    /// Time from `shutdown` to SIGTERM: 5 s.
    pub shutdown_grace: Duration,
    /// Time from SIGTERM to SIGKILL: 2 s.
    pub term_grace: Duration,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(15),
            backoff_initial: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            exit_grace: Duration::from_secs(2),
            shutdown_grace: Duration::from_secs(5),
            term_grace: Duration::from_secs(2),
        }
    }
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOutput {
    /// Start a worker process; answer with [`Link::spawn_failed`] or its frames.
    Spawn(Generation),
    /// Write a frame with this body to the worker's stdin.
    Write(Generation, Bytes),
    /// Close the worker's stdin once what was written is out.
    CloseInput(Generation),
    /// Send SIGTERM to the worker.
    Terminate(Generation),
    /// Send SIGKILL to the worker and its process group.
    Kill(Generation),
    /// A call ended: give it to the call table.
    Outcome(Outcome),
    /// Send an event to every host on its namespace.
    Emit(PipeEvent),
    /// Write a line to the runtime's stderr.
    Notice(Notice),
    /// The link was shut down and no worker is left.
    Stopped,
}

/// Something that an operator should see on the runtime's stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A frame from the worker was lost, alone.
    BadFrame(BadFrame),
    /// The worker's stream cannot be followed any further.
    PipeLost(FrameTooLong),
    /// The worker refused a call without a valid id, which no call of ours is.
    Rejected(RemoteError),
    /// The worker tried to emit or open a namespace that is not its own.
    Reserved(Namespace),
    /// A terminal frame names no call that this worker runs (AGX-CALL-023).
    UnknownOutcome(CallId),
    /// Events for a namespace that no worker opened were dropped.
    HeldDropped {
        /// The namespace.
        namespace: Namespace,
    },
    /// A worker could not be started.
    StartFailed {
        /// Why.
        cause: String,
        /// When the next attempt may be made, from now.
        retry_in: Duration,
    },
    /// A worker ended while the runtime runs.
    WorkerEnded {
        /// Why.
        cause: String,
        /// How many calls that failed.
        calls: usize,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadFrame(bad) => write!(f, "lost one frame from the worker: {bad}"),
            Self::PipeLost(e) => write!(f, "killed the worker: {e}"),
            Self::Rejected(error) => {
                write!(f, "the worker refused a call without a valid id: {error}")
            }
            Self::Reserved(namespace) => {
                write!(
                    f,
                    "refused a frame from the worker for the reserved namespace {namespace}"
                )
            }
            Self::UnknownOutcome(id) => {
                write!(
                    f,
                    "ignored an outcome for {:?}, which the worker does not run",
                    id.as_str()
                )
            }
            Self::HeldDropped { namespace } => write!(
                f,
                "dropped the oldest events for {namespace}, which no worker has opened: more than {HELD_EVENTS} events or {HELD_BYTES} bytes"
            ),
            Self::StartFailed { cause, retry_in } => {
                write!(
                    f,
                    "{cause}; next attempt in {} s at the earliest",
                    retry_in.as_secs_f64()
                )
            }
            Self::WorkerEnded { cause, calls } => {
                write!(
                    f,
                    "runtime worker exited: {cause}; running calls that failed with it: {calls}"
                )
            }
        }
    }
}

#[derive(Debug)]
enum State {
    /// No worker. `retry_at` holds back a start after a failed one.
    Idle { retry_at: Option<Instant> },
    /// Spawned, not ready.
    Starting { deadline: Instant },
    /// Takes calls.
    Ready,
    /// One of exit and end of stream happened, or the pipe is lost.
    Dying {
        was_ready: bool,
        exit: Option<Exit>,
        end_of_stream: bool,
        deadline: Instant,
    },
    /// Told to stop.
    Stopping { stage: Stage, deadline: Instant },
    /// No worker, and never one again.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Asked,
    Terminated,
    Killed,
}

/// Most namespaces for which events are held at once.
const MAX_HELD_NAMESPACES: usize = 1024;

#[derive(Debug, Default)]
struct Held {
    events: VecDeque<PipeEvent>,
    bytes: usize,
    reported: bool,
}

/// The machine; see the [module](self).
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    state: State,
    generation: Generation,
    failures: u32,
    last_failure: RemoteError,
    /// Calls that wait for a worker, in order.
    waiting: VecDeque<Call>,
    /// Calls that the worker has.
    running: HashSet<CallId>,
    opened: HashSet<Namespace>,
    held: HashMap<Namespace, Held>,
    outputs: VecDeque<LinkOutput>,
}

impl Link {
    /// A link without a worker: the first call starts one.
    #[must_use]
    pub fn new(config: LinkConfig) -> Self {
        Self {
            config,
            state: State::Idle { retry_at: None },
            generation: Generation(0),
            failures: 0,
            last_failure: RemoteError::new(ErrorType::WorkerUnavailable, "no worker"),
            waiting: VecDeque::new(),
            running: HashSet::new(),
            opened: HashSet::new(),
            held: HashMap::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes the next thing to do.
    pub fn poll_output(&mut self) -> Option<LinkOutput> {
        self.outputs.pop_front()
    }

    /// When [`Link::timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Idle { .. } | State::Ready | State::Stopped => None,
            State::Starting { deadline }
            | State::Dying { deadline, .. }
            | State::Stopping { deadline, .. } => Some(deadline),
        }
    }

    /// Gives a call to the worker, starting one if need be.
    pub fn call(&mut self, call: Call, now: Instant) {
        match &self.state {
            State::Ready => self.send_call(call),
            State::Starting { .. } | State::Dying { .. } => self.waiting.push_back(call),
            State::Idle { retry_at: Some(at) } if now < *at => {
                let error = self.last_failure.clone();
                self.outputs
                    .push_back(LinkOutput::Outcome(Outcome::error(call.call_id, error)));
            }
            State::Idle { .. } => {
                self.waiting.push_back(call);
                self.spawn(now);
            }
            State::Stopping { .. } | State::Stopped => {
                let error = RemoteError::new(
                    ErrorType::WorkerUnavailable,
                    "the runtime is shutting down; call another one",
                );
                self.outputs
                    .push_back(LinkOutput::Outcome(Outcome::error(call.call_id, error)));
            }
        }
    }

    /// Stops a call. One that waits is forgotten; one that runs gets a `cancel` frame.
    pub fn cancel(&mut self, id: &CallId) {
        self.waiting.retain(|call| call.call_id != *id);
        if self.running.contains(id) {
            self.write(&ToWorker::Cancel(id.clone()));
        }
    }

    /// Relays a host's side-channel event, or holds it until the worker opens the namespace.
    pub fn event(&mut self, event: PipeEvent) {
        if matches!(self.state, State::Ready) && self.opened.contains(&event.namespace) {
            self.write(&ToWorker::SioInbound(event));
        } else {
            self.hold(event);
        }
    }

    /// The process could not be started.
    pub fn spawn_failed(&mut self, generation: Generation, cause: &str, now: Instant) {
        if generation == self.generation && matches!(self.state, State::Starting { .. }) {
            self.start_failed(
                format!("runtime worker could not be started: {cause}"),
                None,
                now,
            );
        }
    }

    /// A frame's body came from the worker.
    pub fn frame(&mut self, generation: Generation, body: &Bytes, now: Instant) {
        if generation != self.generation || matches!(self.state, State::Idle { .. }) {
            return;
        }
        match FromWorker::decode(body) {
            Ok(FromWorker::Ready) => self.ready(),
            Ok(FromWorker::BootError(error)) => {
                if matches!(
                    self.state,
                    State::Starting { .. }
                        | State::Dying {
                            was_ready: false,
                            ..
                        }
                ) {
                    let cause = format!("runtime worker failed to boot: {error}");
                    self.outputs.push_back(LinkOutput::Kill(generation));
                    self.start_failed(cause, None, now);
                }
            }
            Ok(FromWorker::Outcome(outcome)) => self.outcome(outcome),
            Ok(FromWorker::Rejected(error)) => self.notice(Notice::Rejected(error)),
            Ok(FromWorker::SioOpen(namespace)) => self.open(namespace),
            Ok(FromWorker::SioEmit(event)) if event.namespace.is_reserved() => {
                self.notice(Notice::Reserved(event.namespace));
            }
            Ok(FromWorker::SioEmit(event)) => self.outputs.push_back(LinkOutput::Emit(event)),
            Err(BadFrame::Empty) => {}
            Err(bad) => {
                // A terminal frame that cannot be read still ends its call.
                if let BadFrame::Field {
                    call_id: Some(id), ..
                } = &bad
                {
                    let error = RemoteError::new(
                        ErrorType::ResultEncodeError,
                        format!("the worker sent a malformed outcome: {bad}"),
                    );
                    self.outcome(Outcome::error(id.clone(), error));
                }
                self.notice(Notice::BadFrame(bad));
            }
        }
    }

    /// The worker's stream cannot be followed any further: the worker is killed.
    pub fn pipe_lost(&mut self, generation: Generation, error: FrameTooLong, now: Instant) {
        if generation != self.generation {
            return;
        }
        match self.state {
            State::Starting { .. } | State::Ready => {
                self.notice(Notice::PipeLost(error));
                self.outputs.push_back(LinkOutput::Kill(generation));
                self.dying(None, true, now);
            }
            _ => self.end_of_stream(generation, now),
        }
    }

    /// The worker's stream ended.
    pub fn end_of_stream(&mut self, generation: Generation, now: Instant) {
        if generation != self.generation {
            return;
        }
        match &mut self.state {
            State::Starting { .. } | State::Ready => self.dying(None, true, now),
            State::Dying {
                exit: Some(exit), ..
            } => {
                let exit = *exit;
                self.died(Some(exit), now);
            }
            State::Dying { end_of_stream, .. } => *end_of_stream = true,
            State::Idle { .. } | State::Stopping { .. } | State::Stopped => {}
        }
    }

    /// The worker process ended.
    pub fn exited(&mut self, generation: Generation, exit: Exit, now: Instant) {
        if generation != self.generation {
            return;
        }
        match &mut self.state {
            // What is still in the pipe comes first.
            State::Starting { .. } | State::Ready => self.dying(Some(exit), false, now),
            State::Dying {
                end_of_stream: true,
                ..
            } => self.died(Some(exit), now),
            State::Dying { exit: known, .. } => *known = Some(exit),
            State::Stopping { .. } => self.stopped(Some(exit)),
            State::Idle { .. } | State::Stopped => {}
        }
    }

    /// Stops the worker, orderly at first. [`LinkOutput::Stopped`] follows.
    pub fn shutdown(&mut self, now: Instant) {
        match self.state {
            State::Idle { .. } => self.stopped(None),
            State::Starting { .. } | State::Ready => {
                self.write(&ToWorker::Shutdown);
                self.outputs
                    .push_back(LinkOutput::CloseInput(self.generation));
                let deadline = now + self.config.shutdown_grace;
                self.state = State::Stopping {
                    stage: Stage::Asked,
                    deadline,
                };
            }
            State::Dying {
                exit: Some(exit), ..
            } => self.stopped(Some(exit)),
            State::Dying { .. } => {
                self.outputs.push_back(LinkOutput::Kill(self.generation));
                let deadline = now + self.config.term_grace;
                self.state = State::Stopping {
                    stage: Stage::Killed,
                    deadline,
                };
            }
            State::Stopping { .. } | State::Stopped => {}
        }
    }

    /// Time has passed.
    pub fn timeout(&mut self, now: Instant) {
        match self.state {
            State::Starting { deadline } if now >= deadline => {
                self.outputs.push_back(LinkOutput::Kill(self.generation));
                let seconds = self.config.start_timeout.as_secs_f64();
                let cause = format!("runtime worker did not become ready within {seconds} s");
                self.start_failed(cause, None, now);
            }
            State::Dying { exit, deadline, .. } if now >= deadline => {
                self.outputs.push_back(LinkOutput::Kill(self.generation));
                self.died(exit, now);
            }
            State::Stopping { stage, deadline } if now >= deadline => {
                let (stage, output) = match stage {
                    Stage::Asked => (Stage::Terminated, LinkOutput::Terminate(self.generation)),
                    Stage::Terminated | Stage::Killed => {
                        (Stage::Killed, LinkOutput::Kill(self.generation))
                    }
                };
                self.outputs.push_back(output);
                let deadline = now + self.config.term_grace;
                self.state = State::Stopping { stage, deadline };
            }
            _ => {}
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.outputs.push_back(LinkOutput::Notice(notice));
    }

    fn write(&mut self, frame: &ToWorker) {
        self.outputs
            .push_back(LinkOutput::Write(self.generation, frame.encode().into()));
    }

    fn spawn(&mut self, now: Instant) {
        self.generation.0 += 1;
        self.opened.clear();
        self.state = State::Starting {
            deadline: now + self.config.start_timeout,
        };
        self.outputs.push_back(LinkOutput::Spawn(self.generation));
    }

    fn send_call(&mut self, call: Call) {
        let call_id = call.call_id.clone();
        let body = ToWorker::Call(call).encode();
        if let Err(e) = framing::header(body.len()) {
            let error = RemoteError::new(
                ErrorType::FrameTooLarge,
                format!("remote call could not be delivered to the worker: {e}"),
            );
            self.outputs
                .push_back(LinkOutput::Outcome(Outcome::error(call_id, error)));
            return;
        }
        self.running.insert(call_id);
        self.outputs
            .push_back(LinkOutput::Write(self.generation, body.into()));
    }

    fn ready(&mut self) {
        if !matches!(self.state, State::Starting { .. }) {
            return;
        }
        self.failures = 0;
        self.state = State::Ready;
        for namespace in self.opened.clone() {
            self.flush_held(&namespace);
        }
        while let Some(call) = self.waiting.pop_front() {
            self.send_call(call);
        }
    }

    fn outcome(&mut self, outcome: Outcome) {
        if self.running.remove(&outcome.call_id) {
            self.outputs.push_back(LinkOutput::Outcome(outcome));
        } else {
            self.notice(Notice::UnknownOutcome(outcome.call_id));
        }
    }

    fn open(&mut self, namespace: Namespace) {
        if namespace.is_reserved() {
            self.notice(Notice::Reserved(namespace));
            return;
        }
        if matches!(self.state, State::Ready) {
            self.flush_held(&namespace);
        }
        self.opened.insert(namespace);
    }

    fn flush_held(&mut self, namespace: &Namespace) {
        for event in self
            .held
            .remove(namespace)
            .into_iter()
            .flat_map(|held| held.events)
        {
            self.write(&ToWorker::SioInbound(event));
        }
    }

    fn hold(&mut self, event: PipeEvent) {
        let namespace = event.namespace.clone();
        if !self.held.contains_key(&namespace) && self.held.len() >= MAX_HELD_NAMESPACES {
            self.notice(Notice::HeldDropped { namespace });
            return;
        }
        let held = self.held.entry(namespace.clone()).or_default();
        held.bytes += event.data.len() + event.event.len();
        held.events.push_back(event);
        let mut dropped = false;
        while held.events.len() > HELD_EVENTS || held.bytes > HELD_BYTES {
            let Some(oldest) = held.events.pop_front() else {
                break;
            };
            held.bytes -= oldest.data.len() + oldest.event.len();
            dropped = true;
        }
        if dropped && !held.reported {
            held.reported = true;
            self.notice(Notice::HeldDropped { namespace });
        }
    }

    fn dying(&mut self, exit: Option<Exit>, end_of_stream: bool, now: Instant) {
        let was_ready = matches!(self.state, State::Ready);
        let deadline = now + self.config.exit_grace;
        self.state = State::Dying {
            was_ready,
            exit,
            end_of_stream,
            deadline,
        };
    }

    fn died(&mut self, exit: Option<Exit>, now: Instant) {
        let cause = exit.map_or_else(|| "stdout closed".to_owned(), |exit| exit.to_string());
        let returncode = exit.map(Exit::returncode);
        if matches!(
            self.state,
            State::Dying {
                was_ready: false,
                ..
            }
        ) {
            let cause = format!("runtime worker exited before ready ({cause})");
            self.start_failed(cause, returncode, now);
            return;
        }
        let mut running: Vec<CallId> = self.running.drain().collect();
        running.sort();
        self.notice(Notice::WorkerEnded {
            cause: cause.clone(),
            calls: running.len(),
        });
        let error = RemoteError {
            returncode,
            ..RemoteError::new(
                ErrorType::WorkerDied,
                format!("runtime worker exited: {cause}"),
            )
        };
        for id in running {
            self.outputs
                .push_back(LinkOutput::Outcome(Outcome::error(id, error.clone())));
        }
        self.opened.clear();
        self.state = State::Idle { retry_at: None };
        if !self.waiting.is_empty() {
            self.spawn(now);
        }
    }

    fn start_failed(&mut self, cause: String, returncode: Option<i64>, now: Instant) {
        let pause = self
            .config
            .backoff_initial
            .saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX))
            .min(self.config.backoff_max);
        self.failures = (self.failures + 1).min(31);
        self.last_failure = RemoteError {
            returncode,
            ..RemoteError::new(ErrorType::WorkerUnavailable, cause.clone())
        };
        self.notice(Notice::StartFailed {
            cause,
            retry_in: pause,
        });
        while let Some(call) = self.waiting.pop_front() {
            let error = self.last_failure.clone();
            self.outputs
                .push_back(LinkOutput::Outcome(Outcome::error(call.call_id, error)));
        }
        self.opened.clear();
        self.state = State::Idle {
            retry_at: Some(now + pause),
        };
    }

    fn stopped(&mut self, exit: Option<Exit>) {
        let cause = exit.map_or_else(|| "no worker".to_owned(), |exit| exit.to_string());
        let error = RemoteError {
            returncode: exit.map(Exit::returncode),
            ..RemoteError::new(
                ErrorType::WorkerDied,
                format!("runtime worker exited: {cause} (the runtime is shutting down)"),
            )
        };
        let mut ids: Vec<CallId> = self.running.drain().collect();
        ids.sort();
        ids.extend(self.waiting.drain(..).map(|call| call.call_id));
        for id in ids {
            self.outputs
                .push_back(LinkOutput::Outcome(Outcome::error(id, error.clone())));
        }
        self.state = State::Stopped;
        self.outputs.push_back(LinkOutput::Stopped);
    }
}
