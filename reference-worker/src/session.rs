//! Engine.IO sessions: one for each host that is connected, over polling or a WebSocket.
//!
//! A session takes Engine.IO packets from its transport, puts Socket.IO packets together and
//! gives events to the driver in order; the driver queues what goes back in the [`Outbox`].
//!
//! The server is our own and not `socketioxide`: there a burst to a slow reader fails to be sent
//! (`InternalChannelFull`), a full queue at ping time counts as a dead host at once
//! (AGX-CON-061, AGX-CON-073), only whole messages count as a sign of life (AGX-CON-075), a
//! stray attachment cannot be told from an announced one (AGX-CON-055) and the close code cannot
//! be chosen (AGX-CON-081). On the packet codec of `agentix-protocol` the rest is short.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agentix_protocol::ident::Namespace;
use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::names;
use agentix_protocol::packet::{
    Assembler, EnginePacket, Event, Handshake, Incoming, PacketError, SocketPacket,
};
use agentix_protocol::runtime::ConnId;
use bytes::Bytes;
use tokio::sync::watch;

use crate::inbox::{Inbox, Input};
use crate::log;
use crate::outbox::{Closing, Item, Outbox, Pressure, Urgent};
use crate::random;
use crate::websocket::close_code;

/// Namespaces that one session may join: a host needs a handful.
const MAX_NAMESPACES: usize = 256;
/// How long what waits for one host may stop the worker's output for everybody.
const STALL: Duration = Duration::from_secs(60);

/// Why a session ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// A polling body that is no text.
    #[error("a polling body that is not UTF-8")]
    NotUtf8,
    /// The host left.
    #[error("the host left")]
    Left,
}

/// Names a session for the life of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(u64);

/// How often a runtime pings, and how long it waits for a sign of life after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PingTimes {
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

#[derive(Debug, Default)]
struct Receiver {
    assembler: Assembler,
    namespaces: HashMap<Namespace, ConnId>,
}

/// One connected host.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) sid: String,
    pub(crate) outbox: Outbox,
    table: Arc<Shared>,
    /// Locked while a packet is handled, so that packets are handled in order.
    incoming: tokio::sync::Mutex<Receiver>,
    /// Has the session moved to a WebSocket?
    upgraded: watch::Sender<bool>,
    /// Milliseconds from the table's start to the last byte received, and to the last ping.
    received: AtomicU64,
    pinged: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    started: Instant,
    times: PingTimes,
    inbox: Inbox,
    pressure: Pressure,
    next: AtomicU64,
    sessions: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    by_sid: HashMap<String, Arc<Session>>,
    closed: bool,
}

/// All sessions of a runtime.
#[derive(Clone, Debug)]
pub(crate) struct Sessions(Arc<Shared>);

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    pub(crate) fn new(times: PingTimes, inbox: Inbox, pressure: Pressure) -> Self {
        Self(Arc::new(Shared {
            started: Instant::now(),
            times,
            inbox,
            pressure,
            next: AtomicU64::new(1),
            sessions: Mutex::default(),
        }))
    }

    /// Opens a session, and returns it with the text of its open packet. `None` when the runtime
    /// is shutting down.
    pub(crate) fn open(&self, upgraded: bool) -> Option<(Arc<Session>, String)> {
        let sid = random::sid()
            .inspect_err(|e| log::runtime(format_args!("no session: no random bits: {e}")))
            .ok()?;
        let now = self.0.now();
        let session = Arc::new(Session {
            id: SessionId(self.0.next.fetch_add(1, Ordering::Relaxed)),
            sid: sid.clone(),
            outbox: Outbox::new(self.0.pressure.clone()),
            table: Arc::clone(&self.0),
            incoming: tokio::sync::Mutex::default(),
            upgraded: watch::Sender::new(upgraded),
            received: AtomicU64::new(now),
            pinged: AtomicU64::new(now),
        });
        {
            let mut table = self.0.lock();
            if table.closed {
                return None;
            }
            table.by_sid.insert(sid.clone(), Arc::clone(&session));
        }
        let upgrades = if upgraded { &[][..] } else { &["websocket"] };
        let open = EnginePacket::Open(Handshake {
            sid,
            upgrades: upgrades.iter().map(|&name| name.to_owned()).collect(),
            ping_interval: self.0.times.interval,
            ping_timeout: self.0.times.timeout,
            max_payload: MAX_MESSAGE_BYTES as u64,
        });
        Some((session, open.encode()))
    }

    pub(crate) fn find(&self, sid: &str) -> Option<Arc<Session>> {
        self.0.lock().by_sid.get(sid).cloned()
    }

    /// Pings whoever is due, and ends sessions that are gone.
    pub(crate) fn tick(&self) {
        let now = self.0.now();
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let interval = millis(self.0.times.interval);
        let silence = interval.saturating_add(millis(self.0.times.timeout));
        let all: Vec<_> = self.0.lock().by_sid.values().cloned().collect();
        for session in all {
            let quiet = now.saturating_sub(session.received.load(Ordering::Relaxed));
            if quiet > silence {
                session.close(Closing::Now(close_code::NORMAL));
            } else if session.outbox.over(Instant::now()) > STALL {
                log::runtime(format_args!(
                    "closed a session: its host reads so slowly that it has held up the worker for {} s",
                    STALL.as_secs()
                ));
                session.close(Closing::Now(close_code::NORMAL));
            } else if now.saturating_sub(session.pinged.load(Ordering::Relaxed)) >= interval {
                session.pinged.store(now, Ordering::Relaxed);
                session.outbox.push_urgent(Urgent::Packet("2"));
            }
        }
    }

    /// Ends all sessions, after what waits for them is sent, and takes no new ones.
    pub(crate) fn close(&self) {
        let all: Vec<_> = {
            let mut table = self.0.lock();
            table.closed = true;
            table.by_sid.values().cloned().collect()
        };
        for session in all {
            session.close(Closing::Drained(close_code::SERVICE_RESTART));
        }
    }
}

