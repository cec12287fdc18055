//! A session's WebSocket: the upgrade, and both directions at once.

mod frame;

use std::sync::Arc;
use std::time::Duration;

use agentix_protocol::event::RuntimeEvent;
use data_encoding::BASE64;
use sha1_smol::Sha1;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufWriter};

pub(crate) use frame::close_code;
use frame::{Decoder, FrameError, Message, Opcode};

use crate::inbox::Inbox;
use crate::log;
use crate::outbox::{Closing, Item, Next, Urgent};
use crate::session::{Fault, Session, rpc_header};

/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;
/// How long a closing session has to send what waits, and its peer to answer the close.
const CLOSE_GRACE: Duration = Duration::from_secs(2);
/// How long a host has for the steps of an upgrade.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// Value of `sec-websocket-accept` for a `sec-websocket-key` (RFC 6455, 4.2.2).
pub(crate) fn accept_key(key: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(key);
    hash.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    BASE64.encode(&hash.digest().bytes())
}

/// Why a WebSocket ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The host closed, or its stream ended.
    #[error("the host closed")]
    Closed,
    /// The session was closed by this side.
    #[error("closed")]
    Over,
}

/// The reading half.
struct Reader<R> {
    io: R,
    decoder: Decoder,
    buffer: Box<[u8]>,
    /// What of the buffer is not decoded yet.
    pending: std::ops::Range<usize>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    fn new(io: R) -> Self {
        Self {
            io,
            decoder: Decoder::default(),
            buffer: vec![0; READ_BYTES].into(),
            pending: 0..0,
        }
    }

    async fn next(&mut self, session: &Session) -> Result<Message, End> {
        loop {
            let mut input = &self.buffer[self.pending.clone()];
            let message = self.decoder.feed(&mut input)?;
            self.pending.start = self.pending.end - input.len();
            if let Some(message) = message {
                return Ok(message);
            }
            let count = self.io.read(&mut self.buffer).await?;
            if count == 0 {
                return Err(End::Closed);
            }
            session.received();
            self.pending = 0..count;
        }
    }
}

/// The writing half.
struct Writer<W>(BufWriter<W>);

impl<W: AsyncWrite + Unpin> Writer<W> {
    async fn message(&mut self, opcode: Opcode, payload: &[u8]) -> std::io::Result<()> {
        let (head, len) = frame::head(opcode, payload.len());
        self.0.write_all(&head[..len]).await?;
        self.0.write_all(payload).await
    }

    async fn text(&mut self, text: &str) -> std::io::Result<()> {
        self.message(Opcode::Text, text.as_bytes()).await
    }

    async fn rpc(&mut self, event: &RuntimeEvent) -> std::io::Result<()> {
        self.text(&rpc_header(event.name())).await?;
        self.message(Opcode::Binary, &event.payload()).await
    }

    /// Sends what the session queues, until it is closed.
    async fn run(&mut self, session: &Session, inbox: &Inbox) -> std::io::Result<()> {
        loop {
            match session.outbox.next() {
                Next::Urgent(Urgent::Packet(text)) => self.text(text).await?,
                Next::Urgent(Urgent::Pong(text)) => self.text(&text).await?,
                Next::Urgent(Urgent::SocketPong(data)) => self.message(Opcode::Pong, &data).await?,
                Next::Item(Item::Text(text)) => self.text(&text).await?,
                Next::Item(Item::Event(header, payload)) => {
                    self.text(&header).await?;
                    self.message(Opcode::Binary, &payload).await?;
                }
                Next::Item(Item::Rpc(event)) => self.rpc(&event).await?,
                Next::Item(Item::Held(id)) => {
                    if let Some(event) = inbox.fetch(id).await {
                        self.rpc(&event).await?;
                    }
                }
                Next::Wait => {
                    self.0.flush().await?;
                    session.outbox.changed().await;
                }
                Next::Closed(code) => {
                    self.message(Opcode::Close, &code.to_be_bytes()).await?;
                    self.0.flush().await?;
                    return self.0.shutdown().await;
                }
            }
        }
    }
}

