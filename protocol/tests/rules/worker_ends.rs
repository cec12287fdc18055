//! What becomes of calls whose worker ends or does not start.

use std::time::Duration;

use agentix_protocol::error::ErrorType;
use agentix_protocol::frame::FromWorker;
use agentix_protocol::link::{Exit, LinkOutput, Notice};
use agentix_protocol::message::Outcome;

use crate::messages::{id, value};
use crate::pipe::{FIRST, Pipe, SECOND, errors};

#[test]
fn agx_call_057_a_cancel_during_the_start_leaves_the_worker_supervised() {
    let mut p = Pipe::new();
    p.call(1);
    assert_eq!(p.cancel(1), []);
    // It goes on: ready, or killed in time.
    assert_eq!(p.frame(FIRST, &FromWorker::Ready), []);
    let mut p = Pipe::new();
    p.call(1);
    p.cancel(1);
    assert_eq!(p.timer()[0], LinkOutput::Kill(FIRST));
}

#[test]
fn agx_call_070_running_calls_end_with_their_worker() {
    let mut p = Pipe::running();
    p.call(2);
    // What is still in the pipe comes first.
    p.link.exited(FIRST, Exit::Code(0), p.now);
    assert_eq!(p.drain(), []);
    assert_eq!(
        p.frame(FIRST, &FromWorker::Outcome(value(1))),
        [LinkOutput::Outcome(value(1))]
    );
    // A call that comes now is not one of its calls.
    assert_eq!(p.call(3), []);
    p.link.end_of_stream(FIRST, p.now);
    let outputs = p.drain();
    let died = (id(2), ErrorType::WorkerDied, Some(0));
    assert_eq!(errors(&outputs), [died]);
    assert_eq!(outputs.last(), Some(&LinkOutput::Spawn(SECOND)));
}

#[test]
fn agx_call_071_the_return_code_is_the_exit_status_or_minus_the_signal() {
    for (exit, code) in [
        (Exit::Code(3), 3),
        (Exit::Signal(9), -9),
        (Exit::Signal(11), -11),
        (Exit::Code(0), 0),
    ] {
        let died = (id(1), ErrorType::WorkerDied, Some(code));
        assert_eq!(errors(&Pipe::running().ends(FIRST, exit)), [died]);
        let mut p = Pipe::new();
        p.call(1);
        let failed = (id(1), ErrorType::WorkerUnavailable, Some(code));
        assert_eq!(errors(&p.ends(FIRST, exit)), [failed]);
    }
    // Not known: nil.
    let mut p = Pipe::running();
    p.link.end_of_stream(FIRST, p.now);
    let died = (id(1), ErrorType::WorkerDied, None);
    assert_eq!(errors(&p.timer()), [died]);
}

#[test]
fn agx_call_072_calls_that_wait_fail_with_the_start() {
    let mut p = Pipe::new();
    p.call(1);
    p.call(2);
    p.call(3);
    p.cancel(2);
    p.link.spawn_failed(FIRST, "no such file", p.now);
    let failed = |n| (id(n), ErrorType::WorkerUnavailable, None);
    assert_eq!(errors(&p.drain()), [failed(1), failed(3)]);
}

#[test]
fn agx_call_073_the_message_states_the_cause() {
    let mut p = Pipe::new();
    p.call(1);
    p.link.spawn_failed(FIRST, "no such file", p.now);
    let outputs = p.drain();
    let messages: Vec<&str> = outputs
        .iter()
        .filter_map(|output| match output {
            LinkOutput::Outcome(Outcome { result: Err(e), .. }) => Some(e.message.as_str()),
            LinkOutput::Notice(Notice::StartFailed { cause, .. }) => Some(cause.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(messages.len(), 2);
    assert!(
        messages
            .iter()
            .all(|message| message.contains("no such file"))
    );
}

#[test]
fn agx_call_074_a_call_during_back_off_gets_the_last_failure_at_once() {
    let mut p = Pipe::new();
    p.call(1);
    p.ends(FIRST, Exit::Code(3));
    let failed = |n| (id(n), ErrorType::WorkerUnavailable, Some(3));
    assert_eq!(errors(&p.call(2)), [failed(2)]);
    p.now += Duration::from_millis(499);
    assert_eq!(errors(&p.call(3)), [failed(3)]);
    p.now += Duration::from_millis(1);
    assert_eq!(p.call(4), [LinkOutput::Spawn(SECOND)]);
}
