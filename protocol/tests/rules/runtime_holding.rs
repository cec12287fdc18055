//! How long outcomes are held.

use agentix_protocol::error::RemoteError;
use agentix_protocol::limits::{MAX_RETAINED, MAX_RETAINED_BYTES};
use agentix_protocol::message::Outcome;
use agentix_protocol::runtime::RuntimeConfig;
use bytes::Bytes;

use crate::messages::{cancelled, id, unavailable, value};
use crate::table::{A, B, H, H2, Table, accepted, done, emit};

fn small(count: usize, bytes: usize) -> Table {
    let mut config = RuntimeConfig::default();
    config.max_retained = count;
    config.max_retained_bytes = bytes;
    Table::with(config)
}

#[test]
fn agx_call_060_4096_outcomes_and_1_gib_are_held() {
    let config = RuntimeConfig::default();
    assert_eq!(config.max_retained, 4096);
    assert_eq!(config.max_retained_bytes, 1 << 30);
    assert_eq!((MAX_RETAINED, MAX_RETAINED_BYTES), (4096, 1 << 30));
    let mut t = Table::new();
    // Of 256 KiB each, in one buffer: 4,096 of them are 1 GiB exactly.
    let payload = Bytes::from(vec![0; 1 << 18]);
    for n in 1..=4096 {
        t.call(A, n);
        t.outcome(Outcome::value(id(n), payload.clone()));
    }
    assert_eq!(t.calls.retained(), (4096, 1 << 30));
    assert_eq!(
        t.resume(A, 1),
        [emit(A, Outcome::value(id(1), payload.clone()))]
    );
}

#[test]
fn agx_call_061_and_not_one_more() {
    let mut t = Table::new();
    for n in 1..=5000 {
        t.ended(A, n);
        assert!(t.held() <= 4096);
    }
    assert_eq!(t.held(), 4096);
    let mut t = small(10, 20);
    for n in 1..=5 {
        t.call(A, n);
        t.outcome(Outcome::value(id(n), Bytes::from_static(&[0; 9])));
        assert!(t.calls.retained().1 <= 20);
    }
    assert_eq!(t.calls.retained(), (2, 18));
    // One that is above the bound alone is not held either.
    t.call(A, 6);
    t.outcome(Outcome::value(id(6), Bytes::from_static(&[0; 21])));
    assert_eq!(t.calls.retained(), (0, 0));
    // An error's bytes are those of its type, message and traceback.
    let mut error = RemoteError::new("T".into(), "ab");
    error.traceback = Some("cde".into());
    t.call(A, 7);
    t.outcome(Outcome::error(id(7), error));
    assert_eq!(t.calls.retained(), (1, 6));
}

#[test]
fn agx_call_062_the_oldest_go_first() {
    let mut t = small(2, 1000);
    // Oldest by the time of the outcome, not of the call.
    for n in [1, 2, 3] {
        t.call(A, n);
    }
    for n in [3, 1, 2] {
        t.outcome(value(n));
    }
    assert_eq!(t.resume(A, 3), [emit(A, unavailable(3))]);
    assert_eq!(t.resume(A, 1), [emit(A, value(1))]);
    assert_eq!(t.resume(A, 2), [emit(A, value(2))]);
}

#[test]
fn agx_call_063_an_evicted_outcome_is_a_definite_answer() {
    let mut t = small(1, 1000);
    t.ended(A, 1);
    t.ended(A, 2);
    assert_eq!(t.resume(B, 1), [emit(B, unavailable(1))]);
    assert_eq!(t.call(A, 1), [emit(A, unavailable(1))]);
    assert_eq!(t.post(H, 1, None), [done(H, unavailable(1))]);
    assert_eq!(t.calls.held(&id(1)), None);
}

#[test]
fn agx_call_064_an_http_outcome_is_held_for_60_s() {
    let mut t = Table::new();
    t.post(H, 1, Some("sid-a"));
    t.outcome(value(1));
    assert_eq!(t.pass(59), []);
    assert_eq!(t.post(H2, 1, None), [done(H2, value(1))]);
    assert_eq!(t.pass(1), []);
    assert_eq!(t.calls.retained(), (0, 0));
    assert_eq!(t.resume(A, 1), [emit(A, unavailable(1))]);
    // Acked or evicted before.
    t.post(H, 2, None);
    t.outcome(value(2));
    t.ack(B, 2);
    assert_eq!(t.held(), 0);
    // Once it was asked for on `/rpc`, it stays.
    t.post(H, 3, Some("sid-a"));
    t.outcome(value(3));
    assert_eq!(t.resume(A, 3), [emit(A, value(3))]);
    assert_eq!(t.pass(3600), []);
    assert_eq!(t.resume(A, 3), [emit(A, value(3))]);
    // A repeat that is answered 200 does not shorten what `/rpc` is owed.
    t.ended(A, 4);
    assert_eq!(t.post(H, 4, None), [done(H, value(4))]);
    t.pass(3600);
    assert_eq!(t.resume(A, 4), [emit(A, value(4))]);
}

#[test]
fn agx_call_065_an_http_answer_is_not_repeated_on_rpc() {
    for sid in [None, Some("sid-a")] {
        let mut t = Table::new();
        t.post(H, 1, sid);
        assert_eq!(t.outcome(value(1)), [done(H, value(1))]);
        assert_eq!(t.pass(60), []);
    }
}

#[test]
fn agx_call_066_other_outcomes_do_not_expire() {
    let mut t = Table::new();
    t.ended(A, 1);
    t.call(A, 2);
    t.cancel(A, 2);
    t.post_202(H, 3, Some("sid-a"));
    t.outcome(value(3));
    assert_eq!(t.calls.poll_timeout(), None);
    assert_eq!(t.pass(10_000_000), []);
    assert_eq!(t.held(), 3);
    assert_eq!(t.resume(A, 2), [emit(A, cancelled(2))]);
}

#[test]
fn agx_call_067_a_resume_while_a_post_waits_is_served_as_well() {
    let mut t = Table::new();
    t.post(H, 1, Some("sid-a"));
    assert_eq!(t.resume(A, 1), []);
    assert_eq!(t.outcome(value(1)), [done(H, value(1)), emit(A, value(1))]);
    t.pass(3600);
    assert_eq!(t.held(), 1);
    // A repeat on `/rpc` as well; the POST gets its 202 in time.
    t.post(H, 2, None);
    assert_eq!(t.call(B, 2), []);
    assert_eq!(t.pass(1), [accepted(H, 2)]);
    assert_eq!(t.outcome(value(2)), [emit(B, value(2))]);
}
