//! The runtime's call table, rule by rule. Time is virtual.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::http::{CallReply, Prefer};
use agentix_protocol::ident::CallId;
use agentix_protocol::message::{Call, Outcome};
use agentix_protocol::runtime::{ConnId, HttpId, RuntimeCalls, RuntimeConfig, RuntimeOutput};
use bytes::Bytes;

const A: ConnId = ConnId(1);
const B: ConnId = ConnId(2);
const H: HttpId = HttpId(1);
const H2: HttpId = HttpId(2);

struct Table {
    calls: RuntimeCalls,
    now: Instant,
}

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

fn value(n: u128) -> Outcome {
    Outcome::value(id(n), Bytes::from(format!("value {n}")))
}

fn unavailable(n: u128) -> Outcome {
    Outcome::error(id(n), RemoteError::result_unavailable())
}

fn cancelled(n: u128) -> Outcome {
    Outcome::error(id(n), RemoteError::cancelled())
}

fn emit(to: ConnId, outcome: Outcome) -> RuntimeOutput {
    RuntimeOutput::Emit(to, RuntimeEvent::Outcome(outcome))
}

fn prefer() -> Prefer {
    Prefer {
        wait: Duration::from_secs(1),
    }
}

fn reply(http: HttpId, reply: CallReply) -> RuntimeOutput {
    RuntimeOutput::Reply(http, reply, prefer())
}

impl Table {
    /// Two hosts are connected.
    fn new() -> Self {
        Self::with(RuntimeConfig::default())
    }

    fn with(config: RuntimeConfig) -> Self {
        let mut calls = RuntimeCalls::new(config);
        calls.connected(A, "sid-a");
        calls.connected(B, "sid-b");
        Self {
            calls,
            now: Instant::now(),
        }
    }

    fn drain(&mut self) -> Vec<RuntimeOutput> {
        std::iter::from_fn(|| self.calls.poll_output()).collect()
    }

    fn event(&mut self, from: ConnId, event: HostEvent) -> Vec<RuntimeOutput> {
        assert!(
            self.calls
                .event(from, event.name(), &event.payload().into(), self.now)
        );
        self.drain()
    }

    fn call(&mut self, from: ConnId, n: u128) -> Vec<RuntimeOutput> {
        self.event(from, HostEvent::Call(call(n)))
    }

    fn resume(&mut self, from: ConnId, n: u128) -> Vec<RuntimeOutput> {
        self.event(from, HostEvent::Resume(vec![id(n)]))
    }

    fn ack(&mut self, from: ConnId, n: u128) {
        assert_eq!(self.event(from, HostEvent::Ack(id(n))), []);
    }

    fn cancel(&mut self, from: ConnId, n: u128) -> Vec<RuntimeOutput> {
        self.event(from, HostEvent::Cancel(id(n)))
    }

    fn post(&mut self, http: HttpId, n: u128, sid: Option<&str>) -> Vec<RuntimeOutput> {
        self.calls
            .http_call(http, &call(n).encode().into(), prefer(), sid, self.now);
        self.drain()
    }

    fn outcome(&mut self, outcome: Outcome) -> Vec<RuntimeOutput> {
        self.calls.outcome(outcome, self.now);
        self.drain()
    }

    fn pass(&mut self, seconds: u64) -> Vec<RuntimeOutput> {
        self.now += Duration::from_secs(seconds);
        self.calls.timeout(self.now);
        self.drain()
    }
}

/// AGX-CALL-003, -011 to -013, -042: an id names one execution.
#[test]
fn an_id_runs_once_whatever_happens_to_its_outcome() {
    let mut t = Table::new();
    assert_eq!(t.call(A, 1), [RuntimeOutput::Start(call(1))]);
    assert_eq!(t.call(A, 1), []);
    assert_eq!(t.outcome(value(1)), [emit(A, value(1))]);
    assert_eq!(t.call(A, 1), [emit(A, value(1))]);
    assert_eq!(t.outcome(value(1)), []);
    t.ack(A, 1);
    assert_eq!(t.calls.retained(), (0, 0));
    assert_eq!(t.call(A, 1), [emit(A, unavailable(1))]);
    assert_eq!(
        t.post(H, 1, None),
        [reply(
            H,
            CallReply::Done(Err(RemoteError::result_unavailable()))
        )]
    );
}

