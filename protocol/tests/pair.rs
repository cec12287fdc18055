//! Two hosts, a runtime and a worker in memory, with virtual time and links that break: the same
//! machines that the processes run.
//!
//! Whatever happens on the way, no id runs twice, and once the links are up and time has passed,
//! every call that somebody awaits has ended exactly once.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::host::{CallFailure, HostCalls, HostOutput};
use agentix_protocol::http::Peer;
use agentix_protocol::ident::CallId;
use agentix_protocol::link::{Exit, Generation, Link, LinkConfig, LinkOutput};
use agentix_protocol::message::Call;
use agentix_protocol::runtime::{ConnId, RuntimeCalls, RuntimeConfig, RuntimeOutput};
use agentix_protocol::worker::{Dispatcher, WorkerOutput};
use bytes::Bytes;
use proptest::prelude::*;

struct Host {
    calls: HostCalls,
    connection: Option<ConnId>,
    to_runtime: VecDeque<(HostEvent, bool)>,
    /// Outcomes, and acks of calls.
    from_runtime: VecDeque<Result<RuntimeEvent, CallId>>,
    ended: BTreeMap<CallId, Vec<Result<Bytes, CallFailure>>>,
}

struct Process {
    dispatcher: Dispatcher,
    generation: Generation,
    to_worker: VecDeque<Bytes>,
    from_worker: VecDeque<Bytes>,
    running: Vec<CallId>,
}

struct World {
    now: Instant,
    hosts: [Host; 2],
    runtime: RuntimeCalls,
    link: Link,
    process: Option<Process>,
    next_connection: u64,
    executions: BTreeMap<CallId, u32>,
    awaited: BTreeMap<CallId, usize>,
    cuts: u32,
}

impl World {
    fn new() -> Self {
        let host = || Host {
            calls: HostCalls::new(false),
            connection: None,
            to_runtime: VecDeque::new(),
            from_runtime: VecDeque::new(),
            ended: BTreeMap::new(),
        };
        Self {
            now: Instant::now(),
            hosts: [host(), host()],
            runtime: RuntimeCalls::new(RuntimeConfig::default()),
            link: Link::new(LinkConfig::default()),
            process: None,
            next_connection: 0,
            executions: BTreeMap::new(),
            awaited: BTreeMap::new(),
            cuts: 0,
        }
    }

    fn connect(&mut self, h: usize) {
        if self.hosts[h].connection.is_none() {
            self.next_connection += 1;
            let connection = ConnId(self.next_connection);
            self.hosts[h].connection = Some(connection);
            self.runtime
                .connected(connection, format!("sid{}", self.next_connection));
            self.hosts[h].calls.connected(Peer::V1);
            self.drain_host(h);
        }
    }

    /// Cuts the link: what is on it in either direction is lost.
    fn cut(&mut self, h: usize) {
        if let Some(connection) = self.hosts[h].connection.take() {
            self.cuts += 1;
            self.hosts[h].to_runtime.clear();
            self.hosts[h].from_runtime.clear();
            self.hosts[h].calls.disconnected();
            self.runtime.disconnected(connection);
            self.drain_runtime();
        }
    }

    fn call(&mut self, h: usize, n: u128) {
        let call_id = CallId::from_random(n);
        self.awaited.insert(call_id.clone(), h);
        let arguments = Bytes::from_static(b"\x80\x04)}\x86.");
        self.hosts[h].calls.call(Call {
            call_id,
            callable: "app::run".into(),
            arguments,
            context: None,
        });
        self.drain_host(h);
    }

    fn drop_call(&mut self, n: u128) {
        let id = CallId::from_random(n);
        if let Some(&h) = self.awaited.get(&id)
            && !self.hosts[h].ended.contains_key(&id)
        {
            self.awaited.remove(&id);
            self.hosts[h].calls.cancel(&id);
            self.drain_host(h);
        }
    }