/// Serves a new session on a WebSocket alone.
pub(crate) async fn serve<T: AsyncRead + AsyncWrite + Unpin>(
    io: T,
    session: Arc<Session>,
    open: &str,
    inbox: &Inbox,
) {
    let (reader, writer) = tokio::io::split(io);
    let mut writer = Writer(BufWriter::with_capacity(READ_BYTES, writer));
    if writer.text(open).await.is_err() {
        session.leave();
        return;
    }
    run(Reader::new(reader), writer, session, inbox).await;
}

/// Serves a WebSocket to which a session moves; a probe that fails leaves the session as it is.
pub(crate) async fn upgrade<T: AsyncRead + AsyncWrite + Unpin>(
    io: T,
    session: Arc<Session>,
    inbox: &Inbox,
) {
    let (reader, writer) = tokio::io::split(io);
    let mut reader = Reader::new(reader);
    let mut writer = Writer(BufWriter::with_capacity(READ_BYTES, writer));
    let probe = async {
        loop {
            match reader.next(&session).await? {
                Message::Text(text) if text == "2probe" => {
                    writer.text("3probe").await?;
                    writer.0.flush().await?;
                    // Releases a poll that waits, so that the host can go on.
                    session.outbox.push_urgent(Urgent::Packet("6"));
                }
                Message::Text(text) if text == "5" => return Ok(()),
                Message::Ping(data) => {
                    writer.message(Opcode::Pong, &data).await?;
                    writer.0.flush().await?;
                }
                Message::Pong => {}
                Message::Close => return Err(End::Closed),
                Message::Text(_) | Message::Binary(_) => {
                    let error = FrameError::Protocol("another message than a probe or `5`");
                    return Err(End::Frame(error));
                }
            }
        }
    };
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(PROBE_TIMEOUT, probe) => outcome,
        () = session.outbox.closed() => return,
    };
    match outcome {
        Ok(Ok(())) => {
            session.upgrade();
            run(reader, writer, session, inbox).await;
        }
        Ok(Err(_)) | Err(_) => {
            // The session polls on.
            let _ = writer
                .message(Opcode::Close, &close_code::PROTOCOL_ERROR.to_be_bytes())
                .await;
            let _ = writer.0.shutdown().await;
        }
    }
}

async fn run<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut reader: Reader<R>,
    mut writer: Writer<W>,
    session: Arc<Session>,
    inbox: &Inbox,
) {
    let reading = async {
        let end = receive(&mut reader, &session).await;
        match &end {
            End::Over => {}
            End::Closed | End::Io(_) => session.leave(),
            End::Fault(fault) => session.fail(fault),
            End::Frame(error) => {
                log::runtime(format_args!("closed a session: {error}"));
                session.close(Closing::Now(error.close_code()));
            }
        }
        // So that what the host still sends does not reset the connection before the close
        // frame has arrived.
        while matches!(reader.io.read(&mut reader.buffer).await, Ok(1..)) {}
    };
    let writing = async {
        if writer.run(&session, inbox).await.is_err() {
            session.leave();
        }
    };
    let late = async {
        session.outbox.closed().await;
        tokio::time::sleep(CLOSE_GRACE).await;
    };
    tokio::select! {
        _ = async { tokio::join!(reading, writing) } => {}
        () = late => {}
    }
}

/// Takes messages until the session ends.
async fn receive<R: AsyncRead + Unpin>(reader: &mut Reader<R>, session: &Arc<Session>) -> End {
    loop {
        let message = tokio::select! {
            message = reader.next(session) => message,
            () = session.outbox.closed() => return End::Over,
        };
        let result = match message {
            Ok(Message::Text(text)) => session.text(&text).await,
            Ok(Message::Binary(attachment)) => session.binary(attachment).await,
            Ok(Message::Ping(data)) => {
                session.outbox.push_urgent(Urgent::SocketPong(data));
                Ok(())
            }
            Ok(Message::Pong) => Ok(()),
            Ok(Message::Close) => return End::Closed,
            Err(end) => return end,
        };
        if let Err(fault) = result {
            return End::Fault(fault);
        }
    }
}
