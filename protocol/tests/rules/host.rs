//! What a host owes a runtime.

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::event::{BadRuntimeEvent, HostEvent, RuntimeEvent};
use agentix_protocol::host::{CallFailure, CallState, HostCalls, HostOutput};
use agentix_protocol::http::{CallReply, Peer};
use agentix_protocol::ident::CallId;
use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::message::{Call, Outcome};
use bytes::Bytes;

use crate::messages::{call, id, unavailable, value};

pub(crate) fn send(n: u128) -> HostOutput {
    HostOutput::Emit {
        event: HostEvent::Call(call(n)),
        ask_ack: true,
    }
}

fn emit(event: HostEvent) -> HostOutput {
    HostOutput::Emit {
        event,
        ask_ack: false,
    }
}

pub(crate) fn ack(n: u128) -> HostOutput {
    emit(HostEvent::Ack(id(n)))
}

pub(crate) fn cancel(n: u128) -> HostOutput {
    emit(HostEvent::Cancel(id(n)))
}

pub(crate) fn resume(ids: &[u128]) -> HostOutput {
    emit(HostEvent::Resume(ids.iter().map(|&n| id(n)).collect()))
}

pub(crate) fn end(n: u128) -> HostOutput {
    HostOutput::End(id(n), value(n).result.map_err(CallFailure::Remote))
}

pub(crate) fn drain(host: &mut HostCalls) -> Vec<HostOutput> {
    std::iter::from_fn(|| host.poll_output()).collect()
}

pub(crate) fn connected(use_http: bool, peer: Peer) -> HostCalls {
    let mut host = HostCalls::new(use_http);
    host.connected(peer);
    assert_eq!(drain(&mut host), []);
    host
}

pub(crate) fn make(host: &mut HostCalls, n: u128) -> Vec<HostOutput> {
    host.call(call(n));
    drain(host)
}

pub(crate) fn outcome(host: &mut HostCalls, outcome: Outcome) -> Vec<HostOutput> {
    let event = RuntimeEvent::Outcome(outcome);
    host.event(event.name(), &event.payload().into()).unwrap();
    drain(host)
}

/// A call that was sent, and accepted.
fn accepted(host: &mut HostCalls, n: u128) {
    make(host, n);
    host.acked(&id(n));
    assert_eq!(host.state(&id(n)), Some(CallState::Accepted));
}

fn reconnect(host: &mut HostCalls, peer: Peer) -> Vec<HostOutput> {
    host.disconnected();
    host.connected(peer);
    drain(host)
}

#[test]
fn agx_call_002_an_id_carries_the_random_bits_that_it_is_made_of() {
    // All 128 of them: two numbers never give the same id.
    for bit in 0..128 {
        assert_ne!(CallId::from_random(1 << bit), CallId::from_random(0));
    }
}

#[test]
fn agx_call_024_the_first_outcome_counts() {
    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    assert_eq!(outcome(&mut host, value(1)), [end(1), ack(1)]);
    assert_eq!(outcome(&mut host, value(1)), []);
    assert_eq!(outcome(&mut host, unavailable(1)), []);
    assert_eq!(host.state(&id(1)), None);
}

#[test]
fn agx_call_037_result_unavailable_is_an_outcome() {
    let mut host = connected(false, Peer::V1);
    accepted(&mut host, 1);
    assert_eq!(reconnect(&mut host, Peer::V1), [resume(&[1])]);
    let gone = CallFailure::Remote(RemoteError::result_unavailable());
    assert_eq!(
        outcome(&mut host, unavailable(1)),
        [HostOutput::End(id(1), Err(gone)), ack(1)]
    );
    assert_eq!(host.pending(), 0);
}

