//! Starts runtimes, and talks to them as a host does.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use agentix_protocol::codec::Writer;
use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::frame::{FromWorker, PipeEvent};
use agentix_protocol::framing;
use agentix_protocol::http::CallReply;
use agentix_protocol::ident::{CallId, Namespace};
use agentix_protocol::message::{Call, Outcome};
use agentix_protocol::packet::{Assembler, EnginePacket, Event, Incoming, Payload, SocketPacket};
use agentix_protocol::remote::{self, RemoteFn};
use agentix_protocol::safepickle;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio_websockets::{ClientBuilder, Config, Limits, MaybeTlsStream, Message, WebSocketStream};

pub(crate) const RUNTIME: &str = env!("CARGO_BIN_EXE_agentix-runtime");
pub(crate) const WORKER: &str = env!("CARGO_BIN_EXE_agentix-worker");

/// Longer than anything takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that has to happen.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: not within {} s", PATIENCE.as_secs()),
    }
}

/// Looks again and again until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    within(what, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A program that is started with pipes, and killed when it is dropped.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(RUNTIME);
    command
        .args(arguments)
        .env_remove("AGENTIX_BIND_HOST")
        .env_remove("AGENTIX_BIND_PORT")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A runtime that listens.
pub(crate) struct Runtime {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) stdin: Option<ChildStdin>,
}

impl Runtime {
    /// Starts a runtime with the worker in Rust.
    pub(crate) async fn start() -> Self {
        Self::with_worker(WORKER).await
    }

    pub(crate) async fn with_worker(worker: &str) -> Self {
        Self::from(command(&["serve", "--worker", worker])).await
    }

    pub(crate) async fn from(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = within("listening", lines.next_line())
            .await
            .unwrap()
            .unwrap();
        let address = line.strip_prefix("listening on http://").unwrap();
        Self {
            child,
            address: address.parse().unwrap(),
            stdin,
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) async fn wait(&mut self) -> ExitStatus {
        within("the runtime's end", self.child.wait())
            .await
            .unwrap()
    }

    /// Ends it, and checks that it ends well.
    pub(crate) async fn stop(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.wait().await.code(), Some(0));
    }

    pub(crate) async fn health(&self) -> u16 {
        http(self.address, "GET", "/health", &[], b"").await.status
    }

    /// Calls over HTTP, with time enough for the outcome.
    pub(crate) async fn call<F: RemoteFn>(&self, id: u128, arguments: &F) -> CallReply {
        self.post(&call(id, arguments), &[("prefer", "wait=60")])
            .await
    }

    pub(crate) async fn post(&self, call: &Call, headers: &[(&str, &str)]) -> CallReply {
        let response = http(self.address, "POST", "/call", headers, &call.encode()).await;
        CallReply::decode(response.status, &response.body).unwrap()
    }
}

/// The call of a function.
pub(crate) fn call<F: RemoteFn>(id: u128, arguments: &F) -> Call {
    Call {
        call_id: CallId::from_random(id),
        callable: F::target().unwrap().to_string(),
        arguments: remote::encode_arguments(arguments).unwrap().into(),
        context: None,
    }
}

/// The value of an answer that has one.
pub(crate) fn value<T: serde::de::DeserializeOwned>(reply: CallReply) -> T {
    match reply {
        CallReply::Done(Ok(pickle)) => safepickle::from_slice(&pickle).unwrap(),
        other => panic!("no value: {other:?}"),
    }
}

/// A response of HTTP.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Bytes,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Writes the head of a request; its body of `len` bytes is to follow.
pub(crate) async fn request(
    stream: &mut TcpStream,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    len: usize,
) {
    let mut head = format!("{method} {target} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if len > 0 {
        head += &format!("content-length: {len}\r\n");
    }
    head += "\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
}

/// Reads a response to its end.
pub(crate) async fn response(stream: &mut TcpStream) -> Response {
    let mut all = Vec::new();
    within("a response", stream.read_to_end(&mut all))
        .await
        .unwrap();
    let end = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let body = Bytes::from(all.split_off(end + 4));
    let head = String::from_utf8(all).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head, body }
}

pub(crate) async fn http(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    let mut stream = TcpStream::connect(address).await.unwrap();
    request(&mut stream, method, target, headers, body.len()).await;
    stream.write_all(body).await.unwrap();
    response(&mut stream).await
}