/// AGX-CALL-030 to -032: outcomes go to the owner only.
#[test]
fn only_the_owner_gets_the_outcome() {
    let mut t = Table::new();
    t.call(A, 1);
    assert_eq!(t.outcome(value(1)), [emit(A, value(1))]);
    t.call(A, 2);
    t.calls.disconnected(A);
    assert_eq!(t.outcome(value(2)), []);
    assert_eq!(t.resume(B, 2), [emit(B, value(2))]);
    t.call(B, 3);
    // A repeated call makes its sender the owner.
    t.calls.connected(A, "sid-a2");
    assert_eq!(t.call(A, 3), []);
    assert_eq!(t.outcome(value(3)), [emit(A, value(3))]);
}

/// AGX-CALL-040: running is silence, held is replay, unknown is final; in list order.
#[test]
fn resume_answers_each_id() {
    let mut t = Table::new();
    t.call(A, 1);
    t.call(A, 2);
    t.outcome(value(2));
    let ids = vec![id(3), id(1), id(2), id(2)];
    assert_eq!(
        t.event(B, HostEvent::Resume(ids)),
        [
            emit(B, unavailable(3)),
            emit(B, value(2)),
            emit(B, value(2))
        ]
    );
    assert_eq!(t.outcome(value(1)), [emit(B, value(1))]);
    // Naming an unknown id does not close it.
    assert_eq!(t.call(A, 3), [RuntimeOutput::Start(call(3))]);
}

/// AGX-CALL-050 to -055.
#[test]
fn cancel_ends_a_running_call_and_nothing_else() {
    let mut t = Table::new();
    t.call(A, 1);
    assert_eq!(
        t.cancel(A, 1),
        [RuntimeOutput::Cancel(id(1)), emit(A, cancelled(1))]
    );
    // The late outcome, another cancel: dropped.
    assert_eq!(t.outcome(value(1)), []);
    assert_eq!(t.cancel(A, 1), []);
    assert_eq!(t.resume(A, 1), [emit(A, cancelled(1))]);
    t.call(A, 2);
    assert_eq!(
        t.cancel(B, 2),
        [
            RuntimeOutput::Cancel(id(2)),
            emit(A, cancelled(2)),
            emit(B, cancelled(2))
        ]
    );
    t.call(A, 3);
    t.outcome(value(3));
    assert_eq!(t.cancel(A, 3), []);
    assert_eq!(t.resume(A, 3), [emit(A, value(3))]);
    assert_eq!(t.cancel(A, 9), []);
    assert_eq!(t.call(A, 9), [RuntimeOutput::Start(call(9))]);
}

/// AGX-CALL-064, -065: an HTTP answer is not repeated, and can be asked for again for 60 s.
#[test]
fn an_http_outcome_is_held_for_a_minute() {
    let mut t = Table::new();
    assert_eq!(t.post(H, 1, Some("sid-a")), [RuntimeOutput::Start(call(1))]);
    assert_eq!(
        t.outcome(value(1)),
        [reply(H, CallReply::Done(value(1).result))]
    );
    assert_eq!(t.pass(59), []);
    assert_eq!(
        t.post(H2, 1, None),
        [reply(H2, CallReply::Done(value(1).result))]
    );
    assert_eq!(t.pass(1), []);
    assert_eq!(t.calls.retained(), (0, 0));
    assert_eq!(t.resume(A, 1), [emit(A, unavailable(1))]);
    // One that was resumed is held like any other.
    t.post(H, 2, Some("sid-a"));
    t.outcome(value(2));
    assert_eq!(t.resume(A, 2), [emit(A, value(2))]);
    assert_eq!(t.pass(3600), []);
    assert_eq!(t.resume(A, 2), [emit(A, value(2))]);
    t.ack(A, 2);
    // An ack frees one that nobody owns as well: it went to no connection.
    t.post(H2, 3, None);
    t.outcome(value(3));
    assert_eq!(t.calls.retained().0, 1);
    t.ack(B, 3);
    assert_eq!(t.resume(B, 3), [emit(B, unavailable(3))]);
}

