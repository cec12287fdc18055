//! One id, one execution; what a repeat gets.

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::ident::CallId;
use agentix_protocol::message::Call;
use agentix_protocol::runtime::{RuntimeConfig, RuntimeOutput};
use bytes::Bytes;

use crate::messages::{call, cancelled, id, unavailable, value};
use crate::table::{A, B, H, Table, accepted, done, emit, start};

#[test]
fn agx_call_003_an_id_runs_once_whatever_becomes_of_its_outcome() {
    let mut t = Table::new();
    assert_eq!(t.call(A, 1), [start(1)]);
    t.outcome(value(1));
    t.ack(A, 1);
    t.call(A, 2);
    t.cancel(A, 2);
    t.post(H, 3, None);
    t.outcome(value(3));
    t.pass(60);
    for n in 1..=3 {
        for from in [A, B] {
            assert!(!t.call(from, n).contains(&start(n)));
        }
        assert!(!t.post(H, n, None).contains(&start(n)));
    }
}

#[test]
fn agx_call_004_only_an_accepted_call_closes_an_id() {
    let mut t = Table::new();
    t.ack(A, 1);
    assert_eq!(t.cancel(A, 1), []);
    assert_eq!(t.resume(A, 1), [emit(A, unavailable(1))]);
    assert_eq!(t.call(A, 1), [start(1)]);

    // {"call_id": "x"}, over each way: BadRequest.
    let bad = Bytes::from_static(b"\x81\xa7call_id\xa1x");
    let known = t.calls.event(A, "call", &bad, t.now);
    let outputs = t.drain();
    let [RuntimeOutput::Emit(A, RuntimeEvent::Outcome(outcome))] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert!(known);
    assert_eq!(outcome.call_id.as_str(), "x");
    let error = outcome.result.as_ref().unwrap_err();
    assert_eq!(error.error_type, ErrorType::BadRequest);
    t.calls
        .http_call(H, &bad, crate::table::prefer(), None, t.now);
    t.drain();
    let x = Call {
        call_id: CallId::new("x").unwrap(),
        ..call(0)
    };
    assert_eq!(
        t.event(A, &HostEvent::Call(x.clone())),
        [RuntimeOutput::Start(x)]
    );
}

#[test]
fn agx_call_010_a_closed_id_starts_nothing_whatever_the_other_fields_hold() {
    let mut t = Table::new();
    let x = Call {
        call_id: CallId::new("x").unwrap(),
        ..call(0)
    };
    t.event(A, &HostEvent::Call(x));
    // {"call_id": "x"}: malformed for a new id, a repeat for this one.
    let repeat = Bytes::from_static(b"\x81\xa7call_id\xa1x");
    t.calls.event(A, "call", &repeat, t.now);
    assert_eq!(t.drain(), []);
    let other = Call {
        call_id: CallId::new("x").unwrap(),
        callable: "app::other".into(),
        ..call(0)
    };
    assert_eq!(t.event(A, &HostEvent::Call(other)), []);
    t.calls
        .http_call(H, &repeat, crate::table::prefer(), None, t.now);
    assert!(matches!(t.drain()[..], [RuntimeOutput::Reply(H, _, _)]));
    assert_eq!(t.calls.running(), 1);
}

#[test]
fn agx_call_011_a_repeat_of_a_running_call_is_silent() {
    let mut t = Table::new();
    t.call(A, 1);
    assert_eq!(t.call(A, 1), []);
    assert_eq!(t.call(B, 1), []);
}

#[test]
fn agx_call_012_a_repeat_of_a_held_call_gets_its_outcome() {
    let mut t = Table::new();
    t.ended(A, 1);
    assert_eq!(t.call(B, 1), [emit(B, value(1))]);
    t.call(A, 2);
    t.cancel(A, 2);
    assert_eq!(t.call(A, 2), [emit(A, cancelled(2))]);
}

#[test]
fn agx_call_013_a_repeat_of_a_call_whose_outcome_is_gone_gets_result_unavailable() {
    let mut t = Table::new();
    t.ended(A, 1);
    t.ack(A, 1);
    assert_eq!(t.call(B, 1), [emit(B, unavailable(1))]);
}