/// A host on a WebSocket.
pub(crate) struct Host {
    pub(crate) socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    assembler: Assembler,
    /// Events that came while something else was waited for.
    events: VecDeque<Event>,
}

impl Host {
    /// Connects, and joins these namespaces.
    pub(crate) async fn connect(runtime: &Runtime, namespaces: &[&str]) -> (Self, Vec<String>) {
        let mut host = Self::open(runtime).await;
        let mut sids = Vec::new();
        for namespace in namespaces {
            sids.push(host.join(namespace).await);
        }
        (host, sids)
    }

    pub(crate) async fn open(runtime: &Runtime) -> Self {
        let uri = format!(
            "ws://{}/socket.io/?EIO=4&transport=websocket",
            runtime.address
        );
        let builder = ClientBuilder::new()
            .uri(&uri)
            .unwrap()
            .config(Config::default().frame_size(usize::MAX))
            .limits(Limits::unlimited());
        let (socket, _) = within("a WebSocket", builder.connect()).await.unwrap();
        let mut host = Self {
            socket,
            assembler: Assembler::default(),
            events: VecDeque::new(),
        };
        let open = within("an open packet", host.message()).await.unwrap();
        let EnginePacket::Open(open) = EnginePacket::parse(open.as_text().unwrap()).unwrap() else {
            panic!("no open packet")
        };
        assert_eq!(open.ping_interval, Duration::from_secs(25));
        assert_eq!(open.ping_timeout, Duration::from_secs(300));
        assert!(open.upgrades.is_empty());
        host
    }

    pub(crate) async fn join(&mut self, namespace: &str) -> String {
        let namespace = Namespace::new(namespace).unwrap();
        self.packet(&SocketPacket::Connect {
            namespace: namespace.clone(),
            data: None,
        })
        .await;
        match self.incoming().await {
            Some(Incoming::Packet(SocketPacket::Connect {
                namespace: joined,
                data: Some(data),
            })) if joined == namespace => data["sid"].as_str().unwrap().to_owned(),
            other => panic!("no reply to CONNECT: {other:?}"),
        }
    }

    pub(crate) async fn packet(&mut self, packet: &SocketPacket) {
        let text = EnginePacket::Message(packet.encode()).encode();
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// Sends an event with an attachment.
    pub(crate) async fn emit(
        &mut self,
        namespace: &str,
        name: &str,
        ack: Option<u64>,
        data: &[u8],
    ) {
        self.packet(&SocketPacket::BinaryEvent {
            namespace: Namespace::new(namespace).unwrap(),
            ack,
            name: name.to_owned(),
        })
        .await;
        let data = Message::binary(data.to_vec());
        self.socket.send(data).await.unwrap();
    }

    pub(crate) async fn rpc(&mut self, event: &HostEvent) {
        self.emit("/rpc", event.name(), None, &event.payload())
            .await;
    }

    async fn message(&mut self) -> Option<Message> {
        self.socket.next().await.map(Result::unwrap)
    }

    /// The next whole Socket.IO packet; `None` at the end of the connection.
    pub(crate) async fn incoming(&mut self) -> Option<Incoming> {
        within("a packet", self.next_incoming()).await
    }

    async fn next_incoming(&mut self) -> Option<Incoming> {
        loop {
            let message = self.message().await?;
            let incoming = if let Some(text) = message.as_text() {
                match EnginePacket::parse(text).unwrap() {
                    EnginePacket::Message(text) => self.assembler.text(&text).unwrap(),
                    _ => None,
                }
            } else if message.is_binary() {
                let data = Bytes::from(message.into_payload());
                Some(self.assembler.binary(data).unwrap())
            } else {
                None
            };
            if incoming.is_some() {
                return incoming;
            }
        }
    }

    pub(crate) async fn event(&mut self) -> Event {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        match self.incoming().await {
            Some(Incoming::Event(event)) => event,
            other => panic!("no event: {other:?}"),
        }
    }

    /// The next outcome on `/rpc`.
    pub(crate) async fn outcome(&mut self) -> Outcome {
        let event = self.event().await;
        assert_eq!(event.namespace.as_str(), "/rpc");
        match RuntimeEvent::decode(&event.name, &attachment(event.payload)).unwrap() {
            RuntimeEvent::Outcome(outcome) => outcome,
            RuntimeEvent::Rejected(error) => panic!("rejected: {error}"),
        }
    }

    /// Waits for the ack of an event; events that come first are kept.
    pub(crate) async fn acked(&mut self, expected: u64) {
        loop {
            match self.incoming().await {
                Some(Incoming::Packet(SocketPacket::Ack { id, .. })) => {
                    assert_eq!(id, expected);
                    return;
                }
                Some(Incoming::Event(event)) => self.events.push_back(event),
                other => panic!("no ack: {other:?}"),
            }
        }
    }

    /// Waits for the end of the connection; returns the close code, if there was one.
    pub(crate) async fn closed(mut self) -> Option<u16> {
        let mut code = None;
        while let Some(Ok(message)) = within("the end", self.socket.next()).await {
            if let Some((found, _)) = message.as_close() {
                code = Some(found.into());
            }
        }
        code
    }
}

pub(crate) fn attachment(payload: Payload) -> Bytes {
    match payload {
        Payload::Binary(data) => data,
        Payload::Json(_) => panic!("JSON where an attachment was due"),
    }
}

/// A folder for the files of a worker that a shell plays.
pub(crate) struct Folder(tempdir::Dir);

mod tempdir {
    use std::path::PathBuf;

