//! The runtime's end of the pipe, rule by rule. Time is virtual.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use agentix_protocol::codec::Value;
use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::frame::{FromWorker, PipeEvent, ToWorker};
use agentix_protocol::framing::FrameTooLong;
use agentix_protocol::ident::{CallId, Namespace};
use agentix_protocol::link::{Exit, Generation, Link, LinkConfig, LinkOutput, Notice};
use agentix_protocol::message::{Call, Outcome};
use bytes::Bytes;

struct Pipe {
    link: Link,
    now: Instant,
}

const FIRST: Generation = Generation(1);
const SECOND: Generation = Generation(2);

fn id(n: u128) -> CallId {
    CallId::from_random(n)
}

fn call(n: u128) -> Call {
    Call {
        call_id: id(n),
        callable: "app::run".into(),
        arguments: Bytes::from_static(b"\x80\x04)}\x86."),
        context: None,
    }
}

fn value(n: u128) -> Outcome {
    Outcome::value(id(n), Bytes::from_static(b"N."))
}

fn write(generation: Generation, frame: &ToWorker) -> LinkOutput {
    LinkOutput::Write(generation, frame.encode().into())
}

fn event(namespace: &str, data: usize) -> PipeEvent {
    PipeEvent {
        namespace: Namespace::new(namespace).unwrap(),
        event: "e".into(),
        data: Value::Bin(vec![0; data].into()).encode().unwrap().into(),
    }
}

fn errors(outputs: &[LinkOutput]) -> Vec<(CallId, ErrorType, Option<i64>)> {
    outputs
        .iter()
        .filter_map(|output| match output {
            LinkOutput::Outcome(Outcome {
                call_id,
                result: Err(e),
            }) => Some((call_id.clone(), e.error_type.clone(), e.returncode)),
            _ => None,
        })
        .collect()
}

impl Pipe {
    fn new() -> Self {
        Self {
            link: Link::new(LinkConfig::default()),
            now: Instant::now(),
        }
    }

    /// With a worker that is ready and runs call 1.
    fn running() -> Self {
        let mut p = Self::new();
        assert_eq!(p.call(1), [LinkOutput::Spawn(FIRST)]);
        assert_eq!(
            p.frame(FIRST, &FromWorker::Ready),
            [write(FIRST, &ToWorker::Call(call(1)))]
        );
        p
    }

    fn drain(&mut self) -> Vec<LinkOutput> {
        std::iter::from_fn(|| self.link.poll_output()).collect()
    }

    fn call(&mut self, n: u128) -> Vec<LinkOutput> {
        self.link.call(call(n), self.now);
        self.drain()
    }

    fn frame(&mut self, generation: Generation, frame: &FromWorker) -> Vec<LinkOutput> {
        self.body(generation, frame.encode())
    }

    fn body(&mut self, generation: Generation, body: Vec<u8>) -> Vec<LinkOutput> {
        self.link.frame(generation, &body.into(), self.now);
        self.drain()
    }

    fn ends(&mut self, generation: Generation, exit: Exit) -> Vec<LinkOutput> {
        self.link.end_of_stream(generation, self.now);
        self.link.exited(generation, exit, self.now);
        self.drain()
    }

    /// Lets the next timer fire.
    fn timer(&mut self) -> Vec<LinkOutput> {
        self.now = self.link.poll_timeout().expect("a timer runs");
        self.link.timeout(self.now);
        self.drain()
    }
}

