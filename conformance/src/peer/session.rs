//! A Socket.IO session over one WebSocket, as a host has it.

use std::collections::VecDeque;
use std::time::Instant;

use agentix_protocol::packet::SocketPacket;
use bytes::Bytes;
use serde_json::Value as Json;

use super::websocket::{Received, Socket};
use super::{Endpoint, Wire, missed, silence};
use crate::messages;
use crate::outcome::{Outcome, Terminal};
use crate::verdict::{Verdict, check, fail};

/// What came on a session, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Event(Event),
    /// The text of a Socket.IO packet that is no event, after the `4`.
    Packet(SocketPacket, String),
    /// Another Engine.IO packet.
    Engine(String),
    Pong(Bytes),
    Closed(Option<u16>),
}

/// A binary event: the text of its header, and its attachment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) ack: Option<u64>,
    /// The whole text message.
    pub(crate) header: String,
    pub(crate) payload: Bytes,
}

/// A host's end of a session. It answers pings and never acks an outcome by itself.
#[derive(Debug)]
pub(crate) struct Session {
    socket: Socket,
    wire: Wire,
    /// Header of an event whose attachment is due.
    due: Option<(String, String, Option<u64>, String)>,
    queue: VecDeque<Item>,
    history: Vec<Item>,
    next_ack: u64,
    /// The open packet's JSON.
    pub(crate) open: Json,
    /// The sid of `/rpc`.
    pub(crate) sid: String,
}

/// Query of a WebSocket without polling before it.
pub(crate) const DIRECT: &str = "/socket.io/?EIO=4&transport=websocket";

impl Session {
    /// Connects by WebSocket alone and reads the open packet; joins nothing.
    pub(crate) async fn open(endpoint: &Endpoint, name: &str, wire: &Wire) -> Verdict<Self> {
        Self::open_fragmented(endpoint, name, wire, None).await
    }

    /// The same, with what is sent split into WebSocket frames of `fragment` bytes.
    pub(crate) async fn open_fragmented(
        endpoint: &Endpoint,
        name: &str,
        wire: &Wire,
        fragment: Option<usize>,
    ) -> Verdict<Self> {
        let mut socket = Socket::connect(endpoint, DIRECT, name, wire, fragment).await?;
        let open = match socket.next(wire.clock.answer()).await {
            Some(Received::Text(text)) => match text.strip_prefix('0').map(serde_json::from_str) {
                Some(Ok(json)) => json,
                _ => return fail("AGX-CON-010", "an open packet", text),
            },
            Some(other) => return fail("AGX-CON-010", "an open packet", format_args!("{other:?}")),
            None => return Err(silence("an open packet", wire.clock.answer())),
        };
        Ok(Self::over(socket, open, wire))
    }

    /// A session over a socket that is upgraded already.
    pub(crate) fn over(socket: Socket, open: Json, wire: &Wire) -> Self {
        Self {
            socket,
            wire: wire.clone(),
            due: None,
            queue: VecDeque::new(),
            history: Vec::new(),
            next_ack: 1,
            open,
            sid: String::new(),
        }
    }

    /// Joins a namespace and gives the sid of the reply.
    pub(crate) async fn join(&mut self, namespace: &str) -> Verdict<String> {
        let text = if namespace == "/" {
            "40".to_owned()
        } else {
            format!("40{namespace},{{}}")
        };
        self.send_text(&text).await?;
        let joined = |item: &Item| match item {
            Item::Packet(
                SocketPacket::Connect {
                    namespace: name,
                    data,
                },
                _,
            ) if name.as_str() == namespace => Some(data.clone().unwrap_or(Json::Null)),
            _ => None,
        };
        let data = self
            .wait(&format!("a CONNECT reply for {namespace}"), joined)
            .await?;
        let Some(sid) = data["sid"].as_str().filter(|sid| !sid.is_empty()) else {
            return fail("AGX-CON-042", "a `sid` in the CONNECT reply", data);
        };
        if namespace == "/rpc" {
            self.sid = sid.to_owned();
        }
        Ok(sid.to_owned())
    }

    pub(crate) async fn send_text(&mut self, text: &str) -> Verdict {
        self.socket.send_text(text).await
    }

    pub(crate) async fn send_binary(&mut self, bytes: &[u8]) -> Verdict {
        self.socket.send_binary(bytes).await
    }

    pub(crate) async fn send_ping(&mut self, payload: &'static [u8]) -> Verdict {
        self.socket.send_ping(payload).await
    }

