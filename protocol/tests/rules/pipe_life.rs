//! How a worker is started, lost and stopped.

use std::time::Duration;

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::frame::{FromWorker, ToWorker};
use agentix_protocol::ident::Namespace;
use agentix_protocol::link::{Exit, Generation, LinkOutput};

use crate::messages::{call, id, value};
use crate::pipe::{FIRST, Pipe, SECOND, errors, event, write};

#[test]
fn agx_pipe_030_the_first_call_starts_the_worker_and_nothing_else_does() {
    let mut p = Pipe::new();
    assert_eq!(p.event(event("/app", 1)), []);
    assert_eq!(p.cancel(1), []);
    p.link.timeout(p.now);
    assert_eq!(p.drain(), []);
    assert_eq!(p.call(1), [LinkOutput::Spawn(FIRST)]);
}

#[test]
fn agx_pipe_031_there_is_one_worker_at_a_time() {
    let mut p = Pipe::new();
    p.call(1);
    assert_eq!(p.call(2), []);
    p.frame(FIRST, &FromWorker::Ready);
    assert_eq!(p.call(3), [write(FIRST, &ToWorker::Call(call(3)))]);
    // One that is dying takes no calls, and its successor comes after it.
    p.link.end_of_stream(FIRST, p.now);
    assert_eq!(p.call(4), []);
    p.link.exited(FIRST, Exit::Code(0), p.now);
    assert_eq!(p.drain().last(), Some(&LinkOutput::Spawn(SECOND)));
    // What the dead worker left behind means nothing.
    assert_eq!(p.frame(FIRST, &FromWorker::Ready), []);
    assert_eq!(p.frame(FIRST, &FromWorker::Outcome(value(4))), []);
    assert_eq!(p.ends(FIRST, Exit::Code(0)), []);
}

#[test]
fn agx_pipe_032_calls_wait_in_order_for_ready() {
    let mut p = Pipe::new();
    for n in 1..=3 {
        p.call(n);
    }
    let sent = [1, 2, 3].map(|n| write(FIRST, &ToWorker::Call(call(n))));
    assert_eq!(p.frame(FIRST, &FromWorker::Ready), sent);
    // A second `ready` means nothing.
    assert_eq!(p.frame(FIRST, &FromWorker::Ready), []);
}

#[test]
fn agx_pipe_034_a_worker_may_open_and_emit_before_it_is_ready() {
    let mut p = Pipe::new();
    p.event(event("/app", 1));
    p.call(1);
    let app = Namespace::new("/app").unwrap();
    assert_eq!(p.frame(FIRST, &FromWorker::SioOpen(app)), []);
    assert_eq!(
        p.frame(FIRST, &FromWorker::SioEmit(event("/app", 2))),
        [LinkOutput::Emit(event("/app", 2))]
    );
    assert_eq!(
        p.frame(FIRST, &FromWorker::Ready),
        [
            write(FIRST, &ToWorker::SioInbound(event("/app", 1))),
            write(FIRST, &ToWorker::Call(call(1)))
        ]
    );
}

#[test]
fn agx_pipe_035_a_boot_error_is_the_cause() {
    let mut p = Pipe::new();
    p.call(1);
    let error = RemoteError::new(ErrorType::from("ImportError"), "no app");
    let outputs = p.frame(FIRST, &FromWorker::BootError(error));
    let failed = (id(1), ErrorType::WorkerUnavailable, None);
    assert_eq!(errors(&outputs), [failed]);
    // After `ready` it means nothing.
    let mut p = Pipe::running();
    let error = RemoteError::new(ErrorType::from("ImportError"), "no app");
    assert_eq!(p.frame(FIRST, &FromWorker::BootError(error)), []);
}

/// A start that fails in the way that it is named after.
fn fail(p: &mut Pipe, generation: Generation, how: &str) -> Vec<LinkOutput> {
    match how {
        "spawn" => {
            p.link.spawn_failed(generation, "no such file", p.now);
            p.drain()
        }
        "exit" => p.ends(generation, Exit::Code(3)),
        "end of output" => {
            p.link.end_of_stream(generation, p.now);
            p.timer()
        }
        "boot_error" => {
            let error = RemoteError::new(ErrorType::from("ImportError"), "no app");
            p.frame(generation, &FromWorker::BootError(error))
        }
        _ => p.timer(),
    }
}

const WAYS: [&str; 5] = ["spawn", "exit", "end of output", "boot_error", "time"];

#[test]
fn agx_pipe_036_every_way_in_which_a_start_fails() {
    for how in WAYS {
        let mut p = Pipe::new();
        p.call(1);
        let start = p.now;
        let outputs = fail(&mut p, FIRST, how);
        let code = (how == "exit").then_some(3);
        let failed = (id(1), ErrorType::WorkerUnavailable, code);
        assert_eq!(errors(&outputs), [failed], "{how}");
        if how == "time" {
            assert_eq!(p.now - start, Duration::from_secs(15));
        }
    }
}