/// AGX-WRK: spawned by the first call, not by events.
#[test]
fn the_first_call_starts_the_worker() {
    let mut p = Pipe::new();
    p.link.event(event("/app", 1));
    assert_eq!(p.drain(), []);
    assert_eq!(p.call(1), [LinkOutput::Spawn(FIRST)]);
    assert_eq!(p.call(2), []);
    assert_eq!(
        p.frame(FIRST, &FromWorker::Ready),
        [
            write(FIRST, &ToWorker::Call(call(1))),
            write(FIRST, &ToWorker::Call(call(2)))
        ]
    );
    assert_eq!(
        p.frame(FIRST, &FromWorker::Outcome(value(2))),
        [LinkOutput::Outcome(value(2))]
    );
    // Only once, and only for calls that it has.
    for n in [2, 7] {
        let ignored = [LinkOutput::Notice(Notice::UnknownOutcome(id(n)))];
        assert_eq!(p.frame(FIRST, &FromWorker::Outcome(value(n))), ignored);
    }
}

/// AGX-CALL-056: a call that is cancelled while it waits is never sent.
#[test]
fn cancel_while_waiting_and_while_running() {
    let mut p = Pipe::new();
    p.call(1);
    p.call(2);
    p.link.cancel(&id(1));
    assert_eq!(
        p.frame(FIRST, &FromWorker::Ready),
        [write(FIRST, &ToWorker::Call(call(2)))]
    );
    p.link.cancel(&id(2));
    assert_eq!(p.drain(), [write(FIRST, &ToWorker::Cancel(id(2)))]);
    p.link.cancel(&id(3));
    assert_eq!(p.drain(), []);
}

/// AGX-CALL-070, -071: death fails every running call with the return code.
#[test]
fn death_fails_running_calls_and_the_next_call_gets_a_new_worker() {
    for (exit, code) in [
        (Exit::Code(3), 3),
        (Exit::Signal(9), -9),
        (Exit::Code(0), 0),
    ] {
        let mut p = Pipe::running();
        p.call(2);
        let outputs = p.ends(FIRST, exit);
        let died = |n| (id(n), ErrorType::WorkerDied, Some(code));
        assert_eq!(errors(&outputs), [died(1), died(2)]);
        assert_eq!(p.call(3), [LinkOutput::Spawn(SECOND)]);
        // What the dead worker left behind means nothing.
        assert_eq!(p.frame(FIRST, &FromWorker::Ready), []);
        assert_eq!(p.ends(FIRST, exit), []);
        assert_eq!(
            p.frame(SECOND, &FromWorker::Ready),
            [write(SECOND, &ToWorker::Call(call(3)))]
        );
    }
}

/// What is in the pipe comes before the exit status.
#[test]
fn results_in_the_pipe_outlive_the_worker() {
    let mut p = Pipe::running();
    p.call(2);
    p.link.exited(FIRST, Exit::Code(0), p.now);
    assert_eq!(p.drain(), []);
    // A call that comes now waits for the next worker.
    assert_eq!(p.call(3), []);
    assert_eq!(
        p.frame(FIRST, &FromWorker::Outcome(value(1))),
        [LinkOutput::Outcome(value(1))]
    );
    p.link.end_of_stream(FIRST, p.now);
    let outputs = p.drain();
    assert_eq!(errors(&outputs), [(id(2), ErrorType::WorkerDied, Some(0))]);
    assert_eq!(outputs.last(), Some(&LinkOutput::Spawn(SECOND)));
}

/// A stream that ends without an exit: 2 s, then the worker is killed.
#[test]
fn a_closed_stream_waits_two_seconds_for_the_exit_status() {
    let mut p = Pipe::running();
    p.link.end_of_stream(FIRST, p.now);
    assert_eq!(p.drain(), []);
    let before = p.now;
    let outputs = p.timer();
    assert_eq!(p.now - before, Duration::from_secs(2));
    assert_eq!(outputs[0], LinkOutput::Kill(FIRST));
    assert_eq!(errors(&outputs), [(id(1), ErrorType::WorkerDied, None)]);
}

