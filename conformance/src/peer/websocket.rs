//! One WebSocket, message by message.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_websockets::{ClientBuilder, Config, Limits, Message, WebSocketStream};

use super::{Endpoint, Wire, missed, silence};
use crate::transcript::Direction;
use crate::verdict::{Stop, Verdict};

/// What came on a WebSocket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Received {
    Text(String),
    Binary(Bytes),
    Pong(Bytes),
    /// The connection ended, with the code of the close frame if there was one.
    Closed(Option<u16>),
}

/// A WebSocket to a runtime.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: WebSocketStream<TcpStream>,
    name: String,
    wire: Wire,
}

/// A little above the largest message of the protocol.
const MAX_MESSAGE_BYTES: usize = 300 * 1024 * 1024;

impl Socket {
    /// Connects; `fragment` splits what is sent into WebSocket frames of that many bytes.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        path: &str,
        name: &str,
        wire: &Wire,
        fragment: Option<usize>,
    ) -> Verdict<Self> {
        let what = format!("a WebSocket at {path}");
        let stream = endpoint.connect(wire.clock).await?;
        let uri = format!("ws://{endpoint}{path}");
        let config = Config::default().frame_size(fragment.unwrap_or(MAX_MESSAGE_BYTES));
        let builder = ClientBuilder::new()
            .uri(&uri)
            .map_err(|error| Stop::Harness(format!("{uri}: {error}")))?
            .limits(Limits::default().max_payload_len(Some(MAX_MESSAGE_BYTES)))
            .config(config);
        wire.transcript
            .text(name, Direction::Sent, "websocket", path);
        match timeout(wire.clock.answer(), builder.connect_on(stream)).await {
            Ok(Ok((stream, _))) => Ok(Self {
                stream,
                name: name.to_owned(),
                wire: wire.clone(),
            }),
            Ok(Err(error)) => Err(missed(what, error)),
            Err(_) => Err(silence(what, wire.clock.answer())),
        }
    }

    pub(crate) async fn send_text(&mut self, text: &str) -> Verdict {
        self.wire
            .transcript
            .text(&self.name, Direction::Sent, "text", text);
        self.send(Message::text(text.to_owned())).await
    }

    pub(crate) async fn send_binary(&mut self, bytes: &[u8]) -> Verdict {
        self.wire
            .transcript
            .binary(&self.name, Direction::Sent, "binary", bytes);
        self.send(Message::binary(Bytes::copy_from_slice(bytes)))
            .await
    }

    pub(crate) async fn send_ping(&mut self, payload: &'static [u8]) -> Verdict {
        self.wire
            .transcript
            .binary(&self.name, Direction::Sent, "ping", payload);
        self.send(Message::ping(Bytes::from_static(payload))).await
    }

    async fn send(&mut self, message: Message) -> Verdict {
        let wait = self.wire.clock.answer();
        match timeout(wait, self.stream.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(missed("a WebSocket that takes a message", error)),
            Err(_) => Err(silence("a WebSocket that takes a message", wait)),
        }
    }

    /// Leaves with code 1000.
    pub(crate) async fn close(mut self) -> Verdict {
        self.wire
            .transcript
            .text(&self.name, Direction::Sent, "close", "1000");
        let _ = timeout(self.wire.clock.answer(), self.stream.close()).await;
        Ok(())
    }

    /// The next message; none within `wait`: `None`.
    pub(crate) async fn next(&mut self, wait: Duration) -> Option<Received> {
        loop {
            let message = match timeout(wait, self.stream.next()).await {
                Err(_) => return None,
                Ok(None | Some(Err(_))) => return Some(self.received(Received::Closed(None))),
                Ok(Some(Ok(message))) => message,
            };
            let received = if let Some(text) = message.as_text() {
                Received::Text(text.to_owned())
            } else if message.is_binary() {
                Received::Binary(Bytes::from(message.into_payload()))
            } else if let Some((code, _)) = message.as_close() {
                let code = code.into();
                // Answers the close frame, which the other side may wait for.
                let _ = timeout(self.wire.clock.answer(), self.stream.close()).await;
                Received::Closed(Some(code))
            } else if message.is_pong() {
                Received::Pong(Bytes::from(message.into_payload()))
            } else {
                continue; // a ping: the stream answers it itself
            };
            return Some(self.received(received));
        }
    }

    fn received(&self, received: Received) -> Received {
        let (log, name) = (&self.wire.transcript, &self.name);
        match &received {
            Received::Text(text) => log.text(name, Direction::Received, "text", text),
            Received::Binary(bytes) => log.binary(name, Direction::Received, "binary", bytes),
            Received::Pong(bytes) => log.binary(name, Direction::Received, "pong", bytes),
            Received::Closed(code) => {
                log.text(name, Direction::Received, "close", &format!("{code:?}"));
            }
        }
        received
    }
}
