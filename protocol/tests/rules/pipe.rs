//! Frames between a runtime and its worker, from the runtime's end.

use std::time::Instant;

use agentix_protocol::codec::Value;
use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::frame::{FromWorker, PipeEvent, ToWorker};
use agentix_protocol::framing::{self, FrameDecoder};
use agentix_protocol::ident::{CallId, Namespace};
use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::link::{Exit, Generation, Link, LinkConfig, LinkOutput, Notice};
use agentix_protocol::message::{Call, Outcome};
use bytes::Bytes;

use crate::messages::{call, id, value};

pub(crate) const FIRST: Generation = Generation(1);
pub(crate) const SECOND: Generation = Generation(2);

pub(crate) struct Pipe {
    pub(crate) link: Link,
    pub(crate) now: Instant,
}

pub(crate) fn write(generation: Generation, frame: &ToWorker) -> LinkOutput {
    LinkOutput::Write(generation, frame.encode().into())
}

pub(crate) fn event(namespace: &str, data: usize) -> PipeEvent {
    PipeEvent {
        namespace: Namespace::new(namespace).unwrap(),
        event: "e".into(),
        data: Value::Bin(vec![0; data].into()).encode().unwrap().into(),
    }
}

/// Type and return code of each outcome that is an error.
pub(crate) fn errors(outputs: &[LinkOutput]) -> Vec<(CallId, ErrorType, Option<i64>)> {
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
    pub(crate) fn new() -> Self {
        Self {
            link: Link::new(LinkConfig::default()),
            now: Instant::now(),
        }
    }

    /// With a worker that is ready and runs call 1.
    pub(crate) fn running() -> Self {
        let mut p = Self::new();
        assert_eq!(p.call(1), [LinkOutput::Spawn(FIRST)]);
        assert_eq!(
            p.frame(FIRST, &FromWorker::Ready),
            [write(FIRST, &ToWorker::Call(call(1)))]
        );
        p
    }

    pub(crate) fn drain(&mut self) -> Vec<LinkOutput> {
        std::iter::from_fn(|| self.link.poll_output()).collect()
    }

    pub(crate) fn call(&mut self, n: u128) -> Vec<LinkOutput> {
        self.link.call(call(n), self.now);
        self.drain()
    }

    pub(crate) fn cancel(&mut self, n: u128) -> Vec<LinkOutput> {
        self.link.cancel(&id(n));
        self.drain()
    }

    pub(crate) fn event(&mut self, event: PipeEvent) -> Vec<LinkOutput> {
        self.link.event(event);
        self.drain()
    }

    pub(crate) fn frame(&mut self, generation: Generation, frame: &FromWorker) -> Vec<LinkOutput> {
        self.body(generation, frame.encode())
    }

    pub(crate) fn body(&mut self, generation: Generation, body: Vec<u8>) -> Vec<LinkOutput> {
        self.link.frame(generation, &body.into(), self.now);
        self.drain()
    }

    pub(crate) fn ends(&mut self, generation: Generation, exit: Exit) -> Vec<LinkOutput> {
        self.link.end_of_stream(generation, self.now);
        self.link.exited(generation, exit, self.now);
        self.drain()
    }

    /// Lets the next timer fire.
    pub(crate) fn timer(&mut self) -> Vec<LinkOutput> {
        self.now = self.link.poll_timeout().expect("a timer runs");
        self.link.timeout(self.now);
        self.drain()
    }
}

/// A `result` or `error` frame for call 1 with these other bytes.
fn terminal(head: &[u8], rest: &[u8]) -> Vec<u8> {
    let id = id(1);
    let mut body = head.to_vec();
    body.extend_from_slice(b"\xa7call_id\xd9\x20");
    body.extend_from_slice(id.as_str().as_bytes());
    body.extend_from_slice(rest);
    body
}

#[test]
fn agx_pipe_001_a_frame_is_its_length_and_its_body() {
    assert_eq!(framing::header(0x0001_0203), Ok([3, 2, 1, 0]));
}

#[test]
fn agx_pipe_002_a_body_above_the_limit_is_not_written() {
    assert!(framing::header(MAX_MESSAGE_BYTES).is_ok());
    assert!(framing::header(MAX_MESSAGE_BYTES + 1).is_err());
}

