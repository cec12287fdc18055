//! A runtime's call table with two hosts on it.

use std::time::{Duration, Instant};

use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::http::{CallReply, Prefer};
use agentix_protocol::message::Outcome;
use agentix_protocol::runtime::{ConnId, HttpId, RuntimeCalls, RuntimeConfig, RuntimeOutput};

use crate::messages::{call, id};

pub(crate) const A: ConnId = ConnId(1);
pub(crate) const B: ConnId = ConnId(2);
/// Where a host is after it has connected again.
pub(crate) const A2: ConnId = ConnId(3);
pub(crate) const H: HttpId = HttpId(1);
pub(crate) const H2: HttpId = HttpId(2);

/// How long a POST waits.
pub(crate) const WAIT: u64 = 1;

pub(crate) struct Table {
    pub(crate) calls: RuntimeCalls,
    pub(crate) now: Instant,
}

pub(crate) fn start(n: u128) -> RuntimeOutput {
    RuntimeOutput::Start(call(n))
}

pub(crate) fn emit(to: ConnId, outcome: Outcome) -> RuntimeOutput {
    RuntimeOutput::Emit(to, RuntimeEvent::Outcome(outcome))
}

pub(crate) fn prefer() -> Prefer {
    Prefer {
        wait: Duration::from_secs(WAIT),
    }
}

pub(crate) fn reply(http: HttpId, reply: CallReply) -> RuntimeOutput {
    RuntimeOutput::Reply(http, reply, prefer())
}

pub(crate) fn done(http: HttpId, outcome: Outcome) -> RuntimeOutput {
    reply(http, CallReply::Done(outcome.result))
}

pub(crate) fn accepted(http: HttpId, n: u128) -> RuntimeOutput {
    reply(http, CallReply::Accepted(id(n)))
}

impl Table {
    pub(crate) fn new() -> Self {
        Self::with(RuntimeConfig::default())
    }

    pub(crate) fn with(config: RuntimeConfig) -> Self {
        let mut calls = RuntimeCalls::new(config);
        calls.connected(A, "sid-a");
        calls.connected(B, "sid-b");
        Self {
            calls,
            now: Instant::now(),
        }
    }

    pub(crate) fn drain(&mut self) -> Vec<RuntimeOutput> {
        std::iter::from_fn(|| self.calls.poll_output()).collect()
    }

    pub(crate) fn event(&mut self, from: ConnId, event: &HostEvent) -> Vec<RuntimeOutput> {
        assert!(
            self.calls
                .event(from, event.name(), &event.payload().into(), self.now)
        );
        self.drain()
    }

    pub(crate) fn call(&mut self, from: ConnId, n: u128) -> Vec<RuntimeOutput> {
        self.event(from, &HostEvent::Call(call(n)))
    }

    /// A call that has ended with its value, sent by `from`.
    pub(crate) fn ended(&mut self, from: ConnId, n: u128) {
        self.call(from, n);
        self.outcome(crate::messages::value(n));
    }

    pub(crate) fn resume(&mut self, from: ConnId, n: u128) -> Vec<RuntimeOutput> {
        self.event(from, &HostEvent::Resume(vec![id(n)]))
    }

    pub(crate) fn ack(&mut self, from: ConnId, n: u128) {
        assert_eq!(self.event(from, &HostEvent::Ack(id(n))), []);
    }

    pub(crate) fn cancel(&mut self, from: ConnId, n: u128) -> Vec<RuntimeOutput> {
        self.event(from, &HostEvent::Cancel(id(n)))
    }

    pub(crate) fn post(&mut self, http: HttpId, n: u128, sid: Option<&str>) -> Vec<RuntimeOutput> {
        self.calls
            .http_call(http, &call(n).encode().into(), prefer(), sid, self.now);
        self.drain()
    }

    /// A POST that is answered 202.
    pub(crate) fn post_202(&mut self, http: HttpId, n: u128, sid: Option<&str>) {
        assert_eq!(self.post(http, n, sid), [start(n)]);
        assert_eq!(self.pass(WAIT), [accepted(http, n)]);
    }

    pub(crate) fn outcome(&mut self, outcome: Outcome) -> Vec<RuntimeOutput> {
        self.calls.outcome(outcome, self.now);
        self.drain()
    }

    pub(crate) fn pass(&mut self, seconds: u64) -> Vec<RuntimeOutput> {
        self.now += Duration::from_secs(seconds);
        self.calls.timeout(self.now);
        self.drain()
    }

    pub(crate) fn held(&self) -> usize {
        self.calls.retained().0
    }
}
