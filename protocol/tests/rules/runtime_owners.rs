//! Who gets an outcome; `resume` and `ack`.

use agentix_protocol::event::HostEvent;
use agentix_protocol::runtime::RuntimeOutput;

use crate::messages::{cancelled, id, unavailable, value};
use crate::table::{A, A2, B, H, H2, Table, emit, start};

#[test]
fn agx_call_030_the_owner_sent_the_call_or_resumed_it_last() {
    let mut t = Table::new();
    t.call(A, 1);
    assert_eq!(t.outcome(value(1)), [emit(A, value(1))]);
    t.call(A, 2);
    t.resume(B, 2);
    assert_eq!(t.outcome(value(2)), [emit(B, value(2))]);
    t.call(A, 3);
    t.resume(B, 3);
    t.call(A, 3);
    assert_eq!(t.outcome(value(3)), [emit(A, value(3))]);
}

#[test]
fn agx_call_031_nobody_else_gets_it() {
    let mut t = Table::new();
    t.calls.connected(A2, "sid-c");
    t.call(A, 1);
    let outputs = t.outcome(value(1));
    assert_eq!(outputs, [emit(A, value(1))]);
}

#[test]
fn agx_call_032_the_outcome_waits_for_an_owner_that_left() {
    let mut t = Table::new();
    t.call(A, 1);
    t.calls.disconnected(A);
    assert_eq!(t.outcome(value(1)), []);
    assert_eq!(t.pass(1_000_000), []);
    assert_eq!(t.held(), 1);
    t.calls.connected(A2, "sid-a2");
    assert_eq!(t.drain(), []);
    assert_eq!(t.resume(A2, 1), [emit(A2, value(1))]);
    t.ack(A2, 1);
    assert_eq!(t.held(), 0);
}

#[test]
fn agx_call_033_the_header_names_the_owner() {
    let mut t = Table::new();
    t.post_202(H, 1, Some("sid-b"));
    assert_eq!(t.outcome(value(1)), [emit(B, value(1))]);
}

#[test]
fn agx_call_034_without_a_usable_header_everybody_gets_it() {
    for sid in [None, Some("no such sid"), Some("")] {
        let mut t = Table::new();
        t.post_202(H, 1, sid);
        assert_eq!(t.outcome(value(1)), [emit(A, value(1)), emit(B, value(1))]);
    }
}

#[test]
fn agx_call_035_what_went_to_everybody_is_freed_when_all_have_acked_or_left() {
    let mut t = Table::new();
    t.post_202(H, 1, None);
    t.outcome(value(1));
    t.ack(A, 1);
    assert_eq!(t.held(), 1);
    t.calls.disconnected(B);
    assert_eq!(t.held(), 0);

    // One acks, then the other.
    let mut t = Table::new();
    t.post_202(H, 1, None);
    t.outcome(value(1));
    t.ack(B, 1);
    t.ack(A, 1);
    assert_eq!(t.held(), 0);

    // All left without an ack: nobody has it.
    let mut t = Table::new();
    t.post_202(H, 1, None);
    t.outcome(value(1));
    t.calls.disconnected(A);
    t.calls.disconnected(B);
    assert_eq!(t.held(), 1);
    t.calls.connected(A2, "sid-a2");
    // One that did not receive it cannot ack it for those that did, but can ask for it.
    t.ack(A2, 1);
    assert_eq!(t.resume(A2, 1), [emit(A2, value(1))]);
    t.ack(A2, 1);
    assert_eq!(t.held(), 0);

    // A resume gives it an owner; another receiver's ack then changes nothing.
    let mut t = Table::new();
    t.post_202(H2, 2, None);
    t.outcome(value(2));
    t.resume(A, 2);
    t.ack(B, 2);
    assert_eq!(t.held(), 1);
    t.ack(A, 2);
    assert_eq!(t.held(), 0);
}

#[test]
fn agx_call_036_knowing_the_id_entitles() {
    let mut t = Table::new();
    t.call(A, 1);
    assert_eq!(t.cancel(B, 1)[0], RuntimeOutput::Cancel(id(1)));
    t.ended(A, 2);
    assert_eq!(t.resume(B, 2), [emit(B, value(2))]);
    t.ended(A, 3);
    t.ack(B, 3);
    assert_eq!(t.resume(A, 3), [emit(A, unavailable(3))]);
}

#[test]
fn agx_call_040_a_resume_is_answered_for_each_id_and_to_the_sender_alone() {
    let mut t = Table::new();
    t.call(A, 1);
    t.ended(A, 2);
    let ids = vec![id(3), id(1), id(2), id(2)];
    assert_eq!(
        t.event(B, &HostEvent::Resume(ids)),
        [
            emit(B, unavailable(3)),
            emit(B, value(2)),
            emit(B, value(2))
        ]
    );
    // Each time.
    assert_eq!(t.resume(B, 2), [emit(B, value(2))]);
    assert_eq!(t.event(B, &HostEvent::Resume(vec![])), []);
}

#[test]
fn agx_call_041_a_resume_makes_its_sender_the_owner() {
    let mut t = Table::new();
    t.call(A, 1);
    assert_eq!(t.resume(B, 1), []);
    assert_eq!(t.outcome(value(1)), [emit(B, value(1))]);
    // Of a held one too: when the owner leaves, nothing is sent to those who came before.
    t.ended(A, 2);
    t.resume(B, 2);
    t.calls.disconnected(B);
    assert_eq!(t.drain(), []);
    assert_eq!(t.held(), 2);
}

#[test]
fn agx_call_042_an_ack_frees_the_outcome_and_not_the_id() {
    let mut t = Table::new();
    t.ended(A, 1);
    t.ack(A, 1);
    assert_eq!(t.calls.retained(), (0, 0));
    assert_eq!(t.resume(A, 1), [emit(A, unavailable(1))]);
    assert_eq!(t.call(A, 1), [emit(A, unavailable(1))]);
    t.ack(A, 1);
}

#[test]
fn agx_call_043_an_ack_of_a_running_call_changes_nothing() {
    let mut t = Table::new();
    t.call(A, 1);
    t.ack(A, 1);
    t.ack(B, 1);
    assert_eq!(t.outcome(value(1)), [emit(A, value(1))]);
    assert_eq!(t.held(), 1);
}

/// A connection that is gone owns nothing that the next one with its number would get.
#[test]
fn a_new_connection_inherits_nothing() {
    let mut t = Table::new();
    t.call(A, 1);
    t.calls.disconnected(A);
    t.calls.connected(A, "sid-a");
    assert_eq!(t.outcome(value(1)), []);
    assert_eq!(t.call(A, 2), [start(2)]);
    assert_eq!(t.cancel(A, 2)[1], emit(A, cancelled(2)));
}
