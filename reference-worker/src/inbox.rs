//! What the driver is told, in order.

use std::sync::Arc;

use agentix_protocol::event::RuntimeEvent;
use agentix_protocol::framing::FrameTooLong;
use agentix_protocol::http::{CallReply, Prefer};
use agentix_protocol::ident::{CallId, Namespace};
use agentix_protocol::link::{Exit, Generation};
use agentix_protocol::packet::Event;
use agentix_protocol::runtime::{ConnId, HttpId};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::backlog::Backlog;
use crate::session::{Session, SessionId};

/// Messages with a payload that may wait for the driver. It only moves bytes, so few suffice.
const ROOM: usize = 16;

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// A host joins a namespace, or asks for its sid again.
    Join {
        session: Arc<Session>,
        conn: ConnId,
        namespace: Namespace,
    },
    /// A host left a namespace.
    Leave(ConnId),
    /// A host sent an event on a namespace that it joined.
    Event { conn: ConnId, event: Event },
    /// A session ended.
    SessionClosed(SessionId),
    /// A `POST /call` came.
    Http {
        http: HttpId,
        body: Bytes,
        prefer: Prefer,
        owner_sid: Option<String>,
        reply: oneshot::Sender<(CallReply, Prefer)>,
    },
    /// Its caller is gone.
    HttpGone(HttpId),
    /// The answer with the outcome of this call was not taken.
    Undelivered(CallId),
    /// A host's queue has come to an outcome that the call table holds.
    Fetch(CallId, oneshot::Sender<RuntimeEvent>),
    /// A worker sent a frame.
    Frame(Generation, Bytes),
    /// A worker's stream cannot be followed.
    PipeLost(Generation, FrameTooLong),
    /// A worker's stream ended.
    EndOfStream(Generation),
    /// A worker's process ended, and with it its process group.
    Exited(Generation, Exit),
    /// Stop the worker, and say when it is gone.
    Shutdown(oneshot::Sender<()>),
}

/// The sending end, for whoever has something to tell.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    inputs: mpsc::UnboundedSender<(Input, Option<OwnedSemaphorePermit>)>,
    room: Arc<Semaphore>,
    /// What waits for the worker.
    pub(crate) backlog: Backlog,
}

/// The driver's end.
#[derive(Debug)]
pub(crate) struct Inputs(mpsc::UnboundedReceiver<(Input, Option<OwnedSemaphorePermit>)>);

/// Both ends.
pub(crate) fn channel() -> (Inbox, Inputs) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let inbox = Inbox {
        inputs: sender,
        room: Arc::new(Semaphore::new(ROOM)),
        backlog: Backlog::new(),
    };
    (inbox, Inputs(receiver))
}

impl Inbox {
    /// Tells something that may carry a payload; waits while the driver is behind.
    pub(crate) async fn data(&self, input: Input) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.room).acquire_owned().await.ok();
        self.send(input, permit);
    }

    /// Tells something small.
    pub(crate) fn control(&self, input: Input) {
        self.send(input, None);
    }

    /// Asks for the outcome of a call, for a host whose queue has come to it; `None` when there is
    /// no driver any more.
    pub(crate) async fn fetch(&self, id: CallId) -> Option<RuntimeEvent> {
        let (sender, receiver) = oneshot::channel();
        self.control(Input::Fetch(id, sender));
        receiver.await.ok()
    }

    fn send(&self, input: Input, permit: Option<OwnedSemaphorePermit>) {
        // Without a driver the runtime has ended, and nobody is left to be told.
        let _ = self.inputs.send((input, permit));
    }
}

impl Inputs {
    pub(crate) async fn next(&mut self) -> Option<Input> {
        // The permit goes back when the driver takes the message.
        self.0.recv().await.map(|(input, _permit)| input)
    }
}
