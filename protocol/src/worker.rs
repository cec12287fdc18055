//! The worker's end of the pipe: which calls run, which are closed, when to leave.
//!
//! ```text
//!   call                      finished
//!  ──────► Running ───────────────────────► Closed
//!             │ cancel: one Cancelled frame
//!             └──► Cancelled ── finished ──► Closed   (its late outcome is dropped)
//! ```
//!
//! Feed one input, then drain [`Dispatcher::poll_output`].

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use crate::closed::ClosedIds;
use crate::error::{ErrorType, RemoteError};
use crate::frame::{BadFrame, FromWorker, PipeEvent, ToWorker};
use crate::framing::{self, FrameTooLong};
use crate::ident::CallId;
use crate::message::{Call, Outcome};

/// Exit code after an orderly end.
pub const EXIT_ORDERLY: u8 = 0;
/// Exit code after a stream that cannot be followed.
pub const EXIT_PIPE_LOST: u8 = 1;

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerOutput {
    /// Run a function; report with [`Dispatcher::finished`].
    Start(Call),
    /// Stop a running function, best effort. Its outcome will be dropped.
    Abort(CallId),
    /// Write a frame with this body to the runtime.
    Write(Bytes),
    /// A host sent an event on a side channel.
    Inbound(PipeEvent),
    /// Write a line to stderr.
    Notice(WorkerNotice),
    /// Stop all functions, flush what was written, and exit with this code.
    Exit(u8),
}

/// Something that an operator should see on the worker's stderr.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerNotice {
    /// A frame was lost, alone.
    #[error("lost one frame from the runtime: {0}")]
    BadFrame(BadFrame),
    /// A call came a second time and was not run.
    #[error("ignored a second call with id {0}")]
    Repeated(CallId),
    /// The stream cannot be followed any further.
    #[error("leaving: {0}")]
    PipeLost(FrameTooLong),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Running,
    Cancelled,
}

/// The machine; see the [module](self).
#[derive(Debug)]
pub struct Dispatcher {
    running: HashMap<CallId, Run>,
    closed: ClosedIds,
    leaving: bool,
    outputs: VecDeque<WorkerOutput>,
}