/// AGX-PIPE: a length above the limit is a lost pipe.
#[test]
fn a_lost_pipe_kills_the_worker() {
    let mut p = Pipe::running();
    let error = FrameTooLong {
        len: 1 << 30,
        limit: 1 << 28,
    };
    p.link.pipe_lost(FIRST, error, p.now);
    assert_eq!(
        p.drain(),
        [
            LinkOutput::Notice(Notice::PipeLost(error)),
            LinkOutput::Kill(FIRST)
        ]
    );
    p.link.exited(FIRST, Exit::Signal(9), p.now);
    assert_eq!(
        errors(&p.drain()),
        [(id(1), ErrorType::WorkerDied, Some(-9))]
    );
}

/// AGX-CALL-072, -074: start failures answer at once, with back-off from 0.5 s to 30 s.
#[test]
fn start_failures_back_off() {
    let mut p = Pipe::new();
    let mut pause = Duration::from_millis(500);
    for attempt in 1..=9_u64 {
        let generation = Generation(attempt);
        assert_eq!(p.call(attempt.into()), [LinkOutput::Spawn(generation)]);
        assert_eq!(p.call(100), []);
        let outputs = match attempt % 3 {
            0 => {
                p.link.spawn_failed(generation, "no such file", p.now);
                p.drain()
            }
            1 => p.ends(generation, Exit::Code(3)),
            _ => {
                let error = RemoteError::new(ErrorType::from("ImportError"), "no app");
                p.frame(generation, &FromWorker::BootError(error))
            }
        };
        let code = (attempt % 3 == 1).then_some(3);
        let failed = |n| (id(n), ErrorType::WorkerUnavailable, code);
        assert_eq!(errors(&outputs), [failed(attempt.into()), failed(100)]);
        // During the pause a call gets the last failure at once.
        p.now += pause - Duration::from_millis(1);
        assert_eq!(errors(&p.call(200)), [failed(200)]);
        p.now += Duration::from_millis(1);
        pause = (pause * 2).min(Duration::from_secs(30));
    }
    // A start that succeeds forgives.
    assert_eq!(p.call(1), [LinkOutput::Spawn(Generation(10))]);
    p.frame(Generation(10), &FromWorker::Ready);
    p.ends(Generation(10), Exit::Code(0));
    assert_eq!(p.call(2), [LinkOutput::Spawn(Generation(11))]);
    p.ends(Generation(11), Exit::Code(1));
    p.now += Duration::from_millis(500);
    assert_eq!(p.call(3), [LinkOutput::Spawn(Generation(12))]);
}

/// A worker that is never ready: 15 s.
#[test]
fn a_worker_that_is_never_ready_is_killed() {
    let mut p = Pipe::new();
    p.call(1);
    let before = p.now;
    let outputs = p.timer();
    assert_eq!(p.now - before, Duration::from_secs(15));
    assert_eq!(outputs[0], LinkOutput::Kill(FIRST));
    assert_eq!(
        errors(&outputs),
        [(id(1), ErrorType::WorkerUnavailable, None)]
    );
}

/// AGX-PIPE: a frame that does not decode is lost alone.
#[test]
fn bad_frames_are_lost_alone() {
    let mut p = Pipe::running();
    assert_eq!(p.body(FIRST, vec![]), []);
    for body in [
        vec![0xc1],
        vec![0x90],
        b"\x81\xa4type\xa5weird".to_vec(),
        vec![0x80],
    ] {
        let outputs = p.body(FIRST, body);
        assert!(
            matches!(outputs[..], [LinkOutput::Notice(Notice::BadFrame(_))]),
            "{outputs:?}"
        );
    }
    // A result that cannot be read ends its call all the same.
    let mut body = b"\x82\xa4type\xa6result\xa7call_id\xd9\x20".to_vec();
    body.extend_from_slice(id(1).as_str().as_bytes());
    let outputs = p.body(FIRST, body);
    assert_eq!(
        errors(&outputs),
        [(id(1), ErrorType::ResultEncodeError, None)]
    );
}

