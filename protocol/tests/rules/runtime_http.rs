//! `POST /call` as the call table sees it.

use agentix_protocol::error::ErrorType;
use agentix_protocol::http::CallReply;
use agentix_protocol::runtime::RuntimeOutput;
use bytes::Bytes;

use crate::messages::{id, unavailable, value};
use crate::table::{A, B, H, H2, Table, accepted, done, emit, prefer, start};

/// Neither msgpack nor a map.
const NO_MESSAGE: [&[u8]; 3] = [b"", b"\x90", b"\xc1"];
/// No id, an empty one, and no other field.
const NO_CALL: [&[u8]; 3] = [b"\x80", b"\x81\xa7call_id\xa0", b"\x81\xa7call_id\xa1x"];

fn refused(body: &'static [u8]) {
    let mut t = Table::new();
    let body = Bytes::from_static(body);
    t.calls.http_call(H, &body, prefer(), None, t.now);
    let outputs = t.drain();
    let [RuntimeOutput::Reply(H, CallReply::BadRequest(error), _)] = &outputs[..] else {
        panic!("{body:?}: {outputs:?}")
    };
    assert_eq!(error.error_type, ErrorType::BadRequest);
    assert_eq!(t.calls.running(), 0);
}

#[test]
fn agx_http_021_an_error_of_the_call_is_a_200() {
    let mut t = Table::new();
    t.post(H, 1, None);
    let outputs = t.outcome(unavailable(1));
    let [RuntimeOutput::Reply(H, reply, _)] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(reply.status(), 200);
}

#[test]
fn agx_http_022_what_is_no_message_is_a_400() {
    NO_MESSAGE.into_iter().for_each(refused);
}

#[test]
fn agx_http_023_what_is_no_call_is_a_400() {
    NO_CALL.into_iter().for_each(refused);
}

#[test]
fn agx_http_025_a_202_means_accepted() {
    let mut t = Table::new();
    assert_eq!(t.post(H, 1, None), [start(1)]);
    assert_eq!(t.calls.poll_timeout(), Some(t.now + prefer().wait));
    assert_eq!(t.pass(1), [accepted(H, 1)]);
    assert_eq!(t.calls.running(), 1);
}

#[test]
fn agx_http_031_a_caller_that_went_away_is_as_if_answered_202() {
    let mut t = Table::new();
    t.post(H, 1, Some("sid-a"));
    t.calls.http_gone(H);
    assert_eq!(t.pass(1), []);
    assert_eq!(t.outcome(value(1)), [emit(A, value(1))]);
    // Found out while answering.
    t.post(H2, 2, Some("sid-a"));
    assert_eq!(t.outcome(value(2)), [done(H2, value(2))]);
    t.calls.undelivered(&id(2));
    assert_eq!(t.drain(), [emit(A, value(2))]);
    assert_eq!(t.pass(60), []);
    assert_eq!(t.held(), 2);
    // Not for one that `/rpc` has, or that is gone.
    t.calls.undelivered(&id(1));
    t.calls.undelivered(&id(9));
    assert_eq!(t.drain(), []);
}

#[test]
fn agx_http_040_a_repeat_of_a_running_call_is_a_202_at_once() {
    let mut t = Table::new();
    t.post(H, 1, None);
    assert_eq!(t.post(H2, 1, None), [accepted(H2, 1)]);
    t.call(A, 2);
    assert_eq!(t.post(H2, 2, None), [accepted(H2, 2)]);
}

#[test]
fn agx_http_041_a_repeat_of_a_held_call_is_its_outcome() {
    let mut t = Table::new();
    t.ended(A, 1);
    assert_eq!(t.post(H, 1, None), [done(H, value(1))]);
}

#[test]
fn agx_http_042_a_repeat_of_a_call_whose_outcome_is_gone_is_a_definite_error() {
    let mut t = Table::new();
    t.ended(A, 1);
    t.ack(A, 1);
    assert_eq!(t.post(H, 1, None), [done(H, unavailable(1))]);
}

#[test]
fn agx_http_043_a_repeat_makes_the_named_connection_the_owner() {
    let mut t = Table::new();
    t.call(A, 1);
    t.post(H, 1, Some("sid-b"));
    assert_eq!(t.outcome(value(1)), [emit(B, value(1))]);
    // Otherwise the owner stays.
    for sid in [None, Some("no such sid")] {
        let mut t = Table::new();
        t.call(A, 2);
        t.post(H, 2, sid);
        assert_eq!(t.outcome(value(2)), [emit(A, value(2))]);
    }
}

#[test]
fn agx_http_044_after_a_202_the_outcome_comes_on_rpc_too() {
    let mut t = Table::new();
    t.post(H, 1, Some("sid-a"));
    t.post(H2, 1, Some("sid-b"));
    assert_eq!(t.outcome(value(1)), [done(H, value(1)), emit(B, value(1))]);
}