/// AGX-CALL-033, -034: after a 202 the named connection gets the outcome, or else everybody.
#[test]
fn a_202_is_followed_by_the_outcome() {
    let mut t = Table::new();
    t.post(H, 1, Some("sid-b"));
    assert_eq!(t.pass(1), [reply(H, CallReply::Accepted(id(1)))]);
    assert_eq!(t.outcome(value(1)), [emit(B, value(1))]);
    t.post(H, 2, None);
    t.pass(1);
    assert_eq!(t.outcome(value(2)), [emit(A, value(2)), emit(B, value(2))]);
    t.ack(A, 2);
    assert_eq!(t.resume(B, 2), [emit(B, value(2))]);
    t.ack(B, 2);
    assert_eq!(t.resume(B, 2), [emit(B, unavailable(2))]);
}

/// AGX-CALL-035: everybody acks or leaves, but somebody must have acked.
#[test]
fn an_outcome_for_everybody_is_freed_when_all_have_acked_or_left() {
    let mut t = Table::new();
    t.post(H, 1, Some("no such sid"));
    t.pass(1);
    t.outcome(value(1));
    t.ack(A, 1);
    assert_eq!(t.calls.retained().0, 1);
    t.calls.disconnected(B);
    assert_eq!(t.calls.retained().0, 0);
    // Nobody has it when the only receiver's link breaks: it stays for the resume.
    t.post(H2, 2, None);
    t.pass(1);
    assert_eq!(t.outcome(value(2)), [emit(A, value(2))]);
    t.calls.disconnected(A);
    t.calls.connected(A, "sid-a2");
    assert_eq!(t.resume(A, 2), [emit(A, value(2))]);
    t.ack(A, 2);
    assert_eq!(t.calls.retained().0, 0);
}

/// AGX-HTTP-031: the HTTP caller went away.
#[test]
fn a_lost_http_caller_is_answered_on_rpc() {
    let mut t = Table::new();
    t.post(H, 1, Some("sid-a"));
    t.calls.http_gone(H);
    assert_eq!(t.pass(1), []);
    assert_eq!(t.outcome(value(1)), [emit(A, value(1))]);
    // Found out while answering.
    t.post(H2, 2, Some("sid-a"));
    assert_eq!(
        t.outcome(value(2)),
        [reply(H2, CallReply::Done(value(2).result))]
    );
    t.calls.undelivered(&id(2));
    assert_eq!(t.drain(), [emit(A, value(2))]);
    assert_eq!(t.pass(60), []);
    assert_eq!(t.calls.retained().0, 2);
}

/// AGX-HTTP-040, -044, AGX-CALL-067: a repeat while a POST waits.
#[test]
fn a_repeat_while_a_post_waits_is_served_as_well() {
    let mut t = Table::new();
    t.post(H, 1, Some("sid-a"));
    assert_eq!(
        t.post(H2, 1, Some("sid-b")),
        [reply(H2, CallReply::Accepted(id(1)))]
    );
    assert_eq!(
        t.outcome(value(1)),
        [
            reply(H, CallReply::Done(value(1).result)),
            emit(B, value(1))
        ]
    );
    t.post(H, 2, Some("sid-a"));
    assert_eq!(t.resume(A, 2), []);
    assert_eq!(
        t.outcome(value(2)),
        [
            reply(H, CallReply::Done(value(2).result)),
            emit(A, value(2))
        ]
    );
}

