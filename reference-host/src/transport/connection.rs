//! One connection: reading, writing, keepalive, leaving.

mod handshake;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agentix_protocol::event::HostEvent;
use agentix_protocol::ident::Namespace;
use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::packet::{
    Assembler, EnginePacket, Event, Incoming as Packet, MAX_HEADER_BYTES, PacketError, SocketPacket,
};
use bytes::Bytes;
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, timeout};
use tokio_websockets::{CloseCode, Message, WebSocketStream};

pub(crate) use handshake::{dial, timed_out};

use super::Metered;
use crate::error::LinkError;

/// WebSocket pings that may go unanswered because the peer does not read.
const MAX_UNREAD_PINGS: u32 = 1024;
/// Bytes that are handed to the socket at a time: few system calls for small events, and a pong
/// never waits for more than one large one.
const BATCH: usize = 64 * 1024;

/// What arrived.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Incoming {
    /// An event.
    Event(Event),
    /// The peer's ack of the event that [`Connection::emit`] numbered so.
    Ack {
        /// On which namespace.
        namespace: Namespace,
        /// The number.
        id: u64,
    },
    /// The peer dropped this host from a namespace.
    Left(Namespace),
    /// A ping, which is answered already.
    Ping,
}

/// Why an event was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The namespace was not joined, or the peer has dropped this host from it.
    #[error("the namespace is not joined")]
    NotJoined,
    /// The payload is above the limit (AGX-LIM-001).
    #[error("a payload of {len} bytes, more than the limit of {MAX_MESSAGE_BYTES}")]
    TooLarge {
        /// Its length in bytes.
        len: usize,
    },
}

enum Body {
    Bytes(Bytes),
    /// Encoded when its turn comes, so that waiting events hold their arguments once.
    Rpc(HostEvent),
}

struct Outgoing {
    namespace: Namespace,
    name: String,
    ack: Option<u64>,
    body: Body,
}