#[test]
fn agx_pipe_004_frames_are_read_wherever_they_are_split() {
    let bodies = [&b"\x80"[..], b"", b"\x81\xa4type\xa5ready"];
    let mut stream = Vec::new();
    for body in bodies {
        stream.extend_from_slice(&framing::header(body.len()).unwrap());
        stream.extend_from_slice(body);
    }
    for first in 0..=stream.len() {
        let mut decoder = FrameDecoder::default();
        let mut frames = Vec::new();
        for part in [&stream[..first], &stream[first..]] {
            decoder.buffer_mut().extend_from_slice(part);
            while let Some(frame) = decoder.next_frame().unwrap() {
                frames.push(frame);
            }
        }
        assert_eq!(frames, bodies);
    }
}

#[test]
fn agx_pipe_005_an_empty_body_is_ignored() {
    let mut p = Pipe::running();
    assert_eq!(p.body(FIRST, vec![]), []);
    assert_eq!(
        p.frame(FIRST, &FromWorker::Outcome(value(1))),
        [LinkOutput::Outcome(value(1))]
    );
}

#[test]
fn agx_pipe_006_a_body_that_does_not_decode_is_lost_alone() {
    let mut p = Pipe::running();
    for body in [vec![0xc1], vec![0x90], vec![0x80, 0x80]] {
        let outputs = p.body(FIRST, body);
        assert!(
            matches!(outputs[..], [LinkOutput::Notice(Notice::BadFrame(_))]),
            "{outputs:?}"
        );
    }
    assert_eq!(
        p.frame(FIRST, &FromWorker::Outcome(value(1))),
        [LinkOutput::Outcome(value(1))]
    );
}

#[test]
fn agx_pipe_007_a_length_above_the_limit_is_a_lost_pipe() {
    let mut decoder = FrameDecoder::default();
    let too_long = MAX_MESSAGE_BYTES as u32 + 1;
    decoder
        .buffer_mut()
        .extend_from_slice(&too_long.to_le_bytes());
    let error = decoder.next_frame().unwrap_err();
    let mut p = Pipe::running();
    p.link.pipe_lost(FIRST, error, p.now);
    assert_eq!(
        p.drain(),
        [
            LinkOutput::Notice(Notice::PipeLost(error)),
            LinkOutput::Kill(FIRST)
        ]
    );
    p.link.exited(FIRST, Exit::Signal(9), p.now);
    let died = (id(1), ErrorType::WorkerDied, Some(-9));
    assert_eq!(errors(&p.drain()), [died]);
}

#[test]
fn agx_pipe_009_nothing_is_allocated_from_a_length() {
    let mut decoder = FrameDecoder::default();
    decoder
        .buffer_mut()
        .extend_from_slice(&(MAX_MESSAGE_BYTES as u32).to_le_bytes());
    assert_eq!(decoder.next_frame(), Ok(None));
    assert!(decoder.buffer_mut().capacity() < 1 << 20);
}

#[test]
fn agx_pipe_010_the_end_of_output_is_a_lost_pipe() {
    let mut p = Pipe::running();
    assert_eq!(errors(&p.ends(FIRST, Exit::Code(0))).len(), 1);
}

#[test]
fn agx_pipe_012_a_frame_without_a_known_type_is_ignored_with_a_line() {
    let mut p = Pipe::running();
    for body in [
        vec![0x80],
        b"\x81\xa4type\xa5weird".to_vec(),
        b"\x81\xa4type\x07".to_vec(),
    ] {
        let outputs = p.body(FIRST, body);
        assert!(
            matches!(outputs[..], [LinkOutput::Notice(Notice::BadFrame(_))]),
            "{outputs:?}"
        );
    }
}

#[test]
fn agx_pipe_013_unknown_keys_are_ignored() {
    let mut p = Pipe::running();
    // {"type": "result", "call_id": .., "value": bin, "new": nil}
    let body = terminal(
        b"\x84\xa4type\xa6result",
        b"\xa5value\xc4\x07value 1\xa3new\xc0",
    );
    assert_eq!(p.body(FIRST, body), [LinkOutput::Outcome(value(1))]);
}