/// AGX-SIDE: the worker's own namespaces only, in pipe order.
#[test]
fn events_are_relayed_and_held() {
    let mut p = Pipe::running();
    let app = Namespace::new("/app").unwrap();
    // Held until the namespace opens, then sent in order.
    p.link.event(event("/app", 1));
    p.link.event(event("/app", 2));
    assert_eq!(p.drain(), []);
    assert_eq!(
        p.frame(FIRST, &FromWorker::SioOpen(app)),
        [
            write(FIRST, &ToWorker::SioInbound(event("/app", 1))),
            write(FIRST, &ToWorker::SioInbound(event("/app", 2)))
        ]
    );
    p.link.event(event("/app", 3));
    assert_eq!(
        p.drain(),
        [write(FIRST, &ToWorker::SioInbound(event("/app", 3)))]
    );
    assert_eq!(
        p.frame(FIRST, &FromWorker::SioEmit(event("/app", 4))),
        [LinkOutput::Emit(event("/app", 4))]
    );
    for reserved in ["/", "/rpc"] {
        let namespace = Namespace::new(reserved).unwrap();
        let refused = [LinkOutput::Notice(Notice::Reserved(namespace.clone()))];
        assert_eq!(
            p.frame(FIRST, &FromWorker::SioEmit(event(reserved, 1))),
            refused
        );
        assert_eq!(p.frame(FIRST, &FromWorker::SioOpen(namespace)), refused);
    }
    // A new worker has opened nothing.
    p.ends(FIRST, Exit::Code(0));
    p.call(2);
    p.frame(SECOND, &FromWorker::Ready);
    p.link.event(event("/app", 5));
    assert_eq!(p.drain(), []);
}

/// AGX-SIDE: at most 1,024 events or 1 MiB for a namespace that is not open, said once.
#[test]
fn held_events_are_bounded() {
    for (size, kept) in [(1, 1024), (1 << 18, 3)] {
        let mut p = Pipe::running();
        for _ in 0..1100 {
            p.link.event(event("/app", size));
        }
        assert!(matches!(
            p.drain()[..],
            [LinkOutput::Notice(Notice::HeldDropped { .. })]
        ));
        let app = Namespace::new("/app").unwrap();
        assert_eq!(p.frame(FIRST, &FromWorker::SioOpen(app)).len(), kept);
    }
    // So is the number of namespaces.
    let mut p = Pipe::running();
    for n in 0..1025 {
        p.link.event(event(&format!("/n{n}"), 1));
    }
    assert!(matches!(
        p.drain()[..],
        [LinkOutput::Notice(Notice::HeldDropped { .. })]
    ));
}

/// AGX-WRK: shutdown, 5 s, SIGTERM, 2 s, SIGKILL.
#[test]
fn shutdown_escalates_and_ends_every_call() {
    let mut p = Pipe::running();
    p.link.shutdown(p.now);
    assert_eq!(
        p.drain(),
        [
            write(FIRST, &ToWorker::Shutdown),
            LinkOutput::CloseInput(FIRST)
        ]
    );
    let start = p.now;
    assert_eq!(p.timer(), [LinkOutput::Terminate(FIRST)]);
    assert_eq!(p.timer(), [LinkOutput::Kill(FIRST)]);
    assert_eq!(p.now - start, Duration::from_secs(7));
    // Results that still come are results.
    p.link.exited(FIRST, Exit::Signal(9), p.now);
    let outputs = p.drain();
    assert_eq!(errors(&outputs), [(id(1), ErrorType::WorkerDied, Some(-9))]);
    assert_eq!(outputs.last(), Some(&LinkOutput::Stopped));
    assert_eq!(
        errors(&p.call(2)),
        [(id(2), ErrorType::WorkerUnavailable, None)]
    );
    assert_eq!(p.link.poll_timeout(), None);
    let mut idle = Pipe::new();
    idle.link.shutdown(idle.now);
    assert_eq!(idle.drain(), [LinkOutput::Stopped]);
}