#[test]
fn agx_call_038_a_cancel_that_could_not_be_sent_is_sent_later() {
    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    host.disconnected();
    host.cancel(&id(1));
    assert_eq!(drain(&mut host), []);
    // And the outcome asked for, so that it can be acked.
    host.connected(Peer::V1);
    assert_eq!(drain(&mut host), [cancel(1), resume(&[1])]);
    // What never left needs none.
    host.disconnected();
    make(&mut host, 2);
    host.cancel(&id(2));
    host.connected(Peer::V1);
    assert_eq!(drain(&mut host), [cancel(1), resume(&[1])]);
}

#[test]
fn agx_call_039_the_outcome_of_a_cancelled_call_is_acked() {
    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    host.cancel(&id(1));
    drain(&mut host);
    assert_eq!(host.pending(), 1);
    // And given to nobody.
    assert_eq!(outcome(&mut host, value(1)), [ack(1)]);
    assert_eq!(host.pending(), 0);
}

#[test]
fn agx_call_044_every_outcome_is_acked() {
    let mut host = connected(true, Peer::V1);
    make(&mut host, 1);
    host.http_reply(&id(1), CallReply::Done(value(1).result));
    assert_eq!(drain(&mut host), [end(1), ack(1)]);
    let mut host = connected(false, Peer::V1);
    make(&mut host, 2);
    assert_eq!(outcome(&mut host, value(2)), [end(2), ack(2)]);
    // Also one that cannot be read.
    let x = Call {
        call_id: CallId::new("x").unwrap(),
        ..call(0)
    };
    host.call(x.clone());
    drain(&mut host);
    let bad = host.event("call:result", &Bytes::from_static(b"\x81\xa7call_id\xa1x"));
    assert!(matches!(bad, Err(BadRuntimeEvent::Outcome { .. })));
    let outputs = drain(&mut host);
    let [HostOutput::End(_, Err(CallFailure::Malformed { .. })), last] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(*last, emit(HostEvent::Ack(x.call_id)));
}

#[test]
fn agx_call_045_no_other_id_is_acked() {
    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    assert_eq!(outcome(&mut host, value(9)), []);
    outcome(&mut host, value(1));
    assert_eq!(outcome(&mut host, value(1)), []);
    // Nor is what names no call at all.
    let mut event = |name: &str, payload: &'static [u8]| {
        let read = host.event(name, &Bytes::from_static(payload));
        assert_eq!(drain(&mut host), []);
        read.is_ok()
    };
    assert!(!event("call:result", b"\xc1"));
    assert!(!event("weird", b"\x80"));
    let rejected = RuntimeEvent::Rejected(RemoteError::new(ErrorType::BadRequest, ""));
    host.event(rejected.name(), &rejected.payload().into())
        .unwrap();
    assert_eq!(drain(&mut host), []);
    // And a request that was refused has no outcome to ack.
    let mut host = connected(true, Peer::V1);
    make(&mut host, 1);
    let error = RemoteError::bad_request("no");
    host.http_reply(&id(1), CallReply::BadRequest(error.clone()));
    let refused = CallFailure::Remote(error);
    assert_eq!(drain(&mut host), [HostOutput::End(id(1), Err(refused))]);
}

#[test]
fn agx_call_046_the_caller_has_it_before_the_ack() {
    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    let outputs = outcome(&mut host, value(1));
    assert_eq!(outputs, [end(1), ack(1)]);
}

#[test]
fn agx_call_047_a_new_connection_resumes_what_is_awaited() {
    for peer in [Peer::V1, Peer::Legacy] {
        let mut host = connected(true, peer);
        make(&mut host, 1);
        host.http_reply(&id(1), CallReply::Accepted(id(1)));
        make(&mut host, 2);
        // Posted and without an answer: a resume could overtake it.
        assert_eq!(host.state(&id(2)), Some(CallState::Posted));
        assert_eq!(reconnect(&mut host, peer), [resume(&[1])]);
    }
    let mut host = connected(false, Peer::Legacy);
    accepted(&mut host, 1);
    make(&mut host, 2);
    outcome(&mut host, value(1));
    assert_eq!(reconnect(&mut host, Peer::Legacy), [resume(&[2])]);
    // Each time.
    assert_eq!(reconnect(&mut host, Peer::Legacy), [resume(&[2])]);
}