/// A connection to a runtime with its namespaces joined.
///
/// Header and attachment of an event go out next to each other, pongs go ahead of events that
/// wait, and reading never waits for writing.
///
/// # Example
///
/// ```no_run
/// use std::time::Duration;
/// use agentix_protocol::ident::Namespace;
/// use agentix_reference_host::transport::{Connection, Incoming};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let url = "http://127.0.0.1:8000".parse()?;
/// let namespaces = [Namespace::rpc(), Namespace::log()];
/// let mut connection = Connection::open(&url, &namespaces, Duration::from_secs(10)).await?;
/// while let Ok(incoming) = connection.next().await {
///     if let Incoming::Event(event) = incoming {
///         println!("{}: {}", event.namespace, event.name);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Connection<S = TcpStream> {
    socket: WebSocketStream<Metered<S>>,
    assembler: Assembler,
    joined: Vec<(Namespace, String)>,
    /// Arrived before the last namespace was joined.
    early: VecDeque<Incoming>,
    queue: VecDeque<Outgoing>,
    /// Due ahead of the queue. The last one stands for all.
    pong: Option<String>,
    next_ack: u64,
    /// The socket holds bytes to write.
    writing: bool,
    unread_pings: u32,
    /// Ping interval and timeout together.
    patience: Duration,
    watchdog: Pin<Box<Sleep>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// The sid that the runtime gave this host on a namespace; `None` when it is not joined.
    #[must_use]
    pub fn sid(&self, namespace: &Namespace) -> Option<&str> {
        self.joined
            .iter()
            .find(|(joined, _)| joined == namespace)
            .map(|(_, sid)| sid.as_str())
    }

    /// Queues an event with its payload; it goes out while [`Connection::next`] is awaited. With
    /// `ask_ack`, returns the number that the peer's ack will carry.
    ///
    /// # Errors
    ///
    /// [`EmitError`] when the namespace is not joined, or the payload is above 256 MiB.
    pub fn emit(
        &mut self,
        namespace: &Namespace,
        name: &str,
        payload: Bytes,
        ask_ack: bool,
    ) -> Result<Option<u64>, EmitError> {
        if self.sid(namespace).is_none() {
            return Err(EmitError::NotJoined);
        }
        if payload.len() > MAX_MESSAGE_BYTES {
            return Err(EmitError::TooLarge { len: payload.len() });
        }
        let body = Body::Bytes(payload);
        Ok(self.enqueue(namespace.clone(), name.to_owned(), body, ask_ack))
    }

    /// Queues an event of `/rpc`, whose size the call table has checked; see [`Connection::emit`].
    pub(crate) fn emit_rpc(&mut self, event: HostEvent, ask_ack: bool) -> Option<u64> {
        let name = event.name().to_owned();
        self.enqueue(Namespace::rpc(), name, Body::Rpc(event), ask_ack)
    }

    fn enqueue(
        &mut self,
        namespace: Namespace,
        name: String,
        body: Body,
        ask_ack: bool,
    ) -> Option<u64> {
        let ack = ask_ack.then_some(self.next_ack);
        self.next_ack += u64::from(ask_ack);
        self.queue.push_back(Outgoing {
            namespace,
            name,
            ack,
            body,
        });
        ack
    }

    /// Waits for the next thing that arrives, and writes what is queued meanwhile. Dropping the
    /// future loses nothing.
    ///
    /// # Errors
    ///
    /// [`LinkError`]: the connection is of no more use.
    pub async fn next(&mut self) -> Result<Incoming, LinkError> {
        loop {
            let incoming = match self.early.pop_front() {
                Some(incoming) => Some(incoming),
                None => poll_fn(|cx| self.poll_packet(cx)).await?.incoming()?,
            };
            if let Some(Incoming::Left(namespace)) = &incoming {
                self.joined.retain(|(joined, _)| joined != namespace);
            }
            if let Some(incoming) = incoming {
                return Ok(incoming);
            }
        }
    }

    /// Writes what is queued, then leaves with close code 1000 (AGX-CON-080); gives up after
    /// `limit`.
    pub async fn close(mut self, limit: Duration) {
        let leave = async {
            poll_fn(|cx| self.poll_drain(cx)).await?;
            self.start_send(Message::close(Some(CloseCode::NORMAL_CLOSURE), ""))?;
            poll_fn(|cx| Pin::new(&mut self.socket).poll_close(cx)).await?;
            Ok::<_, LinkError>(())
        };
        match timeout(limit, leave).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "leaving a connection that is lost"),
            Err(_) => tracing::debug!("the peer did not answer the close in time"),
        }
    }

    fn start_send(&mut self, message: Message) -> Result<(), LinkError> {
        Pin::new(&mut self.socket).start_send(message)?;
        self.writing = true;
        Ok(())
    }

    fn send_text(&mut self, text: String) -> Result<(), LinkError> {
        self.start_send(Message::text(text))
    }

    /// Hands the socket what is due: the pong first, then events up to a batch.
    fn fill(&mut self) -> Result<(), LinkError> {
        if let Some(data) = self.pong.take() {
            self.send_text(EnginePacket::Pong(data).encode())?;
        }
        let mut filled = 0;
        while filled < BATCH
            && let Some(event) = self.queue.pop_front()
        {
            let header = SocketPacket::BinaryEvent {
                namespace: event.namespace,
                ack: event.ack,
                name: event.name,
            };
            let attachment = match event.body {
                Body::Bytes(bytes) => Message::binary(bytes),
                Body::Rpc(event) => Message::binary(event.payload()),
            };
            filled += attachment.as_payload().len() + 1;
            self.send_text(EnginePacket::Message(header.encode()).encode())?;
            self.start_send(attachment)?;
        }
        Ok(())
    }

    /// One step of writing.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<Progress, LinkError> {
        if self.writing {
            return match Pin::new(&mut self.socket).poll_flush(cx)? {
                Poll::Ready(()) => {
                    self.writing = false;
                    self.unread_pings = 0;
                    Ok(Progress::Made)
                }
                Poll::Pending => Ok(Progress::Waits),
            };
        }
        self.fill()?;
        Ok(if self.writing {
            Progress::Made
        } else {
            Progress::Waits
        })
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        loop {
            match self.poll_write(cx)? {
                Progress::Made => {}
                Progress::Waits if self.writing => return Poll::Pending,
                Progress::Waits => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Writes and reads in turn until something arrives; neither starves the other.
    fn poll_packet(&mut self, cx: &mut Context<'_>) -> Poll<Result<Step, LinkError>> {
        loop {
            let wrote = self.poll_write(cx)?;
            match Pin::new(&mut self.socket).poll_next(cx) {
                Poll::Ready(Some(message)) => {
                    if let Some(step) = self.take(message?)? {
                        return Poll::Ready(Ok(step));
                    }
                }
                Poll::Ready(None) => return Poll::Ready(Err(LinkError::Ended)),
                Poll::Pending => match wrote {
                    Progress::Made => {}
                    Progress::Waits => return self.poll_silence(cx),
                },
            }
        }
    }

    /// Ready once nothing has arrived for too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Result<Step, LinkError>> {
        while self.watchdog.as_mut().poll(cx).is_ready() {
            let deadline = self.socket.get_ref().last_read() + self.patience;
            if deadline <= Instant::now() {
                return Poll::Ready(Err(LinkError::Silent {
                    after: self.patience,
                }));
            }
            self.watchdog.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    /// Takes one WebSocket message.
    fn take(&mut self, message: Message) -> Result<Option<Step>, LinkError> {
        if message.is_binary() {
            let attachment = Bytes::from(message.into_payload());
            return Ok(Some(Step::Packet(self.assembler.binary(attachment)?)));
        }
        if let Some((code, reason)) = message.as_close() {
            return Err(LinkError::Closed {
                code: code.into(),
                reason: reason.to_owned(),
            });
        }
        if message.is_ping() {
            // The answer is in the socket's queue; a peer that pings without reading would make
            // that queue grow.
            self.writing = true;
            self.unread_pings += 1;
            if self.unread_pings > MAX_UNREAD_PINGS {
                return Err(LinkError::Flood);
            }
            return Ok(None);
        }
        let Some(text) = message.as_text() else {
            return Ok(None);
        };
        if text.len() > MAX_HEADER_BYTES {
            return Err(PacketError::HeaderTooLong(text.len()).into());
        }
        Ok(match EnginePacket::parse(text)? {
            EnginePacket::Message(packet) => self.assembler.text(&packet)?.map(Step::Packet),
            EnginePacket::Ping(data) => {
                self.pong = Some(data);
                Some(Step::Ping)
            }
            EnginePacket::Close => return Err(LinkError::Left),
            EnginePacket::Open(_) => return Err(LinkError::OutOfTurn("an open packet")),
            EnginePacket::Pong(_) | EnginePacket::Upgrade | EnginePacket::Noop => None,
        })
    }
}

/// What one turn of writing brought.
#[derive(Clone, Copy)]
enum Progress {
    /// Something to go on with.
    Made,
    /// Nothing to do, or the peer does not read.
    Waits,
}

/// What a WebSocket message completed.
enum Step {
    Packet(Packet),
    Ping,
}

impl Step {
    /// What a joined connection makes of it.
    fn incoming(self) -> Result<Option<Incoming>, LinkError> {
        let packet = match self {
            Self::Ping => return Ok(Some(Incoming::Ping)),
            Self::Packet(Packet::Event(event)) => return Ok(Some(Incoming::Event(event))),
            Self::Packet(Packet::Packet(packet)) => packet,
        };
        match packet {
            SocketPacket::Ack { namespace, id, .. } => Ok(Some(Incoming::Ack { namespace, id })),
            SocketPacket::Disconnect { namespace } => Ok(Some(Incoming::Left(namespace))),
            SocketPacket::Connect { .. } => Err(LinkError::OutOfTurn("a CONNECT reply")),
            SocketPacket::ConnectError { .. } => Err(LinkError::OutOfTurn("a CONNECT_ERROR")),
            // The assembler makes events of these.
            SocketPacket::Event { .. } | SocketPacket::BinaryEvent { .. } => Ok(None),
        }
    }
}