#[test]
fn agx_pipe_037_a_worker_that_failed_to_start_is_ended() {
    for how in ["boot_error", "time", "end of output"] {
        let mut p = Pipe::new();
        p.call(1);
        let outputs = fail(&mut p, FIRST, how);
        let kill = outputs.iter().position(|o| *o == LinkOutput::Kill(FIRST));
        assert!(kill.is_some(), "{how}: {outputs:?}");
        // Its end is nobody's business any more.
        p.link.exited(FIRST, Exit::Signal(9), p.now);
        assert_eq!(p.drain(), [], "{how}");
    }
}

#[test]
fn agx_pipe_038_starts_back_off_from_half_a_second_to_half_a_minute() {
    let mut p = Pipe::new();
    let mut pause = Duration::from_millis(500);
    for attempt in 1..=9 {
        let generation = Generation(attempt);
        assert_eq!(p.call(attempt.into()), [LinkOutput::Spawn(generation)]);
        p.ends(generation, Exit::Code(3));
        p.now += pause - Duration::from_millis(1);
        assert_eq!(errors(&p.call(200)).len(), 1);
        p.now += Duration::from_millis(1);
        pause = (pause * 2).min(Duration::from_secs(30));
    }
    // A start that succeeds forgives, so a later death causes no wait.
    assert_eq!(p.call(1), [LinkOutput::Spawn(Generation(10))]);
    p.frame(Generation(10), &FromWorker::Ready);
    p.ends(Generation(10), Exit::Code(0));
    assert_eq!(p.call(2), [LinkOutput::Spawn(Generation(11))]);
    p.ends(Generation(11), Exit::Code(1));
    p.now += Duration::from_millis(500);
    assert_eq!(p.call(3), [LinkOutput::Spawn(Generation(12))]);
}

#[test]
fn agx_pipe_040_a_lost_pipe_waits_two_seconds_for_the_exit_status() {
    let mut p = Pipe::running();
    p.link.end_of_stream(FIRST, p.now);
    assert_eq!(p.drain(), []);
    let before = p.now;
    let outputs = p.timer();
    assert_eq!(p.now - before, Duration::from_secs(2));
    assert_eq!(outputs[0], LinkOutput::Kill(FIRST));
    let died = (id(1), ErrorType::WorkerDied, None);
    assert_eq!(errors(&outputs), [died]);
    // An exit that came first waits as long for the rest of the pipe.
    let mut p = Pipe::running();
    p.link.exited(FIRST, Exit::Code(4), p.now);
    assert_eq!(p.drain(), []);
    let before = p.now;
    let died = (id(1), ErrorType::WorkerDied, Some(4));
    assert_eq!(errors(&p.timer()), [died]);
    assert_eq!(p.now - before, Duration::from_secs(2));
}

#[test]
fn agx_pipe_041_the_next_call_gets_a_new_worker() {
    let mut p = Pipe::running();
    assert!(
        !p.ends(FIRST, Exit::Code(0))
            .contains(&LinkOutput::Spawn(SECOND))
    );
    assert_eq!(p.call(2), [LinkOutput::Spawn(SECOND)]);
    assert_eq!(
        p.frame(SECOND, &FromWorker::Ready),
        [write(SECOND, &ToWorker::Call(call(2)))]
    );
}

#[test]
fn agx_pipe_042_a_stop_escalates() {
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
    assert_eq!(p.now - start, Duration::from_secs(5));
    assert_eq!(p.timer(), [LinkOutput::Kill(FIRST)]);
    assert_eq!(p.now - start, Duration::from_secs(7));
}

#[test]
fn agx_pipe_044_a_link_that_has_stopped_has_no_worker() {
    let mut p = Pipe::running();
    p.link.shutdown(p.now);
    p.drain();
    // Results that still come are results.
    p.call(2);
    assert_eq!(
        p.frame(FIRST, &FromWorker::Outcome(value(1))),
        [LinkOutput::Outcome(value(1))]
    );
    p.link.exited(FIRST, Exit::Code(0), p.now);
    assert_eq!(p.drain(), [LinkOutput::Stopped]);
    let refused = (id(3), ErrorType::WorkerUnavailable, None);
    assert_eq!(errors(&p.call(3)), [refused]);
    assert_eq!(p.link.poll_timeout(), None);
    // At any time of its life.
    let mut idle = Pipe::new();
    idle.link.shutdown(idle.now);
    assert_eq!(idle.drain(), [LinkOutput::Stopped]);
    let mut dying = Pipe::running();
    dying.link.end_of_stream(FIRST, dying.now);
    dying.link.shutdown(dying.now);
    assert_eq!(dying.drain(), [LinkOutput::Kill(FIRST)]);
    dying.link.exited(FIRST, Exit::Signal(9), dying.now);
    assert_eq!(dying.drain().last(), Some(&LinkOutput::Stopped));
}