#[test]
fn agx_call_014_a_repeat_counts_as_a_resume() {
    let mut t = Table::new();
    t.call(A, 1);
    t.call(B, 1);
    assert_eq!(t.outcome(value(1)), [emit(B, value(1))]);
    // And of a held one: its ack now frees it, the former owner's would as well.
    t.ended(A, 2);
    t.call(B, 2);
    t.ack(B, 2);
    assert_eq!(t.held(), 1);
}

#[test]
fn agx_call_020_every_accepted_call_comes_to_one_outcome() {
    let mut t = Table::new();
    t.call(A, 1);
    t.call(A, 2);
    t.call(A, 3);
    assert_eq!(t.calls.running(), 3);
    t.outcome(value(1));
    t.cancel(A, 2);
    t.outcome(unavailable(3));
    assert_eq!((t.calls.running(), t.held()), (0, 3));
    for n in 1..=3 {
        assert_eq!(t.outcome(value(n)), []);
    }
}

#[test]
fn agx_call_021_an_outcome_is_stored_before_it_is_sent() {
    let mut t = Table::new();
    t.call(A, 1);
    t.calls.outcome(value(1), t.now);
    // Not sent yet: the output still waits.
    assert_eq!(t.calls.held(&id(1)), Some(&value(1)));
    assert_eq!(t.drain(), [emit(A, value(1))]);
}

#[test]
fn agx_call_022_late_results_errors_and_cancels_are_dropped() {
    let mut t = Table::new();
    t.call(A, 1);
    t.cancel(A, 1);
    assert_eq!(t.outcome(value(1)), []);
    assert_eq!(t.outcome(unavailable(1)), []);
    assert_eq!(t.cancel(A, 1), []);
    assert_eq!(t.resume(A, 1), [emit(A, cancelled(1))]);
    // Nor do they answer another call, or one that never was.
    t.ack(A, 1);
    assert_eq!(t.outcome(value(1)), []);
    assert_eq!(t.outcome(value(9)), []);
    assert_eq!(t.call(A, 1), [emit(A, unavailable(1))]);
}

/// Events that are no message: silence, and no Socket.IO ack.
#[test]
fn agx_rpc_018_what_is_no_message_is_silence() {
    let mut t = Table::new();
    for (name, payload) in [
        ("call", &b"\x90"[..]),
        ("call", b"\xc1"),
        ("nonsense", b"\x80"),
    ] {
        assert!(!t.calls.event(A, name, &Bytes::from_static(payload), t.now));
        assert_eq!(t.drain(), []);
    }
}

/// A call without a valid id gets an answer without one.
#[test]
fn agx_rpc_016_a_call_without_an_id_is_refused() {
    let mut t = Table::new();
    assert!(
        t.calls
            .event(A, "call", &Bytes::from_static(b"\x80"), t.now)
    );
    let outputs = t.drain();
    let [RuntimeOutput::Emit(A, RuntimeEvent::Rejected(error))] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(error.error_type, ErrorType::BadRequest);
}

/// A small memory forgets the oldest ids first; see `closed` for the real size.
#[test]
fn the_memory_of_ids_is_bounded() {
    let mut config = RuntimeConfig::default();
    config.closed_ids = 2;
    let mut t = Table::with(config);
    let last = 30;
    for n in 1..=last {
        t.ended(A, n);
        t.ack(A, n);
    }
    for n in [last - 1, last] {
        assert_eq!(t.call(A, n), [emit(A, unavailable(n))]);
    }
    assert_eq!(t.call(A, 1), [start(1)]);
    // What runs is not subject to it.
    for n in last + 1..=2 * last {
        t.ended(A, n);
        t.ack(A, n);
    }
    assert_eq!(t.call(A, 1), []);
    assert_eq!(t.post(H, 1, None), [accepted(H, 1)]);
    t.outcome(value(1));
    assert_eq!(t.post(H, 1, None), [done(H, value(1))]);
    let gone = RemoteError::result_unavailable();
    assert_eq!(unavailable(1).result.unwrap_err(), gone);
}