/// AGX-CALL-054: a POST that waits hears of the cancel.
#[test]
fn a_waiting_post_is_cancelled() {
    let mut t = Table::new();
    t.post(H, 1, Some("sid-a"));
    assert_eq!(
        t.cancel(B, 1),
        [
            RuntimeOutput::Cancel(id(1)),
            reply(H, CallReply::Done(cancelled(1).result)),
            emit(B, cancelled(1))
        ]
    );
}

/// AGX-CALL-060 to -063.
#[test]
fn the_oldest_outcomes_are_evicted() {
    let mut config = RuntimeConfig::default();
    config.max_retained = 2;
    config.max_retained_bytes = 20;
    let mut t = Table::with(config);
    for n in 1..=3 {
        t.call(A, n);
        t.outcome(value(n));
    }
    assert_eq!(t.resume(A, 1), [emit(A, unavailable(1))]);
    assert_eq!(t.resume(A, 2), [emit(A, value(2))]);
    assert_eq!(t.calls.retained(), (2, 14));
    t.call(A, 4);
    t.outcome(Outcome::value(id(4), Bytes::from_static(&[0; 19])));
    assert_eq!(t.calls.retained(), (1, 19));
    assert_eq!(t.call(A, 3), [emit(A, unavailable(3))]);
}

/// AGX-RPC-016, -018, AGX-CALL-004: a bad call closes nothing and hides nothing.
#[test]
fn bad_calls() {
    let mut t = Table::new();
    let mut send = |name: &str, payload: &'static [u8]| {
        let known = t.calls.event(A, name, &Bytes::from_static(payload), t.now);
        (
            known,
            std::iter::from_fn(|| t.calls.poll_output()).collect::<Vec<_>>(),
        )
    };
    // {"call_id": "x"}
    let (known, outputs) = send("call", b"\x81\xa7call_id\xa1x");
    let [RuntimeOutput::Emit(A, RuntimeEvent::Outcome(outcome))] = &outputs[..] else {
        panic!()
    };
    assert!(known);
    assert_eq!(outcome.call_id.as_str(), "x");
    assert_eq!(
        outcome.result.as_ref().unwrap_err().error_type,
        ErrorType::BadRequest
    );
    // {}
    let (known, outputs) = send("call", b"\x80");
    assert!(known);
    assert!(matches!(
        &outputs[..],
        [RuntimeOutput::Emit(A, RuntimeEvent::Rejected(_))]
    ));
    // Not a map, not msgpack, no such event: silence.
    assert_eq!(send("call", b"\x90"), (false, vec![]));
    assert_eq!(send("call", b"\xc1"), (false, vec![]));
    assert_eq!(send("nonsense", b"\x80"), (false, vec![]));
    // The id is still free.
    let x = Call {
        call_id: CallId::new("x").unwrap(),
        ..call(0)
    };
    assert_eq!(
        t.event(A, HostEvent::Call(x.clone())),
        [RuntimeOutput::Start(x)]
    );
    // Now it names a running call: a repeat, whatever its other fields hold.
    t.calls.event(
        B,
        "call",
        &Bytes::from_static(b"\x81\xa7call_id\xa1x"),
        t.now,
    );
    assert_eq!(t.drain(), []);
}

#[test]
fn bad_http_bodies() {
    let mut t = Table::new();
    for body in [
        &b""[..],
        b"\x90",
        b"\xc1",
        b"\x80",
        b"\x81\xa7call_id\xa0",
        b"\x81\xa7call_id\xa1x",
    ] {
        t.calls
            .http_call(H, &Bytes::from_static(body), prefer(), None, t.now);
        let outputs = t.drain();
        assert!(
            matches!(&outputs[..], [RuntimeOutput::Reply(H, CallReply::BadRequest(e), _)]
                if e.error_type == ErrorType::BadRequest),
            "{body:?}: {outputs:?}"
        );
    }
    assert_eq!(t.calls.running(), 0);
}
