//! A runtime that does what a test says, message by message, over real sockets.

use std::collections::HashMap;
use std::time::Duration;

use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::http::{CallReply, Health};
use agentix_protocol::ident::CallId;
use agentix_protocol::message::{Call, Outcome};
use agentix_protocol::packet::{Assembler, EnginePacket, Event, Incoming, Payload, SocketPacket};
use agentix_protocol::safepickle::{self, Protocol};
use agentix_reference_host::{ClientConfig, ConnectError, Reconnect, RuntimeClient};
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_websockets::{Limits, Message, ServerBuilder, WebSocketStream};

/// No test waits longer than this for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// Fails the test where the future takes too long.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("nothing happens")
}

/// What a scripted runtime says about itself.
pub(crate) fn legacy() -> Health {
    Health {
        status: "ok".into(),
        version: "0.2.7".into(),
        protocol: None,
    }
}

/// A client configuration that wastes no time.
pub(crate) fn quick() -> ClientConfig {
    ClientConfig {
        http_wait: None,
        reconnect: Reconnect {
            attempts: 5,
            delay: Duration::from_millis(2),
            max_delay: Duration::from_millis(10),
        },
        ..ClientConfig::default()
    }
}

/// Like [`quick`], without second attempts.
pub(crate) fn once() -> ClientConfig {
    ClientConfig {
        reconnect: Reconnect::off(),
        ..quick()
    }
}

pub(crate) struct Runtime {
    pub(crate) url: String,
    requests: mpsc::UnboundedReceiver<Request>,
    sockets: mpsc::UnboundedReceiver<TcpStream>,
    tasks: JoinSet<()>,
}

/// A `POST /call` that waits for its answer.
pub(crate) struct Request {
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    answer: oneshot::Sender<Answer>,
}

enum Answer {
    Whole(u16, Vec<u8>),
    /// The head of a body of so many bytes; the test writes the rest.
    Begin(usize, oneshot::Sender<TcpStream>),
}

impl Request {
    pub(crate) fn call(&self) -> Call {
        agentix_protocol::http::decode_call(&self.body.clone().into()).unwrap()
    }

    pub(crate) fn answer(self, reply: &CallReply) {
        self.raw_answer(reply.status(), reply.encode());
    }

    pub(crate) fn raw_answer(self, status: u16, body: Vec<u8>) {
        assert!(self.answer.send(Answer::Whole(status, body)).is_ok());
    }

    /// Answers 200 with a body of `len` bytes, which the caller writes.
    pub(crate) async fn begin_answer(self, len: usize) -> TcpStream {
        let (give, taken) = oneshot::channel();
        assert!(self.answer.send(Answer::Begin(len, give)).is_ok());
        within(taken).await.unwrap()
    }

    /// Ends the connection without an answer.
    pub(crate) fn cut(self) {
        drop(self.answer);
    }
}