#[test]
fn agx_pipe_014_a_map_in_an_extension_may_be_read_as_the_map() {
    let mut p = Pipe::running();
    // {"type": "error", "call_id": .., "error": ext 2 of {"type": "T", "message": "m"}}
    let body = terminal(
        b"\x83\xa4type\xa5error",
        b"\xa5error\xc7\x12\x02\x82\xa4type\xa1T\xa7message\xa1m",
    );
    let outputs = p.body(FIRST, body);
    // Read as that map, or refused as no map: an error of this call either way.
    let [(call, error, None)] = &errors(&outputs)[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(*call, id(1));
    assert!([ErrorType::from("T"), ErrorType::ResultEncodeError].contains(error));
}

#[test]
fn agx_pipe_021_a_call_frame_always_has_a_context() {
    // {"type": "call", ..., "context": nil}
    let body = ToWorker::Call(call(1)).encode();
    assert!(body.ends_with(b"\xa7context\xc0"));
}

#[test]
fn agx_pipe_022_a_frame_carries_what_it_stands_for() {
    let sent = Call {
        arguments: Bytes::from_static(b"any \xff bytes"),
        context: Some(Bytes::from_static(b"context")),
        ..call(7)
    };
    let mut p = Pipe::running();
    p.link.call(sent.clone(), p.now);
    let outputs = p.drain();
    let [LinkOutput::Write(FIRST, body)] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(ToWorker::decode(body), Ok(ToWorker::Call(sent)));
    let mut error = RemoteError::new("my.Error".into(), "message");
    error.traceback = Some("trace".into());
    let failed = Outcome::error(id(7), error);
    assert_eq!(
        p.frame(FIRST, &FromWorker::Outcome(failed.clone())),
        [LinkOutput::Outcome(failed)]
    );
}

#[test]
fn agx_pipe_024_a_terminal_frame_that_cannot_be_read_ends_its_call() {
    for (head, rest) in [
        // A `result` without a value, with a str for one; an `error` without a map.
        (&b"\x82\xa4type\xa6result"[..], &b""[..]),
        (b"\x83\xa4type\xa6result", b"\xa5value\xa1v"),
        (b"\x82\xa4type\xa5error", b""),
        (b"\x83\xa4type\xa5error", b"\xa5error\x07"),
    ] {
        let mut p = Pipe::running();
        let outputs = p.body(FIRST, terminal(head, rest));
        let failed = (id(1), ErrorType::ResultEncodeError, None);
        assert_eq!(errors(&outputs), [failed]);
        assert_eq!(
            p.frame(FIRST, &FromWorker::Outcome(value(1))),
            [LinkOutput::Notice(Notice::UnknownOutcome(id(1)))]
        );
    }
}

#[test]
fn agx_pipe_025_frames_go_out_in_the_order_of_their_causes() {
    let mut p = Pipe::running();
    p.link.call(call(2), p.now);
    p.link.cancel(&id(2));
    p.link.call(call(3), p.now);
    assert_eq!(
        p.drain(),
        [
            write(FIRST, &ToWorker::Call(call(2))),
            write(FIRST, &ToWorker::Cancel(id(2))),
            write(FIRST, &ToWorker::Call(call(3)))
        ]
    );
}

#[test]
fn agx_call_023_a_terminal_frame_answers_the_running_call_that_it_names() {
    let mut p = Pipe::running();
    p.call(2);
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

#[test]
fn agx_call_056_a_call_that_is_cancelled_while_it_waits_is_never_sent() {
    let mut p = Pipe::new();
    p.call(1);
    p.call(2);
    assert_eq!(p.cancel(1), []);
    assert_eq!(
        p.frame(FIRST, &FromWorker::Ready),
        [write(FIRST, &ToWorker::Call(call(2)))]
    );
    assert_eq!(p.cancel(2), [write(FIRST, &ToWorker::Cancel(id(2)))]);
    assert_eq!(p.cancel(3), []);
}

#[test]
fn agx_call_075_a_call_whose_frame_is_too_large_fails_alone() {
    // The frame has one more field than the event: `type`.
    let overhead = call(2).encode().len() - call(2).arguments.len();
    let arguments = Bytes::from(vec![0; MAX_MESSAGE_BYTES - overhead - 3]);
    let large = Call {
        arguments,
        ..call(2)
    };
    assert_eq!(large.encode().len(), MAX_MESSAGE_BYTES);
    let mut p = Pipe::running();
    p.link.call(large, p.now);
    let failed = (id(2), ErrorType::FrameTooLarge, None);
    assert_eq!(errors(&p.drain()), [failed]);
    assert_eq!(p.call(3), [write(FIRST, &ToWorker::Call(call(3)))]);
    assert_eq!(
        p.frame(FIRST, &FromWorker::Outcome(value(1))),
        [LinkOutput::Outcome(value(1))]
    );
}
