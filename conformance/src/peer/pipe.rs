//! Frames on a pipe: the runtime's end towards a worker, or the worker's end towards a runtime.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use agentix_protocol::codec::Value as Msgpack;
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::{Wire, missed, silence};
use crate::outcome::{Outcome, Terminal};
use crate::transcript::Direction;
use crate::verdict::{Verdict, check, fail, shorten};

/// Largest body (AGX-PIPE-002).
const MAX_BODY_BYTES: usize = 268_435_456;

/// One frame that came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    /// Its `type`.
    pub(crate) kind: String,
    /// Its body, without the length.
    pub(crate) body: Bytes,
}

/// What came on a pipe.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Received {
    Frame(Frame),
    /// The testee closed its end.
    End,
}

/// Both directions of a pipe.
pub(crate) struct Pipe {
    reader: Box<dyn AsyncRead + Unpin + Send>,
    writer: Option<Box<dyn AsyncWrite + Unpin + Send>>,
    buffer: BytesMut,
    queue: VecDeque<Frame>,
    history: Vec<Frame>,
    ended: bool,
    /// How many times the usual wait for an answer this pipe waits.
    patience: u32,
    name: &'static str,
    wire: Wire,
}

impl Pipe {
    pub(crate) fn new(
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
        name: &'static str,
        wire: &Wire,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Some(Box::new(writer)),
            buffer: BytesMut::new(),
            queue: VecDeque::new(),
            history: Vec::new(),
            ended: false,
            patience: 1,
            name,
            wire: wire.clone(),
        }
    }

    /// Writes a frame.
    pub(crate) async fn send(&mut self, body: &[u8]) -> Verdict {
        self.send_raw(&framed(body)).await
    }

    /// Writes bytes as they are.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) -> Verdict {
        let what = "a pipe that takes frames";
        let log = &self.wire.transcript;
        match bytes.get(4..) {
            Some(body) => log.binary(self.name, Direction::Sent, "frame", body),
            None => log.binary(self.name, Direction::Sent, "bytes", bytes),
        }
        let Some(writer) = &mut self.writer else {
            return Err(missed(what, "this side closed it"));
        };
        let write = async {
            writer.write_all(bytes).await?;
            writer.flush().await
        };
        match timeout(self.wire.clock.answer(), write).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(missed(what, error)),
            Err(_) => Err(silence(what, self.wire.clock.answer())),
        }
    }

    /// Closes the direction towards the testee.
    pub(crate) async fn close(&mut self) {
        self.wire
            .transcript
            .text(self.name, Direction::Sent, "end", "");
        if let Some(mut writer) = self.writer.take() {
            let _ = writer.shutdown().await;
        }
    }

    /// From now on waits that many times as long for an answer: for what takes time to make.
    pub(crate) fn be_patient(&mut self, times: u32) {
        self.patience = times;
    }

    /// Closes the direction from the testee, unread.
    pub(crate) fn stop_reading(&mut self) {
        self.wire
            .transcript
            .text(self.name, Direction::Sent, "stop reading", "");
        self.reader = Box::new(tokio::io::empty());
    }

    /// Waits for the first frame that `choose` takes; what it does not take stays for later.
    pub(crate) async fn wait<T>(
        &mut self,
        what: &str,
        choose: impl Fn(&Frame) -> Option<T>,
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
        let wait = self.wire.clock.answer() * self.patience;
        let until = Instant::now() + wait;
        loop {
            match self.read_until(until).await? {
                None => return Err(silence(what, wait)),
                Some(Received::End) => return Err(missed(what, "the end of the pipe")),
                Some(Received::Frame(frame)) => match choose(&frame) {
                    Some(chosen) => return Ok(chosen),
                    None => self.queue.push_back(frame),
                },
            }
        }
    }

    /// Waits for a frame of one type.
    pub(crate) async fn frame(&mut self, kind: &str) -> Verdict<Frame> {
        let of_kind = |frame: &Frame| (frame.kind == kind).then(|| frame.clone());
        self.wait(&format!("a frame of type {kind}"), of_kind).await
    }

    /// Waits for the terminal frame of a call.
    pub(crate) async fn terminal(&mut self, id: &str) -> Verdict<Terminal> {
        let of_call = |frame: &Frame| frame.is_terminal_of(id).then(|| frame.clone());
        let what = format!("the terminal frame of call {id:?}");
        let frame = self.wait(&what, of_call).await?;
        Terminal::read(frame.kind == "result", &frame.body)
    }

    /// Waits for the outcome of a call.
    pub(crate) async fn outcome(&mut self, id: &str) -> Verdict<Outcome> {
        Ok(self.terminal(id).await?.outcome)
    }

    /// How many terminal frames of a call came so far.
    pub(crate) fn terminals_so_far(&self, id: &str) -> usize {
        self.history
            .iter()
            .filter(|frame| frame.is_terminal_of(id))
            .count()
    }

    /// Every frame that came so far.
    pub(crate) fn history(&self) -> &[Frame] {
        &self.history
    }

    /// Ends the case unless exactly `count` terminal frames of a call came so far.
    pub(crate) fn terminals(&self, requirement: &'static str, id: &str, count: usize) -> Verdict {
        let observed = self.terminals_so_far(id);
        check(
            observed == count,
            requirement,
            format_args!("{count} terminal frame(s) of call {id:?}"),
            observed,
        )
    }

    /// Waits until the testee closes its end; frames before that are kept.
    pub(crate) async fn end(&mut self) -> Verdict {
        if self.ended {
            return Ok(());
        }
        let wait = self.wire.clock.stop();
        let until = Instant::now() + wait;
        loop {
            match self.read_until(until).await? {
                Some(Received::End) => return Ok(()),
                Some(Received::Frame(frame)) => self.queue.push_back(frame),
                None => return Err(silence("the end of the pipe", wait)),
            }
        }
    }

    async fn read_until(&mut self, until: Instant) -> Verdict<Option<Received>> {
        loop {
            if let Some(frame) = self.cut()? {
                self.wire
                    .transcript
                    .binary(self.name, Direction::Received, "frame", &frame.body);
                self.history.push(frame.clone());
                return Ok(Some(Received::Frame(frame)));
            }
            let left: Duration = until.saturating_duration_since(Instant::now());
            match timeout(left, self.reader.read_buf(&mut self.buffer)).await {
                Err(_) => return Ok(None),
                Ok(Ok(0) | Err(_)) => {
                    self.wire
                        .transcript
                        .text(self.name, Direction::Received, "end", "");
                    self.ended = true;
                    return check(
                        self.buffer.is_empty(),
                        "AGX-PIPE-003",
                        "whole frames before the end of the pipe",
                        format_args!("left over: {}", shorten(&self.buffer)),
                    )
                    .map(|()| Some(Received::End));
                }
                Ok(Ok(_)) => {}
            }
        }
    }

    fn cut(&mut self) -> Verdict<Option<Frame>> {
        let Some(head) = self.buffer.first_chunk::<4>() else {
            return Ok(None);
        };
        let len = u32::from_le_bytes(*head) as usize;
        check(
            len <= MAX_BODY_BYTES,
            "AGX-PIPE-002",
            "frames of at most 268435456 bytes",
            format_args!("a length of {len}: {}", shorten(&self.buffer)),
        )?;
        if self.buffer.len() < 4 + len {
            return Ok(None);
        }
        let _ = self.buffer.split_to(4);
        let body = self.buffer.split_to(len).freeze();
        match kind(&body) {
            Some(kind) => Ok(Some(Frame { kind, body })),
            None => fail("AGX-PIPE-020", "a map with a str `type`", shorten(&body)),
        }
    }
}

/// A body with its length before it.
pub(crate) fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

impl Frame {
    fn is_terminal_of(&self, id: &str) -> bool {
        matches!(&*self.kind, "result" | "error")
            && Msgpack::decode(&self.body)
                .is_ok_and(|body| body.field("call_id").and_then(Msgpack::as_str) == Some(id))
    }
}

/// The `type` of a frame. It comes first; looking at the bytes also works for data that the codec refuses.
fn kind(body: &[u8]) -> Option<String> {
    let tag = body
        .get(1..)
        .and_then(|rest| rest.strip_prefix(b"\xa4type"));
    if let Some([head @ 0xa0..=0xbf, rest @ ..]) = tag {
        let name = rest.get(..usize::from(head & 0x1f))?;
        return String::from_utf8(name.to_vec()).ok();
    }
    let body = Msgpack::decode(body).ok()?;
    body.field("type")
        .and_then(Msgpack::as_str)
        .map(str::to_owned)
}
