//! What a `cancel` does.

use agentix_protocol::runtime::RuntimeOutput;

use crate::messages::{cancelled, id, value};
use crate::table::{A, A2, B, H, Table, done, emit, start};

#[test]
fn agx_call_050_a_cancel_reaches_the_worker() {
    let mut t = Table::new();
    t.call(A, 1);
    let stops = t
        .cancel(A, 1)
        .into_iter()
        .filter(|output| *output == RuntimeOutput::Cancel(id(1)));
    assert_eq!(stops.count(), 1);
}

#[test]
fn agx_call_051_cancelled_is_the_outcome_at_once() {
    let mut t = Table::new();
    t.call(A, 1);
    assert!(t.cancel(A, 1).contains(&emit(A, cancelled(1))));
    assert_eq!(t.calls.running(), 0);
    let error = cancelled(1).result.unwrap_err();
    assert!(error.cancelled);
}

#[test]
fn agx_call_052_it_is_held_like_any_outcome() {
    let mut t = Table::new();
    t.call(A, 1);
    t.calls.disconnected(A);
    t.cancel(B, 1);
    assert_eq!(t.held(), 1);
    t.calls.connected(A2, "sid-a2");
    assert_eq!(t.resume(A2, 1), [emit(A2, cancelled(1))]);
    t.ack(A2, 1);
    assert_eq!(t.held(), 0);
}

#[test]
fn agx_call_053_who_cancels_hears_of_it_once() {
    let mut t = Table::new();
    t.call(A, 1);
    assert_eq!(
        t.cancel(B, 1)[1..],
        [emit(A, cancelled(1)), emit(B, cancelled(1))]
    );
    t.call(A, 2);
    assert_eq!(t.cancel(A, 2)[1..], [emit(A, cancelled(2))]);
    // Also where the outcome goes to all of them.
    t.post_202(H, 3, None);
    assert_eq!(
        t.cancel(A, 3)[1..],
        [emit(A, cancelled(3)), emit(B, cancelled(3))]
    );
}

#[test]
fn agx_call_054_a_waiting_post_is_answered() {
    let mut t = Table::new();
    t.post(H, 1, Some("sid-a"));
    assert_eq!(
        t.cancel(B, 1),
        [
            RuntimeOutput::Cancel(id(1)),
            done(H, cancelled(1)),
            emit(B, cancelled(1))
        ]
    );
    assert_eq!(t.pass(1), []);
}

#[test]
fn agx_call_055_a_call_that_has_ended_is_not_cancelled() {
    let mut t = Table::new();
    t.ended(A, 1);
    assert_eq!(t.cancel(A, 1), []);
    assert_eq!(t.cancel(B, 1), []);
    assert_eq!(t.resume(A, 1), [emit(A, value(1))]);
    t.ack(A, 1);
    assert_eq!(t.cancel(A, 1), []);
    // One that never was may still come.
    assert_eq!(t.cancel(A, 9), []);
    assert_eq!(t.call(A, 9), [start(9)]);
}
