//! The one task that owns the call table and the link: it feeds them what happened, and does what
//! they say.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use agentix_protocol::codec::{self, Keys, Limits};
use agentix_protocol::error::RemoteError;
use agentix_protocol::event::{BadHostEvent, HostEvent, RuntimeEvent};
use agentix_protocol::frame::PipeEvent;
use agentix_protocol::http::{CallReply, Prefer};
use agentix_protocol::ident::Namespace;
use agentix_protocol::link::{Generation, Link, LinkConfig, LinkOutput};
use agentix_protocol::message::Outcome;
use agentix_protocol::names::{RPC, stream};
use agentix_protocol::packet::{Event, MAX_HEADER_BYTES, Payload, SocketPacket};
use agentix_protocol::runtime::{ConnId, HttpId, RuntimeCalls, RuntimeConfig, RuntimeOutput};
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::command::WorkerCommand;
use crate::inbox::{Inbox, Input, Inputs};
use crate::json;
use crate::log;
use crate::names::WORKER_ID;
use crate::outbox::{Item, Pressure};
use crate::process::{Groups, Worker};
use crate::random;
use crate::session::{Session, SessionId, event_header, message_item};

#[derive(Debug)]
struct Connection {
    session: Arc<Session>,
    namespace: Namespace,
    sid: String,
}

/// The task's state.
#[derive(Debug)]
pub(crate) struct Driver {
    calls: RuntimeCalls,
    link: Link,
    command: WorkerCommand,
    groups: Groups,
    pressure: Pressure,
    inbox: Inbox,
    inputs: Inputs,
    workers: HashMap<Generation, Worker>,
    pipes: JoinSet<()>,
    first_worker_id: u32,
    connections: HashMap<ConnId, Connection>,
    /// In the order in which they joined, so that what goes to all goes to each in turn.
    by_namespace: HashMap<Namespace, BTreeSet<u64>>,
    by_session: HashMap<SessionId, Vec<ConnId>>,
    waiting: HashMap<HttpId, oneshot::Sender<(CallReply, Prefer)>>,
    stop: Option<oneshot::Sender<()>>,
    link_stopped: bool,
}

impl Driver {
    /// A driver without a worker.
    ///
    /// # Errors
    ///
    /// When the operating system has no random bits to give.
    pub(crate) fn new(
        command: WorkerCommand,
        mut runtime: RuntimeConfig,
        link: LinkConfig,
        groups: Groups,
        pressure: Pressure,
        (inbox, inputs): (Inbox, Inputs),
    ) -> Result<Self, getrandom::Error> {
        runtime.seed = random::bits()?;
        Ok(Self {
            calls: RuntimeCalls::new(runtime),
            link: Link::new(link),
            command,
            groups,
            pressure,
            inbox,
            inputs,
            workers: HashMap::new(),
            pipes: JoinSet::new(),
            // The upper half: no truncation matters to random bits.
            first_worker_id: (random::bits()? >> 32) as u32,
            connections: HashMap::new(),
            by_namespace: HashMap::new(),
            by_session: HashMap::new(),
            waiting: HashMap::new(),
            stop: None,
            link_stopped: false,
        })
    }