#[test]
fn agx_call_048_what_may_be_lost_is_sent_again() {
    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    accepted(&mut host, 2);
    make(&mut host, 3);
    assert_eq!(
        reconnect(&mut host, Peer::V1),
        [send(1), send(3), resume(&[2])]
    );
    // Until there is an ack.
    host.acked(&id(1));
    assert_eq!(reconnect(&mut host, Peer::V1), [send(3), resume(&[1, 2])]);
    assert_eq!(outcome(&mut host, value(3)), [end(3), ack(3)]);
}

#[test]
fn agx_call_049_an_older_peer_gets_no_call_twice() {
    let mut host = connected(false, Peer::Legacy);
    make(&mut host, 1);
    host.disconnected();
    make(&mut host, 2);
    assert_eq!(host.state(&id(2)), Some(CallState::Queued));
    host.connected(Peer::Legacy);
    // The second was never sent.
    assert_eq!(drain(&mut host), [send(2), resume(&[1])]);
    // A runtime that was replaced by an older one is one that may run it twice.
    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    assert_eq!(reconnect(&mut host, Peer::Legacy), [resume(&[1])]);
}

#[test]
fn agx_call_058_a_dropped_call_and_a_closed_client_cancel() {
    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    host.cancel(&id(1));
    assert_eq!(drain(&mut host), [cancel(1)]);
    host.cancel(&id(1));
    assert_eq!(drain(&mut host), []);
    make(&mut host, 2);
    make(&mut host, 3);
    outcome(&mut host, value(3));
    host.close();
    let closed = |n| HostOutput::End(id(n), Err(CallFailure::Closed));
    // Not those that have an outcome, or were cancelled before.
    assert_eq!(drain(&mut host), [cancel(2), closed(2)]);
    assert_eq!(make(&mut host, 4), [closed(4)]);
    host.connected(Peer::V1);
    assert_eq!(outcome(&mut host, value(2)), []);
}

#[test]
fn agx_call_059_a_lost_connection_cancels_nothing() {
    let mut host = connected(false, Peer::V1);
    accepted(&mut host, 1);
    host.disconnected();
    assert_eq!(drain(&mut host), []);
    host.connected(Peer::V1);
    assert_eq!(drain(&mut host), [resume(&[1])]);
    host.disconnected();
    // Giving up ends the calls; whether they ran is not known.
    host.gone();
    let lost = |n| HostOutput::End(id(n), Err(CallFailure::Disconnected));
    assert_eq!(drain(&mut host), [lost(1)]);
    assert_eq!(make(&mut host, 2), [lost(2)]);
}

#[test]
fn agx_call_076_256_mib_and_not_a_byte_more() {
    let mut host = connected(false, Peer::V1);
    let overhead = call(1).encode().len() - call(1).arguments.len();
    // bin 32 has three more bytes of length than bin 8.
    let fits = MAX_MESSAGE_BYTES - overhead - 3;
    for (len, sent) in [(fits, true), (fits + 1, false)] {
        let arguments = Bytes::from(vec![0; len]);
        host.call(Call {
            arguments,
            ..call(len as u128)
        });
        let outputs = drain(&mut host);
        match &outputs[..] {
            [
                HostOutput::Emit {
                    event: HostEvent::Call(call),
                    ..
                },
            ] => {
                assert!(sent);
                assert_eq!(call.encode().len(), MAX_MESSAGE_BYTES);
            }
            [HostOutput::End(_, Err(CallFailure::PayloadTooLarge { len, limit }))] => {
                assert!(!sent);
                assert_eq!((*len, *limit), (MAX_MESSAGE_BYTES + 1, MAX_MESSAGE_BYTES));
            }
            other => panic!("{} outputs", other.len()),
        }
    }
}