    /// Sends a binary event.
    pub(crate) async fn emit(&mut self, namespace: &str, event: &str, payload: &[u8]) -> Verdict {
        let header = format!(r#"451-{namespace},["{event}",{{"_placeholder":true,"num":0}}]"#);
        self.send_text(&header).await?;
        self.send_binary(payload).await
    }

    /// Sends a binary event that asks for an ack, and gives the id of that ack.
    pub(crate) async fn emit_for_ack(
        &mut self,
        namespace: &str,
        event: &str,
        payload: &[u8],
    ) -> Verdict<u64> {
        let ack = self.next_ack;
        self.next_ack += 1;
        let header = format!(r#"451-{namespace},{ack}["{event}",{{"_placeholder":true,"num":0}}]"#);
        self.send_text(&header).await?;
        self.send_binary(payload).await?;
        Ok(ack)
    }

    /// Waits for the ack with that id and gives its text.
    pub(crate) async fn acked(&mut self, namespace: &str, ack: u64) -> Verdict<String> {
        let found = |item: &Item| match item {
            Item::Packet(
                SocketPacket::Ack {
                    namespace: name,
                    id,
                    ..
                },
                text,
            ) if name.as_str() == namespace && *id == ack => Some(text.clone()),
            _ => None,
        };
        self.wait(&format!("Socket.IO ack {ack} on {namespace}"), found)
            .await
    }

    /// Sends `call`.
    pub(crate) async fn call(&mut self, id: &str, target: &str, arguments: &[u8]) -> Verdict {
        self.emit("/rpc", "call", &messages::call(id, target, arguments))
            .await
    }

    /// Sends `cancel`.
    pub(crate) async fn cancel(&mut self, id: &str) -> Verdict {
        self.emit("/rpc", "cancel", &messages::only_id(id)).await
    }

    /// Sends `ack`.
    pub(crate) async fn ack(&mut self, id: &str) -> Verdict {
        self.emit("/rpc", "ack", &messages::only_id(id)).await
    }

    /// Sends `resume`.
    pub(crate) async fn resume(&mut self, ids: &[&str]) -> Verdict {
        self.emit("/rpc", "resume", &messages::resume(ids)).await
    }

    /// Waits for the outcome of a call.
    pub(crate) async fn outcome(&mut self, id: &str) -> Verdict<Outcome> {
        Ok(self.terminal(id).await?.1.outcome)
    }

    /// Waits for the outcome of a call, and gives the event that carried it too.
    pub(crate) async fn terminal(&mut self, id: &str) -> Verdict<(Event, Terminal)> {
        let what = format!("the outcome of call {id:?}");
        let of_call = |item: &Item| outcome_event(item).filter(|event| names(event, id));
        let event = self.wait(&what, of_call).await?;
        let terminal = Terminal::read(event.name == "call:result", &event.payload)?;
        Ok((event, terminal))
    }

    /// Waits for the next outcome, of whichever call.
    pub(crate) async fn next_outcome(&mut self) -> Verdict<Terminal> {
        let event = self.wait("an outcome", outcome_event).await?;
        Terminal::read(event.name == "call:result", &event.payload)
    }

    /// Waits for the next event on a namespace.
    pub(crate) async fn event(&mut self, namespace: &str) -> Verdict<Event> {
        let on_namespace = |item: &Item| match item {
            Item::Event(event) if event.namespace == namespace => Some(event.clone()),
            _ => None,
        };
        self.wait(&format!("an event on {namespace}"), on_namespace)
            .await
    }

    /// Waits until the testee closes the connection, and gives the code.
    pub(crate) async fn closed(&mut self) -> Verdict<Option<u16>> {
        let closed = |item: &Item| match item {
            Item::Closed(code) => Some(*code),
            Item::Engine(text) if text == "1" => Some(None),
            _ => None,
        };
        self.wait("the end of the connection", closed).await
    }

    /// Proves that everything sent before was handled: a `cancel` of an unknown id is acked and changes nothing. Needs no
    /// worker.
    pub(crate) async fn fence(&mut self) -> Verdict {
        let id = format!("fence-{:016x}", fastrand::u64(..));
        let ack = self
            .emit_for_ack("/rpc", "cancel", &messages::only_id(&id))
            .await?;
        self.acked("/rpc", ack).await.map(|_| ())
    }

    /// Ends the case if any outcome of that call came so far. Call it after a fence.
    pub(crate) fn no_outcome(&self, requirement: &'static str, id: &str) -> Verdict {
        let count = self.outcomes_so_far(id);
        check(
            count == 0,
            requirement,
            format_args!("no outcome of call {id:?}"),
            format_args!("{count}"),
        )
    }

    /// How many outcomes of a call came so far.
    pub(crate) fn outcomes_so_far(&self, id: &str) -> usize {
        let outcomes = self.history.iter().filter_map(outcome_event);
        outcomes.filter(|event| names(event, id)).count()
    }

    /// Every event on a namespace that came so far.
    pub(crate) fn events_so_far(&self, namespace: &str) -> Vec<Event> {
        let events = self.history.iter().filter_map(|item| match item {
            Item::Event(event) if event.namespace == namespace => Some(event.clone()),
            _ => None,
        });
        events.collect()
    }

    /// Every Socket.IO ack that came so far.
    pub(crate) fn acks_so_far(&self) -> Vec<u64> {
        let acks = self.history.iter().filter_map(|item| match item {
            Item::Packet(SocketPacket::Ack { id, .. }, _) => Some(*id),
            _ => None,
        });
        acks.collect()
    }

    /// Waits for the first item that `choose` takes; what it does not take stays for later.
    pub(crate) async fn wait<T>(
        &mut self,
        what: &str,
        choose: impl Fn(&Item) -> Option<T>,
    ) -> Verdict<T> {
        let found = self
            .queue
            .iter()
            .enumerate()
            .find_map(|(at, item)| Some((at, choose(item)?)));
        if let Some((at, chosen)) = found {
            self.queue.remove(at);
            return Ok(chosen);
        }
        let wait = self.wire.clock.answer();
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Some(received) = self.socket.next(left).await else {
                return Err(silence(what, wait));
            };
            let Some(item) = self.assemble(received).await? else {
                continue;
            };
            self.history.push(item.clone());
            if let Some(chosen) = choose(&item) {
                return Ok(chosen);
            }
            if let Item::Closed(code) = item {
                return Err(missed(
                    what,
                    format_args!("the connection was closed, code {code:?}"),
                ));
            }
            self.queue.push_back(item);
        }
    }

    /// Puts header and attachment together, and answers pings.
    async fn assemble(&mut self, received: Received) -> Verdict<Option<Item>> {
        if let (Some((.., header)), Received::Text(text)) = (&self.due, &received) {
            return fail(
                "AGX-CON-052",
                format_args!("the attachment of {header}"),
                format_args!("the text {text:?}"),
            );
        }
        Ok(Some(match received {
            Received::Closed(code) => Item::Closed(code),
            Received::Pong(payload) => Item::Pong(payload),
            Received::Binary(payload) => {
                let Some((namespace, name, ack, header)) = self.due.take() else {
                    return fail(
                        "AGX-CON-051",
                        "a header before an attachment",
                        "an attachment alone",
                    );
                };
                Item::Event(Event {
                    namespace,
                    name,
                    ack,
                    header,
                    payload,
                })
            }
            Received::Text(text) => {
                let Some(message) = text.strip_prefix('4') else {
                    if let Some(data) = text.strip_prefix('2') {
                        self.socket.send_text(&format!("3{data}")).await?;
                        return Ok(None);
                    }
                    return Ok(Some(Item::Engine(text)));
                };
                match SocketPacket::parse(message) {
                    Ok(SocketPacket::BinaryEvent {
                        namespace,
                        ack,
                        name,
                    }) => {
                        self.due = Some((namespace.as_str().to_owned(), name, ack, text));
                        return Ok(None);
                    }
                    Ok(packet) => Item::Packet(packet, text),
                    Err(error) => {
                        return fail(
                            "AGX-CON-001",
                            "a Socket.IO packet",
                            format_args!("{error}: {text:?}"),
                        );
                    }
                }
            }
        }))
    }

    /// Leaves with code 1000.
    pub(crate) async fn leave(self) -> Verdict {
        self.socket.close().await
    }
}

fn outcome_event(item: &Item) -> Option<Event> {
    match item {
        Item::Event(event)
            if event.namespace == "/rpc"
                && matches!(&*event.name, "call:result" | "call:error") =>
        {
            Some(event.clone())
        }
        _ => None,
    }
}

fn names(event: &Event, id: &str) -> bool {
    let payload = agentix_protocol::codec::Value::decode(&event.payload);
    payload.is_ok_and(|payload| payload.field("call_id").and_then(|id| id.as_str()) == Some(id))
}