    /// Runs until nobody can tell it anything any more.
    pub(crate) async fn run(mut self) {
        loop {
            let due = [self.calls.poll_timeout(), self.link.poll_timeout()];
            let timeout = async {
                match due.into_iter().flatten().min() {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            let input = tokio::select! {
                biased;
                input = self.inputs.next() => match input {
                    Some(input) => Some(input),
                    None => return,
                },
                () = timeout => None,
            };
            let now = Instant::now();
            if let Some(input) = input {
                self.input(input, now);
            }
            // Also when inputs keep coming.
            self.calls.timeout(now);
            self.link.timeout(now);
            self.drain(now);
        }
    }

    fn input(&mut self, input: Input, now: Instant) {
        match input {
            Input::Join {
                session,
                conn,
                namespace,
            } => self.join(session, conn, namespace),
            Input::Leave(conn) => self.leave(conn),
            Input::Event { conn, event } => self.event(conn, event, now),
            Input::SessionClosed(session) => {
                for conn in self.by_session.remove(&session).unwrap_or_default() {
                    self.leave(conn);
                }
            }
            Input::Http {
                http,
                body,
                prefer,
                owner_sid,
                reply,
            } => {
                self.waiting.insert(http, reply);
                self.calls
                    .http_call(http, &body, prefer, owner_sid.as_deref(), now);
            }
            Input::HttpGone(http) => {
                if self.waiting.remove(&http).is_some() {
                    self.calls.http_gone(http);
                }
            }
            Input::Undelivered(id) => self.calls.undelivered(&id),
            Input::Fetch(id, reply) => {
                let outcome = self.calls.held(&id).cloned();
                let outcome = outcome
                    .unwrap_or_else(|| Outcome::error(id, RemoteError::result_unavailable()));
                // A host that is gone needs none.
                let _ = reply.send(RuntimeEvent::Outcome(outcome));
            }
            Input::Frame(generation, body) => self.link.frame(generation, &body, now),
            Input::PipeLost(generation, error) => self.link.pipe_lost(generation, error, now),
            Input::EndOfStream(generation) => self.link.end_of_stream(generation, now),
            Input::Exited(generation, exit) => {
                self.workers.remove(&generation);
                self.link.exited(generation, exit, now);
                self.report_stopped();
            }
            Input::Shutdown(done) => {
                self.stop = Some(done);
                self.link.shutdown(now);
            }
        }
    }

    fn join(&mut self, session: Arc<Session>, conn: ConnId, namespace: Namespace) {
        if session.outbox.is_closed() {
            return;
        }
        let sid = match self.connections.get(&conn) {
            Some(known) => known.sid.clone(),
            None => {
                let sid = match random::sid() {
                    Ok(sid) => sid,
                    Err(e) => {
                        log::runtime(format_args!("no connection: no random bits: {e}"));
                        return;
                    }
                };
                if namespace.as_str() == RPC {
                    self.calls.connected(conn, sid.as_str());
                }
                let all = self.by_namespace.entry(namespace.clone()).or_default();
                all.insert(conn.0);
                self.by_session.entry(session.id).or_default().push(conn);
                let connection = Connection {
                    session: Arc::clone(&session),
                    namespace: namespace.clone(),
                    sid: sid.clone(),
                };
                self.connections.insert(conn, connection);
                sid
            }
        };
        let data = Some(serde_json::json!({ "sid": sid }));
        let reply = SocketPacket::Connect { namespace, data };
        session.outbox.push(message_item(&reply));
    }

    fn leave(&mut self, conn: ConnId) {
        let Some(Connection {
            session, namespace, ..
        }) = self.connections.remove(&conn)
        else {
            return;
        };
        if namespace.as_str() == RPC {
            self.calls.disconnected(conn);
        }
        if let Some(all) = self.by_namespace.get_mut(&namespace) {
            all.remove(&conn.0);
            if all.is_empty() {
                self.by_namespace.remove(&namespace);
            }
        }
        if let Some(all) = self.by_session.get_mut(&session.id) {
            all.retain(|other| *other != conn);
        }
    }

    fn event(&mut self, conn: ConnId, event: Event, now: Instant) {
        let Some(connection) = self.connections.get(&conn) else {
            return;
        };
        let session = Arc::clone(&connection.session);
        let Event {
            namespace,
            name,
            ack,
            payload,
        } = event;
        let accepted = if namespace.as_str() == RPC {
            match payload {
                Payload::Binary(payload) => self.rpc(conn, &name, &payload, now),
                // JSON on `/rpc` is silence.
                Payload::Json(_) => false,
            }
        } else {
            self.side_channel(namespace.clone(), name, payload);
            true
        };
        if let (true, Some(id)) = (accepted, ack) {
            let args = Vec::new();
            let ack = SocketPacket::Ack {
                namespace,
                id,
                args,
            };
            session.outbox.push(message_item(&ack));
        }
    }

    fn rpc(&mut self, conn: ConnId, name: &str, payload: &Bytes, now: Instant) -> bool {
        let accepted = self.calls.event(conn, name, payload, now);
        if !accepted && let Err(BadHostEvent::NotAMessage(error)) = HostEvent::decode(name, payload)
        {
            log::runtime(format_args!("ignored an event {name:?} on /rpc: {error}"));
        }
        accepted
    }

    /// Relays an event to the worker.
    fn side_channel(&mut self, namespace: Namespace, event: String, payload: Payload) {
        let of_stream = matches!(event.as_str(), stream::ACK | stream::RESUME);
        // No worker can have handlers there, or for that (AGX-SIDE-026).
        if namespace.is_reserved() || namespace.is_stream() && !of_stream {
            return;
        }
        let data = match payload {
            Payload::Binary(data) => match codec::scan(&data, Keys::Any, &Limits::default()) {
                Ok(()) => data,
                Err(error) => {
                    log::runtime(format_args!(
                        "dropped an event {event:?} on {namespace}: not one msgpack value: {error}"
                    ));
                    return;
                }
            },
            Payload::Json(arguments) => json::to_msgpack(arguments.first()),
        };
        self.link.event(PipeEvent {
            namespace,
            event,
            data,
        });
    }

    /// Does what the machines say, until they have nothing more to say.
    fn drain(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.calls.poll_output() {
                match output {
                    RuntimeOutput::Emit(conn, event) => {
                        if let Some(connection) = self.connections.get(&conn) {
                            connection.session.outbox.push(Item::Rpc(event));
                        }
                    }
                    RuntimeOutput::Reply(http, reply, prefer) => self.reply(http, reply, prefer),
                    RuntimeOutput::Start(call) => self.link.call(call, now),
                    RuntimeOutput::Cancel(id) => self.link.cancel(&id),
                }
            } else if let Some(output) = self.link.poll_output() {
                self.link_output(output, now);
            } else {
                return;
            }
        }
    }

    fn reply(&mut self, http: HttpId, reply: CallReply, prefer: Prefer) {
        if let Some(waiting) = self.waiting.remove(&http) {
            // A caller that has gone says so itself, and what it did not get.
            let _ = waiting.send((reply, prefer));
        }
    }

    fn link_output(&mut self, output: LinkOutput, now: Instant) {
        match output {
            LinkOutput::Spawn(generation) => self.spawn(generation, now),
            LinkOutput::Write(generation, body) => {
                if let Some(worker) = self.workers.get(&generation) {
                    worker.write(body);
                }
            }
            LinkOutput::CloseInput(generation) => {
                if let Some(worker) = self.workers.get_mut(&generation) {
                    worker.close_input();
                }
            }
            LinkOutput::Terminate(generation) => self.groups.terminate(generation),
            LinkOutput::Kill(generation) => self.groups.kill(generation),
            LinkOutput::Outcome(outcome) => self.calls.outcome(outcome, now),
            LinkOutput::Emit(event) => self.emit(&event),
            LinkOutput::Notice(notice) => log::runtime(notice),
            LinkOutput::Stopped => {
                self.link_stopped = true;
                self.report_stopped();
            }
        }
    }

    fn spawn(&mut self, generation: Generation, now: Instant) {
        while self.pipes.try_join_next().is_some() {}
        // The generation makes it differ from those of this runtime's other workers.
        let id = self.first_worker_id.wrapping_add(generation.0 as u32);
        let worker = self.command.restore_script().and_then(|()| {
            Worker::spawn(
                generation,
                self.command.arguments(),
                (WORKER_ID, format!("{id:08x}")),
                &self.groups,
                &self.inbox,
                &self.pressure,
                &mut self.pipes,
            )
        });
        match worker {
            Ok(worker) => {
                self.workers.insert(generation, worker);
            }
            Err(error) => {
                let cause = format!("{}: {error}", self.command);
                self.link.spawn_failed(generation, &cause, now);
            }
        }
    }

    /// Sends a worker's event to every host on its namespace.
    fn emit(&self, event: &PipeEvent) {
        let Some(all) = self.by_namespace.get(&event.namespace) else {
            return;
        };
        let header: Arc<str> = event_header(&event.namespace, &event.event).into();
        if header.len() > MAX_HEADER_BYTES {
            log::runtime(format_args!(
                "dropped an event of the worker on {}: its name has {} bytes, and no host takes that",
                event.namespace,
                event.event.len()
            ));
            return;
        }
        for conn in all {
            if let Some(connection) = self.connections.get(&ConnId(*conn)) {
                let item = Item::Event(Arc::clone(&header), event.data.clone());
                connection.session.outbox.push(item);
            }
        }
    }

    /// Says that the link was shut down, once no process is left either.
    fn report_stopped(&mut self) {
        if self.link_stopped
            && self.workers.is_empty()
            && let Some(done) = self.stop.take()
        {
            // Nobody waits any more when the runtime is ended by force.
            let _ = done.send(());
        }
    }
}
