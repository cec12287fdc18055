//! What a host does with the answer to `POST /call`.

use agentix_protocol::host::HostOutput;
use agentix_protocol::http::{CallReply, Peer};

use crate::host::{ack, cancel, connected, drain, end, make, outcome, resume, send};
use crate::messages::{call, id, value};

#[test]
fn agx_http_050_after_202_the_outcome_comes_on_rpc() {
    let mut host = connected(true, Peer::V1);
    assert_eq!(make(&mut host, 1), [HostOutput::Post(call(1))]);
    host.http_reply(&id(1), CallReply::Accepted(id(1)));
    assert_eq!(drain(&mut host), []);
    assert_eq!(outcome(&mut host, value(1)), [end(1), ack(1)]);
}

#[test]
fn agx_http_051_without_an_answer_the_call_is_sent_again() {
    for maybe_accepted in [true, false] {
        let mut host = connected(true, Peer::V1);
        make(&mut host, 1);
        host.http_failed(&id(1), maybe_accepted);
        assert_eq!(drain(&mut host), [send(1)]);
    }
    // With the next connection, if there is none now.
    let mut host = connected(true, Peer::V1);
    make(&mut host, 1);
    host.disconnected();
    host.http_failed(&id(1), true);
    assert_eq!(drain(&mut host), []);
    host.connected(Peer::V1);
    assert_eq!(drain(&mut host), [send(1)]);
    // Not if the outcome has come meanwhile.
    outcome(&mut host, value(1));
    host.http_failed(&id(1), true);
    assert_eq!(drain(&mut host), []);
}

#[test]
fn agx_http_052_an_older_peer_is_asked_instead() {
    let mut host = connected(true, Peer::Legacy);
    make(&mut host, 1);
    host.http_failed(&id(1), true);
    assert_eq!(drain(&mut host), [resume(&[1])]);
    // What it cannot have taken may be sent.
    make(&mut host, 2);
    host.http_failed(&id(2), false);
    assert_eq!(drain(&mut host), [send(2)]);
}

#[test]
fn agx_http_054_a_202_for_a_connection_of_the_past_is_resumed() {
    let mut host = connected(true, Peer::V1);
    make(&mut host, 1);
    host.disconnected();
    host.connected(Peer::V1);
    assert_eq!(drain(&mut host), []);
    host.http_reply(&id(1), CallReply::Accepted(id(1)));
    assert_eq!(drain(&mut host), [resume(&[1])]);
    // Answered while there is no connection: the next one names it.
    make(&mut host, 2);
    host.disconnected();
    host.http_reply(&id(2), CallReply::Accepted(id(2)));
    assert_eq!(drain(&mut host), []);
    host.connected(Peer::V1);
    assert_eq!(drain(&mut host), [resume(&[1, 2])]);
}

/// The POST of a dropped call may be behind the cancel.
#[test]
fn agx_call_058_a_dropped_post_is_cancelled_again_when_it_arrives() {
    let mut host = connected(true, Peer::V1);
    make(&mut host, 1);
    host.cancel(&id(1));
    assert_eq!(drain(&mut host), [cancel(1)]);
    host.http_reply(&id(1), CallReply::Accepted(id(1)));
    assert_eq!(drain(&mut host), [cancel(1), resume(&[1])]);
    assert_eq!(outcome(&mut host, value(1)), [ack(1)]);
    make(&mut host, 2);
    host.cancel(&id(2));
    drain(&mut host);
    host.http_failed(&id(2), false);
    assert_eq!((drain(&mut host), host.pending()), (vec![], 0));
    // It may have been taken: its outcome is waited for.
    make(&mut host, 3);
    host.cancel(&id(3));
    drain(&mut host);
    host.http_failed(&id(3), true);
    assert_eq!(drain(&mut host), [cancel(3), resume(&[3])]);
}
