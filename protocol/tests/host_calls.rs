//! The host's call table, rule by rule.
#![allow(clippy::unwrap_used)]

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::event::{BadRuntimeEvent, HostEvent, RuntimeEvent};
use agentix_protocol::host::{CallFailure, CallState, HostCalls, HostOutput};
use agentix_protocol::http::{CallReply, Peer};
use agentix_protocol::ident::CallId;
use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::message::{Call, Outcome};
use bytes::Bytes;

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

const VALUE: Bytes = Bytes::from_static(b"N.");

fn send(n: u128) -> HostOutput {
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

fn ack(n: u128) -> HostOutput {
    emit(HostEvent::Ack(id(n)))
}

fn cancel(n: u128) -> HostOutput {
    emit(HostEvent::Cancel(id(n)))
}

fn resume(ids: &[u128]) -> HostOutput {
    emit(HostEvent::Resume(ids.iter().map(|&n| id(n)).collect()))
}

fn end(n: u128) -> HostOutput {
    HostOutput::End(id(n), Ok(VALUE))
}

fn drain(host: &mut HostCalls) -> Vec<HostOutput> {
    std::iter::from_fn(|| host.poll_output()).collect()
}

fn connected(use_http: bool, peer: Peer) -> HostCalls {
    let mut host = HostCalls::new(use_http);
    host.connected(peer);
    assert_eq!(drain(&mut host), []);
    host
}

fn make(host: &mut HostCalls, n: u128) -> Vec<HostOutput> {
    host.call(call(n));
    drain(host)
}

fn outcome(host: &mut HostCalls, n: u128) -> Vec<HostOutput> {
    let event = RuntimeEvent::Outcome(Outcome::value(id(n), VALUE));
    host.event(event.name(), &event.payload().into()).unwrap();
    drain(host)
}

/// AGX-CALL-024, -044 to -046: the first outcome counts, and is acked after it was handed over.
#[test]
fn a_call_ends_once_and_is_acked() {
    let mut host = connected(false, Peer::V1);
    assert_eq!(make(&mut host, 1), [send(1)]);
    assert_eq!(host.state(&id(1)), Some(CallState::Sent));
    host.acked(&id(1));
    assert_eq!(host.state(&id(1)), Some(CallState::Accepted));
    assert_eq!(outcome(&mut host, 1), [end(1), ack(1)]);
    assert_eq!(outcome(&mut host, 1), []);
    assert_eq!(outcome(&mut host, 9), []);
    assert_eq!(host.state(&id(1)), None);
}

/// AGX-CALL-047 to -049: what a new connection brings.
#[test]
fn a_new_link_resumes_and_sends_again() {
    for (peer, again) in [
        (Peer::V1, vec![send(2), send(3), resume(&[1])]),
        (Peer::Legacy, vec![send(3), resume(&[1, 2])]),
    ] {
        let mut host = connected(false, peer);
        make(&mut host, 1);
        host.acked(&id(1));
        make(&mut host, 2);
        host.disconnected();
        assert_eq!(make(&mut host, 3), []);
        assert_eq!(host.state(&id(3)), Some(CallState::Queued));
        host.connected(peer);
        assert_eq!(drain(&mut host), again);
        assert_eq!(outcome(&mut host, 2), [end(2), ack(2)]);
    }
}

/// AGX-HTTP-050 to -054.
#[test]
fn http_first() {
    let mut host = connected(true, Peer::V1);
    assert_eq!(make(&mut host, 1), [HostOutput::Post(call(1))]);
    host.http_reply(&id(1), CallReply::Done(Ok(VALUE)));
    assert_eq!(drain(&mut host), [end(1), ack(1)]);

    // 202: the outcome comes over `/rpc`.
    make(&mut host, 2);
    host.http_reply(&id(2), CallReply::Accepted(id(2)));
    assert_eq!(drain(&mut host), []);
    assert_eq!(outcome(&mut host, 2), [end(2), ack(2)]);

    // 202 after the connection changed: the owner is one of the past.
    make(&mut host, 3);
    host.disconnected();
    host.connected(Peer::V1);
    assert_eq!(drain(&mut host), []);
    host.http_reply(&id(3), CallReply::Accepted(id(3)));
    assert_eq!(drain(&mut host), [resume(&[3])]);

    // An answer that never came, after the outcome did.
    outcome(&mut host, 3);
    host.http_failed(&id(3), true);
    assert_eq!(drain(&mut host), []);
}

/// AGX-HTTP-051, -052: no usable answer.
#[test]
fn http_that_fails_falls_back_to_rpc() {
    let mut host = connected(true, Peer::V1);
    make(&mut host, 1);
    host.http_failed(&id(1), true);
    assert_eq!(drain(&mut host), [send(1)]);

    let mut host = connected(true, Peer::Legacy);
    make(&mut host, 1);
    host.http_failed(&id(1), true);
    assert_eq!(drain(&mut host), [resume(&[1])]);
    make(&mut host, 2);
    host.http_failed(&id(2), false);
    assert_eq!(drain(&mut host), [send(2)]);

    let mut host = connected(true, Peer::V1);
    make(&mut host, 1);
    host.disconnected();
    host.http_failed(&id(1), true);
    host.connected(Peer::V1);
    assert_eq!(drain(&mut host), [send(1)]);
}

#[test]
fn a_request_that_is_no_call_is_final_and_not_acked() {
    let mut host = connected(true, Peer::V1);
    make(&mut host, 1);
    let error = RemoteError::bad_request("no");
    host.http_reply(&id(1), CallReply::BadRequest(error.clone()));
    assert_eq!(
        drain(&mut host),
        [HostOutput::End(id(1), Err(CallFailure::Remote(error)))]
    );
}

/// AGX-CALL-058, -038, -039: a dropped call is cancelled, and its outcome acked.
#[test]
fn dropping_a_call_cancels_it() {
    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    host.cancel(&id(1));
    assert_eq!(drain(&mut host), [cancel(1)]);
    host.cancel(&id(1));
    assert_eq!(drain(&mut host), []);
    assert_eq!(outcome(&mut host, 1), [ack(1)]);

    // While the link is down: with the next one, and until its outcome is known.
    make(&mut host, 2);
    host.disconnected();
    host.cancel(&id(2));
    make(&mut host, 3);
    host.cancel(&id(3));
    host.connected(Peer::V1);
    assert_eq!(drain(&mut host), [cancel(2), resume(&[2])]);
    assert_eq!(outcome(&mut host, 2), [ack(2)]);
    assert_eq!(host.pending(), 0);
}

/// The POST of a dropped call may be behind the cancel.
#[test]
fn a_dropped_post_is_cancelled_again_when_it_arrives() {
    let mut host = connected(true, Peer::V1);
    make(&mut host, 1);
    host.cancel(&id(1));
    assert_eq!(drain(&mut host), [cancel(1)]);
    host.http_reply(&id(1), CallReply::Accepted(id(1)));
    assert_eq!(drain(&mut host), [cancel(1), resume(&[1])]);
    assert_eq!(outcome(&mut host, 1), [ack(1)]);
    make(&mut host, 2);
    host.cancel(&id(2));
    drain(&mut host);
    host.http_failed(&id(2), false);
    assert_eq!(host.pending(), 0);
}

/// AGX-CALL-059: a lost link cancels nothing; giving up ends everything.
#[test]
fn giving_up_and_closing() {
    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    host.disconnected();
    assert_eq!(drain(&mut host), []);
    host.gone();
    let lost = |n| HostOutput::End(id(n), Err(CallFailure::Disconnected));
    assert_eq!(drain(&mut host), [lost(1)]);
    assert_eq!(make(&mut host, 2), [lost(2)]);

    let mut host = connected(false, Peer::V1);
    make(&mut host, 1);
    host.close();
    let closed = |n| HostOutput::End(id(n), Err(CallFailure::Closed));
    assert_eq!(drain(&mut host), [cancel(1), closed(1)]);
    assert_eq!(make(&mut host, 2), [closed(2)]);
    host.connected(Peer::V1);
    assert_eq!(outcome(&mut host, 1), []);
}

/// An outcome that cannot be read still ends its call.
#[test]
fn malformed_outcomes() {
    let mut host = connected(false, Peer::V1);
    let x = Call {
        call_id: CallId::new("x").unwrap(),
        ..call(0)
    };
    host.call(x.clone());
    drain(&mut host);
    let bad = host.event("call:result", &Bytes::from_static(b"\x81\xa7call_id\xa1x"));
    assert!(matches!(bad, Err(BadRuntimeEvent::Outcome { .. })));
    let outputs = drain(&mut host);
    assert!(matches!(
        &outputs[..],
        [
            HostOutput::End(_, Err(CallFailure::Malformed { .. })),
            HostOutput::Emit { .. }
        ]
    ));
    // What names no call is only reported.
    assert!(
        host.event("call:result", &Bytes::from_static(b"\xc1"))
            .is_err()
    );
    assert!(host.event("weird", &Bytes::from_static(b"\x80")).is_err());
    let rejected = RuntimeEvent::Rejected(RemoteError::new(ErrorType::BadRequest, ""));
    host.event(rejected.name(), &rejected.payload().into())
        .unwrap();
    assert_eq!(drain(&mut host), []);
}

/// AGX-CALL-076: 256 MiB and not a byte more.
#[test]
fn a_call_that_is_too_large_is_not_sent() {
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