impl Dispatcher {
    /// A dispatcher that has just started; its first output is the `ready` frame.
    ///
    /// `seed` makes the fingerprints of closed ids unpredictable; pass random bits.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let ready = WorkerOutput::Write(FromWorker::Ready.encode().into());
        Self {
            running: HashMap::new(),
            closed: ClosedIds::new(ClosedIds::DEFAULT_CAPACITY, seed),
            leaving: false,
            outputs: VecDeque::from([ready]),
        }
    }

    /// Takes the next thing to do.
    pub fn poll_output(&mut self) -> Option<WorkerOutput> {
        self.outputs.pop_front()
    }

    /// Calls that have no outcome yet.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// A frame's body came.
    pub fn frame(&mut self, body: &Bytes) {
        if self.leaving {
            return;
        }
        match ToWorker::decode(body) {
            Ok(ToWorker::Call(call)) => self.call(call),
            Ok(ToWorker::Cancel(id)) => self.cancel(&id),
            Ok(ToWorker::Shutdown) => self.leave(EXIT_ORDERLY),
            Ok(ToWorker::SioInbound(event)) => {
                self.outputs.push_back(WorkerOutput::Inbound(event));
            }
            Err(BadFrame::Empty) => {}
            Err(bad) => {
                if let BadFrame::Call(bad_call) = &bad {
                    match &bad_call.call_id {
                        None => {
                            let rejected = FromWorker::Rejected(bad_call.to_error()).encode();
                            self.outputs.push_back(WorkerOutput::Write(rejected.into()));
                        }
                        Some(id) if !self.is_known(id) => {
                            self.write(Outcome::error(id.clone(), bad_call.to_error()));
                        }
                        Some(_) => {}
                    }
                }
                self.outputs
                    .push_back(WorkerOutput::Notice(WorkerNotice::BadFrame(bad)));
            }
        }
    }

    /// The stream ended, or the process was told to stop.
    pub fn stop(&mut self) {
        self.leave(EXIT_ORDERLY);
    }

    /// The stream cannot be followed any further.
    pub fn pipe_lost(&mut self, error: FrameTooLong) {
        self.outputs
            .push_back(WorkerOutput::Notice(WorkerNotice::PipeLost(error)));
        self.leave(EXIT_PIPE_LOST);
    }

    /// A function ended. A result above the limit becomes `FrameTooLarge`.
    pub fn finished(&mut self, id: &CallId, result: Result<Bytes, RemoteError>) {
        let Some(run) = self.running.remove(id) else {
            return;
        };
        self.closed.insert(id);
        if run == Run::Running {
            self.write(Outcome {
                call_id: id.clone(),
                result,
            });
        }
    }

    fn is_known(&self, id: &CallId) -> bool {
        self.running.contains_key(id) || self.closed.contains(id)
    }

    fn call(&mut self, call: Call) {
        if self.is_known(&call.call_id) {
            let notice = WorkerNotice::Repeated(call.call_id);
            self.outputs.push_back(WorkerOutput::Notice(notice));
            return;
        }
        self.running.insert(call.call_id.clone(), Run::Running);
        self.outputs.push_back(WorkerOutput::Start(call));
    }

    fn cancel(&mut self, id: &CallId) {
        if let Some(run @ Run::Running) = self.running.get_mut(id) {
            *run = Run::Cancelled;
            self.write(Outcome::error(id.clone(), RemoteError::cancelled()));
            self.outputs.push_back(WorkerOutput::Abort(id.clone()));
        }
    }

    fn leave(&mut self, code: u8) {
        if !self.leaving {
            self.leaving = true;
            self.outputs.push_back(WorkerOutput::Exit(code));
        }
    }

    fn write(&mut self, outcome: Outcome) {
        let call_id = outcome.call_id.clone();
        let mut body = FromWorker::Outcome(outcome).encode();
        if let Err(e) = framing::header(body.len()) {
            let error = RemoteError::new(
                ErrorType::FrameTooLarge,
                format!("remote call result could not be delivered: {e}"),
            );
            body = FromWorker::Outcome(Outcome::error(call_id, error)).encode();
        }
        self.outputs.push_back(WorkerOutput::Write(body.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> CallId {
        CallId::from_random(n)
    }

    fn call(n: u128) -> Call {
        Call {
            call_id: id(n),
            callable: "conformance::echo".into(),
            arguments: Bytes::from_static(b"\x80\x04)}\x86."),
            context: None,
        }
    }

    fn feed(d: &mut Dispatcher, frame: &ToWorker) -> Vec<WorkerOutput> {
        d.frame(&frame.encode().into());
        drain(d)
    }

    fn drain(d: &mut Dispatcher) -> Vec<WorkerOutput> {
        std::iter::from_fn(|| d.poll_output()).collect()
    }

    fn write(frame: &FromWorker) -> WorkerOutput {
        WorkerOutput::Write(frame.encode().into())
    }

    fn started() -> Dispatcher {
        let mut d = Dispatcher::new(1);
        assert_eq!(drain(&mut d), [write(&FromWorker::Ready)]);
        d
    }

    #[test]
    fn a_call_gives_one_outcome_and_never_runs_again() {
        let mut d = started();
        assert_eq!(
            feed(&mut d, &ToWorker::Call(call(1))),
            [WorkerOutput::Start(call(1))]
        );
        let repeated = [WorkerOutput::Notice(WorkerNotice::Repeated(id(1)))];
        assert_eq!(feed(&mut d, &ToWorker::Call(call(1))), repeated);
        d.finished(&id(1), Ok(Bytes::from_static(b"N.")));
        let outcome = Outcome::value(id(1), Bytes::from_static(b"N."));
        assert_eq!(drain(&mut d), [write(&FromWorker::Outcome(outcome))]);
        d.finished(&id(1), Ok(Bytes::new()));
        assert_eq!(drain(&mut d), []);
        assert_eq!(feed(&mut d, &ToWorker::Call(call(1))), repeated);
    }

    #[test]
    fn a_cancelled_call_ends_once() {
        let mut d = started();
        feed(&mut d, &ToWorker::Call(call(1)));
        let cancelled = Outcome::error(id(1), RemoteError::cancelled());
        assert_eq!(
            feed(&mut d, &ToWorker::Cancel(id(1))),
            [
                write(&FromWorker::Outcome(cancelled)),
                WorkerOutput::Abort(id(1))
            ]
        );
        assert_eq!(feed(&mut d, &ToWorker::Cancel(id(1))), []);
        d.finished(&id(1), Ok(Bytes::new()));
        assert_eq!(drain(&mut d), []);
        assert_eq!(feed(&mut d, &ToWorker::Cancel(id(2))), []);
    }

    #[test]
    fn a_bad_frame_is_lost_alone() {
        let mut d = started();
        d.frame(&Bytes::from_static(&[0xc1]));
        assert!(matches!(
            drain(&mut d)[..],
            [WorkerOutput::Notice(WorkerNotice::BadFrame(
                BadFrame::Codec(_)
            ))]
        ));
        d.frame(&Bytes::new());
        assert_eq!(drain(&mut d), []);
        assert_eq!(
            feed(&mut d, &ToWorker::Call(call(1))),
            [WorkerOutput::Start(call(1))]
        );
    }

    #[test]
    fn a_call_without_arguments_is_answered() {
        let mut d = started();
        // {"type": "call", "call_id": "c"}
        d.frame(&Bytes::from_static(b"\x82\xa4type\xa4call\xa7call_id\xa1c"));
        let outputs = drain(&mut d);
        let [WorkerOutput::Write(body), WorkerOutput::Notice(_)] = &outputs[..] else {
            panic!("{outputs:?}")
        };
        let Ok(FromWorker::Outcome(outcome)) = FromWorker::decode(body) else {
            panic!()
        };
        assert_eq!(
            outcome.result.unwrap_err().error_type,
            ErrorType::BadRequest
        );
    }

    #[test]
    fn a_call_without_an_id_is_answered_with_the_empty_one() {
        let mut d = started();
        // {"type": "call", "call_id": 7}
        d.frame(&Bytes::from_static(b"\x82\xa4type\xa4call\xa7call_id\x07"));
        let outputs = drain(&mut d);
        let [WorkerOutput::Write(body), WorkerOutput::Notice(_)] = &outputs[..] else {
            panic!("{outputs:?}")
        };
        let Ok(FromWorker::Rejected(error)) = FromWorker::decode(body) else {
            panic!("{body:?}")
        };
        assert_eq!(error.error_type, ErrorType::BadRequest);
    }

    #[test]
    fn shutdown_ends_everything_once() {
        let mut d = started();
        feed(&mut d, &ToWorker::Call(call(1)));
        assert_eq!(
            feed(&mut d, &ToWorker::Shutdown),
            [WorkerOutput::Exit(EXIT_ORDERLY)]
        );
        assert_eq!(feed(&mut d, &ToWorker::Call(call(2))), []);
        d.stop();
        assert_eq!(drain(&mut d), []);
    }
}