impl Session {
    /// Bytes came from the host.
    pub(crate) fn received(&self) {
        self.received.store(self.table.now(), Ordering::Relaxed);
    }

    pub(crate) fn is_upgraded(&self) -> bool {
        *self.upgraded.borrow()
    }

    /// Waits until the session is on a WebSocket.
    pub(crate) async fn upgraded(&self) {
        // The sender lives as long as `self`.
        let _ = self
            .upgraded
            .subscribe()
            .wait_for(|upgraded| *upgraded)
            .await;
    }

    /// The session moves to a WebSocket: a poll that waits is released.
    pub(crate) fn upgrade(&self) {
        self.upgraded.send_replace(true);
    }

    /// Ends the session. Calls, outcomes and records stay.
    pub(crate) fn close(&self, closing: Closing) {
        self.outbox.close(closing);
        if self.table.lock().by_sid.remove(&self.sid).is_some() {
            self.table.inbox.control(Input::SessionClosed(self.id));
        }
    }

    /// Ends the session: its host is gone.
    pub(crate) fn leave(&self) {
        self.close(Closing::Now(close_code::NORMAL));
    }

    /// Ends the session because of what its host sent.
    pub(crate) fn fail(&self, fault: &Fault) {
        match fault {
            Fault::Left => self.leave(),
            Fault::Packet(_) | Fault::NotUtf8 => {
                log::runtime(format_args!("closed a session: {fault}"));
                self.close(Closing::Now(close_code::PROTOCOL_ERROR));
            }
        }
    }

    /// Takes the text of an Engine.IO packet.
    pub(crate) async fn text(self: &Arc<Self>, text: &str) -> Result<(), Fault> {
        match EnginePacket::parse(text)? {
            EnginePacket::Message(text) => {
                let mut incoming = self.incoming.lock().await;
                match incoming.assembler.text(&text)? {
                    Some(Incoming::Packet(packet)) => self.packet(&mut incoming, packet).await,
                    Some(Incoming::Event(event)) => self.event(&incoming, event).await,
                    None => {}
                }
            }
            EnginePacket::Ping(data) => self.outbox.push_urgent(Urgent::Pong(format!("3{data}"))),
            EnginePacket::Close => return Err(Fault::Left),
            EnginePacket::Open(_)
            | EnginePacket::Pong(_)
            | EnginePacket::Upgrade
            | EnginePacket::Noop => {}
        }
        Ok(())
    }

    /// Takes an attachment.
    pub(crate) async fn binary(self: &Arc<Self>, attachment: Bytes) -> Result<(), Fault> {
        let mut incoming = self.incoming.lock().await;
        if let Incoming::Event(event) = incoming.assembler.binary(attachment)? {
            self.event(&incoming, event).await;
        }
        Ok(())
    }

    async fn packet(self: &Arc<Self>, incoming: &mut Receiver, packet: SocketPacket) {
        let inbox = &self.table.inbox;
        match packet {
            SocketPacket::Connect { namespace, .. } => {
                let full = incoming.namespaces.len() >= MAX_NAMESPACES;
                let conn = match incoming.namespaces.get(&namespace) {
                    Some(conn) => *conn,
                    None if full => {
                        let message =
                            format!("a session joins at most {MAX_NAMESPACES} namespaces");
                        let data = Some(serde_json::json!({ "message": message }));
                        let refusal = SocketPacket::ConnectError { namespace, data };
                        self.outbox.push(message_item(&refusal));
                        return;
                    }
                    None => {
                        let conn = ConnId(self.table.next.fetch_add(1, Ordering::Relaxed));
                        incoming.namespaces.insert(namespace.clone(), conn);
                        conn
                    }
                };
                inbox
                    .data(Input::Join {
                        session: Arc::clone(self),
                        conn,
                        namespace,
                    })
                    .await;
            }
            SocketPacket::Disconnect { namespace } => {
                if let Some(conn) = incoming.namespaces.remove(&namespace) {
                    inbox.data(Input::Leave(conn)).await;
                }
            }
            // The runtime asks for no acks and joins nothing.
            SocketPacket::Ack { .. } | SocketPacket::ConnectError { .. } => {}
            // The assembler makes events of these.
            SocketPacket::Event { .. } | SocketPacket::BinaryEvent { .. } => {}
        }
    }

    /// Gives an event to the driver; one on a namespace that was not joined is ignored.
    async fn event(self: &Arc<Self>, incoming: &Receiver, event: Event) {
        if let Some(&conn) = incoming.namespaces.get(&event.namespace) {
            self.outbox.room().await;
            tokio::select! {
                () = self.table.inbox.backlog.room() => {}
                () = self.outbox.closed() => {}
            }
            self.table.inbox.data(Input::Event { conn, event }).await;
        }
    }
}

/// A Socket.IO packet without attachment, as an Engine.IO packet.
pub(crate) fn message_item(packet: &SocketPacket) -> Item {
    Item::Text(EnginePacket::Message(packet.encode()).encode())
}

/// The header of an event with one attachment, as an Engine.IO packet.
pub(crate) fn event_header(namespace: &Namespace, name: &str) -> String {
    let packet = SocketPacket::BinaryEvent {
        namespace: namespace.clone(),
        ack: None,
        name: name.to_owned(),
    };
    EnginePacket::Message(packet.encode()).encode()
}

/// The header of an event on `/rpc`.
pub(crate) fn rpc_header(name: &'static str) -> String {
    debug_assert!(name != names::event::CALL, "a runtime never calls");
    event_header(&Namespace::rpc(), name)
}
