//! From a URL to a connection with its namespaces joined.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use agentix_protocol::ident::Namespace;
use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::packet::{
    Assembler, EnginePacket, Handshake, Incoming as Packet, MAX_HEADER_BYTES, SocketPacket,
};
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_websockets::{ClientBuilder, Config, Limits, WebSocketStream};

use super::{Connection, Step};
use crate::error::{ConnectError, LinkError, Stranger};
use crate::transport::Metered;
use crate::url::RuntimeUrl;

/// Room beside the largest attachment, for peers that count its wrapping as part of it.
const SLACK: usize = 64 * 1024;
/// Most bytes of a response header, everything up to the first packets included.
const MAX_RESPONSE_HEADER: u64 = 64 * 1024;
/// Events that may arrive before all namespaces are joined.
const MAX_EARLY: usize = 1024;

impl Connection<TcpStream> {
    /// Connects and joins `namespaces`, all within `limit`.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] says where, and which step failed.
    pub async fn open(
        url: &RuntimeUrl,
        namespaces: &[Namespace],
        limit: Duration,
    ) -> Result<Self, ConnectError> {
        let steps = async {
            let stream = dial(url).await?;
            Self::over(stream, url, namespaces).await
        };
        timeout(limit, steps)
            .await
            .unwrap_or_else(|_| Err(timed_out(url, limit)))
    }
}

/// Opens the TCP connection.
pub(crate) async fn dial(url: &RuntimeUrl) -> Result<TcpStream, ConnectError> {
    let connect = async {
        let stream = TcpStream::connect((url.host(), url.port())).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    connect.await.map_err(|source| ConnectError::Unreachable {
        url: url.clone(),
        source,
    })
}

pub(crate) fn timed_out(url: &RuntimeUrl, after: Duration) -> ConnectError {
    ConnectError::Timeout {
        url: url.clone(),
        after,
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Speaks over a stream that is connected already. It takes as long as the peer takes: put a
    /// timeout around it.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] says which step failed.
    pub async fn over(
        stream: S,
        url: &RuntimeUrl,
        namespaces: &[Namespace],
    ) -> Result<Self, ConnectError> {
        let lost = |source: LinkError| ConnectError::Lost {
            url: url.clone(),
            source,
        };
        let builder = ClientBuilder::from_uri(url.engine()?)
            .limits(Limits::default().max_payload_len(Some(MAX_MESSAGE_BYTES + SLACK)))
            // One frame a message: its buffer is then masked in place instead of copied. The
            // socket never flushes by itself; when to write is decided here.
            .config(
                Config::default()
                    .frame_size(usize::MAX)
                    .flush_threshold(usize::MAX),
            );
        let stream = Metered::new(stream, MAX_RESPONSE_HEADER);
        let mut socket = match builder.connect_on(stream).await {
            Ok((socket, _)) => socket,
            Err(tokio_websockets::Error::Upgrade(error)) => {
                return Err(stranger(url, Stranger::NoWebSocket(error.to_string())));
            }
            Err(error) => return Err(lost(error.into())),
        };
        socket.get_mut().lift_bound();

        let handshake = open_packet(&mut socket, url).await?;
        let patience = handshake
            .ping_interval
            .saturating_add(handshake.ping_timeout)
            // A peer that states no time at all would be dead at once; one that states ages would
            // overflow the clock.
            .clamp(Duration::from_millis(1), Duration::from_secs(86_400));
        let mut connection = Self {
            socket,
            assembler: Assembler::default(),
            joined: Vec::new(),
            early: VecDeque::new(),
            queue: VecDeque::new(),
            pong: None,
            next_ack: 1,
            writing: false,
            unread_pings: 0,
            patience,
            watchdog: Box::pin(sleep_until(Instant::now() + patience)),
        };
        connection.join(url, namespaces).await?;
        Ok(connection)
    }

    /// Joins the namespaces: nothing is emitted on any before the reply to it is there
    /// (AGX-CON-041).
    async fn join(
        &mut self,
        url: &RuntimeUrl,
        namespaces: &[Namespace],
    ) -> Result<(), ConnectError> {
        let lost = |source: LinkError| ConnectError::Lost {
            url: url.clone(),
            source,
        };
        for namespace in namespaces {
            let packet = SocketPacket::Connect {
                namespace: namespace.clone(),
                data: Some(serde_json::json!({})),
            };
            self.send_text(EnginePacket::Message(packet.encode()).encode())
                .map_err(lost)?;
        }
        while self.joined.len() < namespaces.len() {
            match poll_fn(|cx| self.poll_packet(cx)).await.map_err(lost)? {
                Step::Packet(Packet::Packet(SocketPacket::Connect { namespace, data })) => {
                    let is_due = namespaces.contains(&namespace) && self.sid(&namespace).is_none();
                    if !is_due {
                        return Err(lost(LinkError::OutOfTurn("a CONNECT reply")));
                    }
                    let sid = data
                        .as_ref()
                        .and_then(|data| data.get("sid")?.as_str())
                        .unwrap_or_default();
                    self.joined.push((namespace, sid.to_owned()));
                }
                Step::Packet(Packet::Packet(SocketPacket::ConnectError { namespace, data })) => {
                    let message = data
                        .as_ref()
                        .and_then(|data| data.get("message")?.as_str())
                        .unwrap_or("no reason given")
                        .to_owned();
                    return Err(ConnectError::NamespaceRefused {
                        url: url.clone(),
                        namespace,
                        message,
                    });
                }
                step => {
                    if let Some(incoming) = step.incoming().map_err(lost)? {
                        if self.early.len() == MAX_EARLY {
                            return Err(lost(LinkError::Flood));
                        }
                        self.early.push_back(incoming);
                    }
                }
            }
        }
        Ok(())
    }
}

fn stranger(url: &RuntimeUrl, found: Stranger) -> ConnectError {
    ConnectError::NotARuntime {
        url: url.clone(),
        found,
    }
}

/// Waits for the packet that opens the session.
async fn open_packet<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<Metered<S>>,
    url: &RuntimeUrl,
) -> Result<Handshake, ConnectError> {
    let lost = |source: LinkError| ConnectError::Lost {
        url: url.clone(),
        source,
    };
    loop {
        let message = poll_fn(|cx| Pin::new(&mut *socket).poll_next(cx))
            .await
            .unwrap_or(Err(tokio_websockets::Error::AlreadyClosed))
            .map_err(|error| lost(error.into()))?;
        if message.is_ping() || message.is_pong() {
            continue;
        }
        if let Some((code, reason)) = message.as_close() {
            return Err(lost(LinkError::Closed {
                code: code.into(),
                reason: reason.to_owned(),
            }));
        }
        let opened = message
            .as_text()
            .filter(|text| text.len() <= MAX_HEADER_BYTES)
            .map(EnginePacket::parse);
        return match opened {
            Some(Ok(EnginePacket::Open(handshake))) => Ok(handshake),
            _ => Err(stranger(url, Stranger::NoEngine)),
        };
    }
}