impl Runtime {
    pub(crate) async fn start(health: Health) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (post, requests) = mpsc::unbounded_channel();
        let (socket, sockets) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (health, post, socket) = (health.clone(), post.clone(), socket.clone());
                connections.spawn(serve(stream, health, post, socket));
            }
        });
        Self {
            url,
            requests,
            sockets,
            tasks,
        }
    }

    pub(crate) async fn v1() -> Self {
        Self::start(Health::healthy("9.9.9")).await
    }

    /// The next WebSocket, upgraded, with nothing said on it.
    pub(crate) async fn socket(&mut self) -> Socket {
        let stream = within(self.sockets.recv()).await.unwrap();
        let builder = ServerBuilder::new().limits(Limits::unlimited());
        let (request, socket) = within(builder.accept(stream)).await.unwrap();
        Socket {
            uri: request.uri().to_string(),
            socket,
            assembler: Assembler::default(),
        }
    }

    /// The next socket that asks for an upgrade, before its answer.
    pub(crate) async fn stream(&mut self) -> TcpStream {
        within(self.sockets.recv()).await.unwrap()
    }

    /// The next WebSocket with its session open and `/rpc` joined.
    pub(crate) async fn joined(&mut self) -> Socket {
        let mut socket = self.socket().await;
        socket.open().await;
        socket.join("/rpc").await;
        socket
    }

    pub(crate) async fn post(&mut self) -> Request {
        within(self.requests.recv()).await.unwrap()
    }

    /// A client with its connection.
    pub(crate) async fn client(&mut self, config: ClientConfig) -> (RuntimeClient, Socket) {
        let url = self.url.clone();
        let (client, socket) = tokio::join!(RuntimeClient::connect(&url, config), self.joined());
        (client.unwrap(), socket)
    }

    /// A client whose connection does not come about.
    pub(crate) async fn refused(url: &str, config: ClientConfig) -> ConnectError {
        within(RuntimeClient::connect(url, config))
            .await
            .unwrap_err()
    }

    /// Stops listening; connections are cut.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn serve(
    mut stream: TcpStream,
    health: Health,
    post: mpsc::UnboundedSender<Request>,
    sockets: mpsc::UnboundedSender<TcpStream>,
) {
    let mut head = [0; 14];
    loop {
        match stream.peek(&mut head).await {
            Ok(0) | Err(_) => return,
            Ok(n) if n == head.len() => {}
            Ok(_) => {
                tokio::task::yield_now().await;
                continue;
            }
        }
        if head.starts_with(b"GET /socket.io") {
            let _ = sockets.send(stream);
            return;
        }
        let Some((line, headers, body)) = request(&mut stream).await else {
            return;
        };
        let (status, body) = if line.starts_with("GET /health ") {
            (200, serde_json::to_vec(&health).unwrap())
        } else {
            let (answer, answered) = oneshot::channel();
            let request = Request {
                headers,
                body,
                answer,
            };
            if post.send(request).is_err() {
                return;
            }
            match answered.await {
                Ok(Answer::Whole(status, body)) => (status, body),
                Ok(Answer::Begin(len, give)) => {
                    stream.write_all(&head_of(200, len)).await.unwrap();
                    give.send(stream).unwrap();
                    return;
                }
                Err(_) => return,
            }
        };
        let answer = [head_of(status, body.len()), body].concat();
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

fn head_of(status: u16, len: usize) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\ncontent-length: {len}\r\n\r\n").into_bytes()
}

async fn request(stream: &mut TcpStream) -> Option<(String, HashMap<String, String>, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let line = lines.next()?.to_owned();
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((line, headers, body))
}

pub(crate) struct Socket {
    pub(crate) uri: String,
    pub(crate) socket: WebSocketStream<TcpStream>,
    assembler: Assembler,
}

/// What a host sent.
#[derive(Debug)]
pub(crate) enum Sent {
    Text(String),
    Binary(Vec<u8>),
    Close(u16),
}

impl Socket {
    pub(crate) async fn text(&mut self, text: &str) {
        within(self.socket.send(Message::text(text.to_owned())))
            .await
            .unwrap();
    }

    pub(crate) async fn binary(&mut self, bytes: Vec<u8>) {
        within(self.socket.send(Message::binary(bytes)))
            .await
            .unwrap();
    }

    /// The next message, as it is.
    pub(crate) async fn sent(&mut self) -> Sent {
        let message = within(self.socket.next()).await.unwrap().unwrap();
        if let Some((code, _)) = message.as_close() {
            Sent::Close(code.into())
        } else if let Some(text) = message.as_text() {
            Sent::Text(text.to_owned())
        } else {
            assert!(message.is_binary(), "{message:?}");
            Sent::Binary(message.as_payload().to_vec())
        }
    }

    pub(crate) async fn sent_text(&mut self) -> String {
        match self.sent().await {
            Sent::Text(text) => text,
            other => panic!("no text but {other:?}"),
        }
    }

    pub(crate) async fn open(&mut self) {
        self.text(
            r#"0{"sid":"engine","upgrades":[],"pingTimeout":300000,"pingInterval":25000,"maxPayload":268435456}"#,
        )
        .await;
    }

    pub(crate) async fn join(&mut self, namespace: &str) {
        assert_eq!(self.sent_text().await, format!("40{namespace},{{}}"));
        let sid = format!(r#"40{namespace},{{"sid":"sid-of-{}"}}"#, &namespace[1..]);
        self.text(&sid).await;
    }

    /// The next event of the host.
    pub(crate) async fn event(&mut self) -> Event {
        loop {
            let incoming = match self.sent().await {
                Sent::Text(text) => match EnginePacket::parse(&text).unwrap() {
                    EnginePacket::Message(packet) => self.assembler.text(&packet).unwrap(),
                    other => panic!("no event but {other:?}"),
                },
                Sent::Binary(bytes) => Some(self.assembler.binary(bytes.into()).unwrap()),
                Sent::Close(code) => panic!("closed with {code}"),
            };
            match incoming {
                None => {}
                Some(Incoming::Event(event)) => return event,
                Some(other) => panic!("no event but {other:?}"),
            }
        }
    }

    /// The next event, which belongs to `/rpc`, with the number of the ack it asks for.
    pub(crate) async fn rpc(&mut self) -> (HostEvent, Option<u64>) {
        let event = self.event().await;
        assert_eq!(event.namespace.as_str(), "/rpc");
        let Payload::Binary(payload) = &event.payload else {
            panic!("no attachment");
        };
        (HostEvent::decode(&event.name, payload).unwrap(), event.ack)
    }

    /// The next event, which is a call; it is accepted.
    pub(crate) async fn accepted(&mut self) -> Call {
        let (call, ack) = self.call().await;
        self.accept(ack).await;
        call
    }

    pub(crate) async fn call(&mut self) -> (Call, u64) {
        match self.rpc().await {
            (HostEvent::Call(call), Some(ack)) => (call, ack),
            other => panic!("no call but {other:?}"),
        }
    }

    pub(crate) async fn accept(&mut self, ack: u64) {
        self.text(&format!("43/rpc,{ack}[]")).await;
    }

    pub(crate) async fn send(&mut self, event: &RuntimeEvent) {
        self.event_of("/rpc", event.name(), event.payload()).await;
    }

    pub(crate) async fn event_of(&mut self, namespace: &str, name: &str, payload: Vec<u8>) {
        let header = SocketPacket::BinaryEvent {
            namespace: agentix_protocol::ident::Namespace::new(namespace).unwrap(),
            ack: None,
            name: name.to_owned(),
        };
        self.text(&EnginePacket::Message(header.encode()).encode())
            .await;
        self.binary(payload).await;
    }

    pub(crate) async fn returns<T: Serialize>(&mut self, id: &CallId, value: &T) {
        let value = pickle(value).into();
        self.send(&RuntimeEvent::Outcome(Outcome::value(id.clone(), value)))
            .await;
    }

    /// The next event acks this call.
    pub(crate) async fn expect_ack(&mut self, id: &CallId) {
        assert_eq!(self.rpc().await, (HostEvent::Ack(id.clone()), None));
    }
}

pub(crate) fn pickle<T: Serialize>(value: &T) -> Vec<u8> {
    safepickle::to_vec(value, Protocol::DEFAULT).unwrap()
}
