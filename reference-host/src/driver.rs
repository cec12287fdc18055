//! The one task of a client: it owns the call table and the connection, and moves what either
//! says to the other. Rules about calls are in [`HostCalls`], not here.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agentix_protocol::event::HostEvent;
use agentix_protocol::host::{CallFailure, HostCalls, HostOutput};
use agentix_protocol::http::Peer;
use agentix_protocol::ident::{CallId, Namespace};
use agentix_protocol::message::Call;
use agentix_protocol::packet::{Event, Payload};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Sleep, sleep, timeout};

use crate::config::{Backoff, ClientConfig};
use crate::error::{CallError, ConnectError, LinkError};
use crate::http::{Http, Posted};
use crate::transport::connection::{dial, timed_out};
use crate::transport::{Connection, Incoming};
use crate::url::RuntimeUrl;

/// Time for the last events and the close of a connection.
const LEAVING: Duration = Duration::from_secs(2);

/// Most calls on the short path at a time, each on a TCP connection of its own. Calls beyond go over
/// `/rpc`, which takes any number: a burst must not use up the file descriptors of the process.
const MAX_POSTS: usize = 64;

/// What the handles of a client ask of its task.
pub(crate) enum Command {
    /// Make a call.
    Call(Call, oneshot::Sender<Reply>),
    /// Nobody awaits this call any more.
    Cancel(CallId),
    /// Leave.
    Close,
}

/// A pickled value, or why there is none.
pub(crate) type Reply = Result<Bytes, CallError>;

/// Makes connections to one runtime.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) url: RuntimeUrl,
    pub(crate) http: Arc<Http>,
    pub(crate) limit: Duration,
}

impl Dialer {
    /// One attempt: reach it, see what it is, join `/rpc`.
    pub(crate) async fn connect(&self) -> Result<(Connection, Peer), ConnectError> {
        let steps = async {
            // First, because its error says best why nothing answers.
            let stream = dial(&self.url).await?;
            let health = self.http.health().await?;
            let peer = health.peer().map_err(|source| ConnectError::Incompatible {
                url: self.url.clone(),
                source,
            })?;
            let connection = Connection::over(stream, &self.url, &[Namespace::rpc()]).await?;
            Ok((connection, peer))
        };
        timeout(self.limit, steps)
            .await
            .unwrap_or_else(|_| Err(timed_out(&self.url, self.limit)))
    }
}

type Dialing = Pin<Box<dyn Future<Output = Result<(Connection, Peer), ConnectError>> + Send>>;

enum Link {
    Up(Box<Connection>),
    /// Waiting to try again.
    Resting(Pin<Box<Sleep>>),
    Dialing(Dialing),
    /// No further attempt; why the last one failed.
    Gone(Arc<ConnectError>),
}

enum LinkEvent {
    Incoming(Incoming),
    Lost(LinkError),
    Rested,
    Dialed(Box<Result<(Connection, Peer), ConnectError>>),
}

impl Link {
    /// Dropping the future loses nothing.
    async fn next(&mut self) -> LinkEvent {
        match self {
            Self::Up(connection) => match connection.next().await {
                Ok(incoming) => LinkEvent::Incoming(incoming),
                Err(error) => LinkEvent::Lost(error),
            },
            Self::Resting(sleep) => {
                sleep.await;
                LinkEvent::Rested
            }
            Self::Dialing(dialing) => LinkEvent::Dialed(Box::new(dialing.await)),
            Self::Gone(_) => pending().await,
        }
    }
}

/// Someone who awaits a call.
struct Waiting {
    reply: oneshot::Sender<Reply>,
    /// Number of the Socket.IO ack that is asked for on the present connection.
    ack: Option<u64>,
}

type Posting = Pin<Box<dyn Future<Output = (CallId, Posted)> + Send>>;

pub(crate) struct Driver {
    calls: HostCalls,
    waiting: HashMap<CallId, Waiting>,
    /// Acks that are due on the present connection.
    acks: HashMap<u64, CallId>,
    link: Link,
    posts: FuturesUnordered<Posting>,
    commands: mpsc::UnboundedReceiver<Command>,
    dialer: Dialer,
    backoff: Backoff,
    http_wait: Option<Duration>,
}

impl Driver {
    pub(crate) fn new(
        dialer: Dialer,
        config: &ClientConfig,
        (connection, peer): (Connection, Peer),
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        let mut calls = HostCalls::new(config.http_wait.is_some());
        calls.connected(peer);
        Self {
            calls,
            waiting: HashMap::new(),
            acks: HashMap::new(),
            link: Link::Up(Box::new(connection)),
            posts: FuturesUnordered::new(),
            commands,
            dialer,
            backoff: Backoff::new(config.reconnect),
            http_wait: config.http_wait,
        }
    }