    /// A folder that goes with its owner.
    pub(crate) struct Dir(pub(crate) PathBuf);

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(tempdir::Dir(path))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.0.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.path(name))
    }

    /// Writes frames to a file, for a shell to send.
    pub(crate) fn frames(&self, name: &str, frames: &[FromWorker]) {
        let mut bytes = Vec::new();
        for frame in frames {
            let body = frame.encode();
            bytes.extend_from_slice(&framing::header(body.len()).unwrap());
            bytes.extend_from_slice(&body);
        }
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// A worker command that runs this script of a shell, in this folder.
    pub(crate) fn shell(&self, script: &str) -> String {
        std::fs::write(self.path("worker.sh"), script).unwrap();
        format!(
            "sh -c 'cd \"$0\" && . ./worker.sh' '{}'",
            self.0.0.display()
        )
    }
}

/// An event on `/app` that holds a number and so many bytes.
pub(crate) fn app_event(number: u64, padding: usize) -> FromWorker {
    let mut data = Writer::default();
    data.array(2);
    data.uint(number);
    data.bin(&vec![0x1e; padding]);
    FromWorker::SioEmit(PipeEvent {
        namespace: Namespace::new("/app").unwrap(),
        event: "tick".to_owned(),
        data: data.into_vec().into(),
    })
}

/// The state letter of a process, `None` when there is none; see proc(5).
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

pub(crate) fn is_alive(pid: i32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// The living processes of a group.
pub(crate) fn group_members(group: i32) -> Vec<i32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| is_alive(*pid))
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            rest.split_whitespace().nth(2) == Some(&group.to_string())
        })
        .collect()
}

/// Memory of a process, in bytes.
pub(crate) fn memory(pid: i32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

/// Is there a Python 3? Says so by name when there is none.
pub(crate) fn has_python(test: &str) -> bool {
    let found = std::process::Command::new("python3")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        not_run(test, "python3 not found");
    }
    found
}

/// Was this process started with SIGHUP ignored, as `nohup` does? What it starts inherits that.
pub(crate) fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 != 0)
}

/// Says that a test did not run, past the harness's capture.
pub(crate) fn not_run(test: &str, why: &str) {
    let line = format!("NOT RUN {test}: {why}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
}

/// Measures how long something takes.
pub(crate) async fn timed<F: Future>(future: F) -> (F::Output, Duration) {
    let start = Instant::now();
    let output = future.await;
    (output, start.elapsed())
}

agentix_protocol::remote! {
    pub fn echo(value: String) -> String = "conformance::echo";
    pub async fn sleep(seconds: f64) -> f64 = "conformance::sleep";
    pub fn block(seconds: f64) -> f64 = "conformance::block";
    pub async fn count_slow(key: String, seconds: f64) -> i64 = "conformance::count_slow";
    pub fn counted(key: String) -> i64 = "conformance::counted";
    pub fn pid() -> i32 = "conformance::pid";
    pub fn exit(code: u8) = "conformance::exit";
    pub fn blob(size: usize) -> Vec<u8> = "conformance::blob";
    pub fn print_text(text: String, stream: String) = "conformance::print_text";
    pub fn print_child(text: String) -> i32 = "conformance::print_child";
    pub fn missing() = "conformance::missing";
}