    /// Delivers one message from a host; returns whether there was one.
    fn deliver_to_runtime(&mut self, h: usize) -> bool {
        let host = &mut self.hosts[h];
        let (Some(connection), Some((event, ask_ack))) =
            (host.connection, host.to_runtime.pop_front())
        else {
            return false;
        };
        let known = self
            .runtime
            .event(connection, event.name(), &event.payload().into(), self.now);
        assert!(known);
        if ask_ack && let HostEvent::Call(call) = event {
            self.hosts[h].from_runtime.push_back(Err(call.call_id));
        }
        self.drain_runtime();
        true
    }

    fn deliver_to_host(&mut self, h: usize) -> bool {
        match self.hosts[h].from_runtime.pop_front() {
            Some(Ok(event)) => {
                self.hosts[h]
                    .calls
                    .event(event.name(), &event.payload().into())
                    .unwrap();
            }
            Some(Err(accepted)) => self.hosts[h].calls.acked(&accepted),
            None => return false,
        }
        self.drain_host(h);
        true
    }

    fn deliver_to_worker(&mut self) -> bool {
        let Some(process) = &mut self.process else {
            return false;
        };
        let Some(body) = process.to_worker.pop_front() else {
            return false;
        };
        process.dispatcher.frame(&body);
        self.drain_worker();
        true
    }

    fn deliver_from_worker(&mut self) -> bool {
        let Some(process) = &mut self.process else {
            return false;
        };
        let Some(body) = process.from_worker.pop_front() else {
            return false;
        };
        self.link.frame(process.generation, &body, self.now);
        self.drain_link();
        true
    }

    /// A function returns.
    fn finish(&mut self) -> bool {
        let Some(process) = &mut self.process else {
            return false;
        };
        let Some(id) = process.running.pop() else {
            return false;
        };
        process
            .dispatcher
            .finished(&id, Ok(Bytes::from_static(b"N.")));
        self.drain_worker();
        true
    }