    /// Runs until the client is closed or every handle is gone.
    pub(crate) async fn run(mut self) {
        loop {
            self.carry_out();
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(Command::Call(call, reply)) => self.call(call, reply),
                    Some(Command::Cancel(id)) => self.cancel(&id),
                    Some(Command::Close) | None => break,
                },
                event = self.link.next() => self.link_event(event),
                Some((id, posted)) = self.posts.next() => self.posted(&id, posted),
            }
        }
        self.leave().await;
    }

    fn call(&mut self, call: Call, reply: oneshot::Sender<Reply>) {
        // Dropped before it got here: its cancel may even have overtaken it.
        if reply.is_closed() {
            return;
        }
        let waiting = Waiting { reply, ack: None };
        self.waiting.insert(call.call_id.clone(), waiting);
        self.calls.call(call);
    }

    fn cancel(&mut self, id: &CallId) {
        self.forget(id);
        self.calls.cancel(id);
    }

    /// Lets go of what is kept for a call beside the table.
    fn forget(&mut self, id: &CallId) -> Option<oneshot::Sender<Reply>> {
        let waiting = self.waiting.remove(id)?;
        if let Some(ack) = waiting.ack {
            self.acks.remove(&ack);
        }
        Some(waiting.reply)
    }

    /// Does what the call table wants.
    fn carry_out(&mut self) {
        while let Some(output) = self.calls.poll_output() {
            match output {
                HostOutput::Emit { event, ask_ack } => {
                    let Link::Up(connection) = &mut self.link else {
                        continue;
                    };
                    let id = match &event {
                        HostEvent::Call(call) if ask_ack => Some(call.call_id.clone()),
                        _ => None,
                    };
                    let ack = connection.emit_rpc(event, ask_ack);
                    if let (Some(id), Some(ack)) = (id, ack)
                        && let Some(waiting) = self.waiting.get_mut(&id)
                    {
                        waiting.ack = Some(ack);
                        self.acks.insert(ack, id);
                    }
                }
                HostOutput::Post(call) => self.post(call),
                HostOutput::End(id, result) => {
                    let result = result.map_err(|failure| self.call_error(failure));
                    if let Some(reply) = self.forget(&id) {
                        // A caller that has left meanwhile needs no answer.
                        let _ = reply.send(result);
                    }
                }
            }
        }
    }

    fn post(&mut self, call: Call) {
        if self.posts.len() >= MAX_POSTS {
            self.calls.http_failed(&call.call_id, false);
            return;
        }
        let http = Arc::clone(&self.dialer.http);
        let wait = self.http_wait.unwrap_or_default();
        let sid = match &self.link {
            Link::Up(connection) => connection.sid(&Namespace::rpc()).unwrap_or_default(),
            _ => "",
        };
        let sid = sid.to_owned();
        self.posts.push(Box::pin(async move {
            let posted = http.post(&call, &sid, wait).await;
            (call.call_id, posted)
        }));
    }

    fn posted(&mut self, id: &CallId, posted: Posted) {
        match posted {
            Posted::Answered(reply) => self.calls.http_reply(id, reply),
            Posted::Failed {
                maybe_accepted,
                reason,
            } => {
                tracing::debug!(%id, reason, "POST /call failed, going on over /rpc");
                self.calls.http_failed(id, maybe_accepted);
            }
        }
    }

    fn call_error(&self, failure: CallFailure) -> CallError {
        match failure {
            CallFailure::Remote(error) => CallError::Remote(error),
            CallFailure::PayloadTooLarge { len, limit } => {
                CallError::PayloadTooLarge { len, limit }
            }
            CallFailure::Malformed { reason } => CallError::Malformed { reason },
            CallFailure::Disconnected => match &self.link {
                Link::Gone(source) => CallError::Disconnected {
                    source: Arc::clone(source),
                },
                _ => CallError::Closed,
            },
            _ => CallError::Closed,
        }
    }

    fn link_event(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Incoming(incoming) => self.incoming(incoming),
            LinkEvent::Lost(error) => self.lost(error),
            LinkEvent::Rested => {
                let dialer = self.dialer.clone();
                self.link = Link::Dialing(Box::pin(async move { dialer.connect().await }));
            }
            LinkEvent::Dialed(result) => match *result {
                Ok((connection, peer)) => {
                    tracing::info!(url = %self.dialer.url, "connected again");
                    self.link = Link::Up(Box::new(connection));
                    self.calls.connected(peer);
                }
                Err(error) => self.try_again(error),
            },
        }
    }

    fn incoming(&mut self, incoming: Incoming) {
        // Anything at all proves the connection; see `Reconnect::attempts`.
        self.backoff.reset();
        match incoming {
            Incoming::Event(event) => self.event(&event),
            Incoming::Ack { namespace, id } if namespace == Namespace::rpc() => {
                if let Some(call) = self.acks.remove(&id) {
                    self.calls.acked(&call);
                }
            }
            Incoming::Left(namespace) if namespace == Namespace::rpc() => {
                self.lost(LinkError::Left);
            }
            Incoming::Ack { .. } | Incoming::Left(_) | Incoming::Ping => {}
        }
    }

    fn event(&mut self, event: &Event) {
        if event.namespace != Namespace::rpc() {
            return;
        }
        match &event.payload {
            Payload::Binary(payload) => {
                if let Err(error) = self.calls.event(&event.name, payload) {
                    tracing::debug!(event = event.name, %error, "ignoring an event of /rpc");
                }
            }
            Payload::Json(_) => {
                tracing::warn!(
                    event = event.name,
                    "ignoring an event of /rpc without payload"
                );
            }
        }
    }

    fn lost(&mut self, source: LinkError) {
        self.acks.clear();
        for waiting in self.waiting.values_mut() {
            waiting.ack = None;
        }
        self.calls.disconnected();
        self.try_again(ConnectError::Lost {
            url: self.dialer.url.clone(),
            source,
        });
    }

    fn try_again(&mut self, error: ConnectError) {
        // Another version of the protocol does not go away by waiting.
        let is_final = matches!(error, ConnectError::Incompatible { .. });
        let delay = self.backoff.next(fastrand::f64()).filter(|_| !is_final);
        if let Some(delay) = delay {
            tracing::warn!(%error, ?delay, "connecting again");
            self.link = Link::Resting(Box::pin(sleep(delay)));
        } else {
            self.link = Link::Gone(Arc::new(error));
            self.calls.gone();
        }
    }

    /// Cancels what has no outcome, and leaves.
    async fn leave(mut self) {
        self.calls.close();
        self.carry_out();
        // Answers that are on their way have nobody to go to.
        self.posts.clear();
        if let Link::Up(connection) = self.link {
            connection.close(LEAVING).await;
        }
        self.dialer.http.close().await;
    }
}