    /// The worker dies; what it had written to the pipe arrives all the same.
    fn kill(&mut self) {
        while self.deliver_from_worker() {}
        if let Some(process) = self.process.take() {
            self.link
                .exited(process.generation, Exit::Signal(9), self.now);
            self.link.end_of_stream(process.generation, self.now);
            self.drain_link();
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.link.timeout(self.now);
        self.runtime.timeout(self.now);
        self.drain_runtime();
        self.drain_link();
    }

    fn drain_host(&mut self, h: usize) {
        let host = &mut self.hosts[h];
        while let Some(output) = host.calls.poll_output() {
            match output {
                HostOutput::Emit { event, ask_ack } => {
                    if host.connection.is_some() {
                        host.to_runtime.push_back((event, ask_ack));
                    }
                }
                HostOutput::End(id, result) => host.ended.entry(id).or_default().push(result),
                HostOutput::Post(_) => panic!("HTTP is off"),
            }
        }
    }

    fn drain_runtime(&mut self) {
        while let Some(output) = self.runtime.poll_output() {
            match output {
                RuntimeOutput::Emit(connection, event) => {
                    let owner = self
                        .hosts
                        .iter_mut()
                        .find(|h| h.connection == Some(connection));
                    owner
                        .expect("emitted to a connection that is up")
                        .from_runtime
                        .push_back(Ok(event));
                }
                RuntimeOutput::Start(call) => self.link.call(call, self.now),
                RuntimeOutput::Cancel(id) => self.link.cancel(&id),
                RuntimeOutput::Reply(..) => panic!("HTTP is off"),
            }
            self.drain_link();
        }
    }

    fn drain_link(&mut self) {
        while let Some(output) = self.link.poll_output() {
            match output {
                LinkOutput::Spawn(generation) => {
                    self.process = Some(Process {
                        dispatcher: Dispatcher::new(0),
                        generation,
                        to_worker: VecDeque::new(),
                        from_worker: VecDeque::new(),
                        running: Vec::new(),
                    });
                    self.drain_worker();
                }
                LinkOutput::Write(generation, body) => {
                    if let Some(process) = &mut self.process
                        && process.generation == generation
                    {
                        process.to_worker.push_back(body);
                    }
                }
                LinkOutput::Outcome(outcome) => {
                    self.runtime.outcome(outcome, self.now);
                    self.drain_runtime();
                }
                LinkOutput::Kill(_) | LinkOutput::Notice(_) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn drain_worker(&mut self) {
        let Some(process) = &mut self.process else {
            return;
        };
        while let Some(output) = process.dispatcher.poll_output() {
            match output {
                WorkerOutput::Start(call) => {
                    *self.executions.entry(call.call_id.clone()).or_default() += 1;
                    process.running.push(call.call_id);
                }
                // Best effort: this worker's functions do not listen.
                WorkerOutput::Abort(_) => {}
                WorkerOutput::Write(body) => process.from_worker.push_back(body),
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// All links up, everything delivered, every function returned.
    fn settle(&mut self) {
        self.connect(0);
        self.connect(1);
        for _ in 0..10_000 {
            let moved = [0, 1]
                .into_iter()
                .any(|h| self.deliver_to_runtime(h) || self.deliver_to_host(h))
                || self.deliver_to_worker()
                || self.deliver_from_worker()
                || self.finish();
            if !moved {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn check(&self) {
        for (id, count) in &self.executions {
            assert_eq!(*count, 1, "{id} ran {count} times");
        }
        for (id, &h) in &self.awaited {
            let ended = self.hosts[h].ended.get(id).map_or(0, Vec::len);
            assert_eq!(ended, 1, "{id} ended {ended} times");
        }
        for (h, host) in self.hosts.iter().enumerate() {
            for id in host.ended.keys() {
                assert_eq!(
                    self.awaited.get(id),
                    Some(&h),
                    "host {h} got the outcome of {id}"
                );
            }
            assert_eq!(host.calls.pending(), 0);
        }
        assert_eq!(self.runtime.running(), 0);
        // An ack that was lost with a link leaves its outcome to eviction.
        if self.cuts == 0 {
            assert_eq!(self.runtime.retained().0, 0, "every outcome was acked");
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Connect(usize),
    Cut(usize),
    Call(usize),
    Drop(u128),
    ToRuntime(usize),
    ToHost(usize),
    ToWorker,
    FromWorker,
    Finish,
    Kill,
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let host = 0..2_usize;
    prop_oneof![
        2 => host.clone().prop_map(Op::Connect),
        2 => host.clone().prop_map(Op::Cut),
        4 => host.clone().prop_map(Op::Call),
        1 => (0..20_u128).prop_map(Op::Drop),
        6 => host.clone().prop_map(Op::ToRuntime),
        6 => host.prop_map(Op::ToHost),
        6 => Just(Op::ToWorker),
        6 => Just(Op::FromWorker),
        4 => Just(Op::Finish),
        1 => Just(Op::Kill),
        1 => (0..40_u64).prop_map(Op::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn nothing_lost_and_nothing_twice(ops in prop::collection::vec(op(), 0..120)) {
        let mut world = World::new();
        let mut next = 0;
        for op in ops {
            match op {
                Op::Connect(h) => world.connect(h),
                Op::Cut(h) => world.cut(h),
                Op::Call(h) => {
                    world.call(h, next);
                    next += 1;
                }
                Op::Drop(n) => world.drop_call(n),
                Op::ToRuntime(h) => { world.deliver_to_runtime(h); }
                Op::ToHost(h) => { world.deliver_to_host(h); }
                Op::ToWorker => { world.deliver_to_worker(); }
                Op::FromWorker => { world.deliver_from_worker(); }
                Op::Finish => { world.finish(); }
                Op::Kill => world.kill(),
                Op::Pass(seconds) => world.pass(Duration::from_secs(seconds)),
            }
        }
        world.settle();
        world.check();
    }
}

/// The plain way, once, without any chance.
#[test]
fn a_call_goes_there_and_back() {
    let mut world = World::new();
    world.connect(0);
    world.call(0, 1);
    world.settle();
    world.check();
    let ended = &world.hosts[0].ended[&CallId::from_random(1)];
    assert_eq!(ended[..], [Ok(Bytes::from_static(b"N."))]);
    assert!(world.hosts[1].ended.is_empty());
}
