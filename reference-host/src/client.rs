//! The client: calls, and what awaits them.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agentix_protocol::error::RemoteError;
use agentix_protocol::http::Health;
use agentix_protocol::ident::CallId;
use agentix_protocol::message::Call;
use agentix_protocol::remote::{self, RemoteFn};
use agentix_protocol::safepickle::{self, Decoder, Document, Protocol};
use agentix_protocol::target::CallTarget;
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::config::ClientConfig;
use crate::driver::{Command, Dialer, Driver, Reply};
use crate::error::{CallError, ConnectError};
use crate::http::Http;
use crate::json::Arguments;
use crate::transport::connection::timed_out;
use crate::url::RuntimeUrl;

/// A client of one runtime: calls functions inside its sandbox.
///
/// One connection serves any number of calls at a time; share the client by reference or in an
/// `Arc`. The futures of calls borrow nothing and may be spawned.
///
/// - A call starts when its future is first polled. **Dropping the future cancels the call**
///   (AGX-CALL-058), so a limit for one call is `tokio::time::timeout` around it.
/// - A lost connection ends no call: the client connects again and resumes what it awaits, as
///   [`Reconnect`](crate::Reconnect) says.
/// - [`RuntimeClient::close`] cancels what is left and leaves nothing running. Dropping the client
///   without it stops everything at once, and cancels may then not get out.
///
/// # Example
///
/// ```no_run
/// use std::collections::BTreeMap;
/// use agentix_reference_host::{CallError, ClientConfig, RuntimeClient};
///
/// agentix_protocol::remote! {
///     /// In app.py: `async def run(input: str) -> dict[str, str]`
///     pub fn run(input: String) -> BTreeMap<String, String> = "app::run";
/// }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = RuntimeClient::connect("http://127.0.0.1:8000", ClientConfig::default()).await?;
///
/// // What the function raises is an error like any other: the form for `?`.
/// let output = client.remote(run { input: "hello".into() }).await?;
/// assert_eq!(output["output"], "HELLO");
///
/// // What the function raises is a value to branch on.
/// match client.try_remote(run { input: "hello".into() }).await? {
///     Ok(output) => println!("{output:?}"),
///     Err(raised) if raised.error_type.as_str() == "ValueError" => println!("{}", raised.message),
///     Err(raised) => return Err(raised.into()),
/// }
///
/// client.close().await;
/// # Ok(())
/// # }
/// ```
pub struct RuntimeClient {
    commands: mpsc::UnboundedSender<Command>,
    task: Mutex<Option<JoinHandle<()>>>,
    http: Arc<Http>,
    url: RuntimeUrl,
    connect_timeout: Duration,
    call_deadline: Option<Duration>,
    decoder: Decoder,
}

impl RuntimeClient {
    /// Connects to a runtime: reads its `/health`, opens the connection, joins `/rpc`. All of it
    /// within [`ClientConfig::connect_timeout`].
    ///
    /// # Errors
    ///
    /// [`ConnectError`] when the URL is not one of a runtime, nothing answers there, what answers
    /// is no runtime or speaks another version of the protocol, or it takes too long. No attempt is
    /// repeated.
    pub async fn connect(url: &str, config: ClientConfig) -> Result<Self, ConnectError> {
        let url: RuntimeUrl = url.parse()?;
        let http = Arc::new(Http::new(&url, config.connect_timeout)?);
        let dialer = Dialer {
            url: url.clone(),
            http: Arc::clone(&http),
            limit: config.connect_timeout,
        };
        let connected = dialer.connect().await?;
        let (commands, inbox) = mpsc::unbounded_channel();
        let driver = Driver::new(dialer, &config, connected, inbox);
        Ok(Self {
            commands,
            task: Mutex::new(Some(tokio::spawn(driver.run()))),
            http,
            url,
            connect_timeout: config.connect_timeout,
            call_deadline: config.call_deadline,
            decoder: Decoder::new(config.decode_policy, config.decode_limits),
        })
    }

    /// Where the runtime is.
    #[must_use]
    pub fn url(&self) -> &RuntimeUrl {
        &self.url
    }

    /// Asks the runtime how it is, within [`ClientConfig::connect_timeout`].
    ///
    /// # Errors
    ///
    /// [`ConnectError`] when it does not answer as a runtime does, or the client is closed.
    pub async fn health(&self) -> Result<Health, ConnectError> {
        timeout(self.connect_timeout, self.http.health())
            .await
            .unwrap_or_else(|_| Err(timed_out(&self.url, self.connect_timeout)))
    }

    /// Calls a declared function and returns what it returned.
    ///
    /// The form for `?`: what the function raised is [`CallError::Remote`], beside everything else
    /// that can go wrong. It is Python's `client.remote(...)`, which raises.
    ///
    /// The result is decoded under [`ClientConfig::decode_policy`] into the declared type.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub fn remote<F: RemoteFn<Output: Send> + Send>(
        &self,
        call: F,
    ) -> impl Future<Output = Result<F::Output, CallError>> + Send + use<F> {
        let caller = self.caller();
        let decoder = self.decoder.clone();
        async move {
            let target = F::target()?;
            let arguments = remote::encode_arguments(&call)?;
            drop(call);
            let value = caller.call(&target, arguments.into()).await?;
            let document = decoder.decode(&value)?;
            Ok(safepickle::from_value(document.root())?)
        }
    }

    /// Calls a declared function; what the function raised is a value.
    ///
    /// The form for callers that branch on the outcome: the inner result is the function's, the
    /// outer one tells what went wrong around it (no connection, a refused result, a deadline). A
    /// call that was cancelled, or whose worker died, is an inner error as well: the sandbox
    /// answered, with [`RemoteError::cancelled`] or a [`RemoteError::returncode`].
    ///
    /// # Errors
    ///
    /// Any [`CallError`] but [`CallError::Remote`].
    pub fn try_remote<F: RemoteFn<Output: Send> + Send>(
        &self,
        call: F,
    ) -> impl Future<Output = Result<Result<F::Output, RemoteError>, CallError>> + Send + use<F>
    {
        let call = self.remote(call);
        async move {
            match call.await {
                Ok(output) => Ok(Ok(output)),
                Err(CallError::Remote(error)) => Ok(Err(error)),
                Err(error) => Err(error),
            }
        }
    }

    /// Calls a function with arguments that are pickled already, and returns the pickled value.
    ///
    /// For tools that pass bytes on. `arguments` is the pickle of a pair of a tuple and a dict with
    /// `str` keys (AGX-RPC-010). The value is untrusted: decode it with
    /// [`safepickle`], never with Python's own `pickle`.
    ///
    /// # Errors
    ///
    /// [`CallError`], except those about encoding and decoding.
    pub fn call_raw(
        &self,
        target: &CallTarget,
        arguments: Bytes,
    ) -> impl Future<Output = Result<Bytes, CallError>> + Send + use<> {
        let caller = self.caller();
        let target = target.clone();
        async move { caller.call(&target, arguments).await }
    }

    /// Calls a function with arguments in JSON, and returns the decoded value, whatever its type.
    ///
    /// For tools that learn target and arguments at run time; [`crate::json`] tells how JSON
    /// becomes Python values, and turns the result into JSON.
    ///
    /// # Errors
    ///
    /// [`CallError`], except [`CallError::Type`].
    pub fn call_value(
        &self,
        target: &CallTarget,
        args: Vec<Value>,
        kwargs: Map<String, Value>,
    ) -> impl Future<Output = Result<Document<'static>, CallError>> + Send + use<> {
        let caller = self.caller();
        let decoder = self.decoder.clone();
        let target = target.clone();
        async move {
            let arguments = safepickle::to_vec(&Arguments(&args, &kwargs), Protocol::DEFAULT)?;
            drop((args, kwargs));
            let value = caller.call(&target, arguments.into()).await?;
            Ok(decoder.decode(&value)?.into_owned())
        }
    }

    /// Cancels the calls that have no outcome, which then end with [`CallError::Closed`], leaves
    /// the runtime, and waits until nothing of this client runs any more: some seconds at most.
    /// Closing twice is closing once.
    pub async fn close(&self) {
        let _ = self.commands.send(Command::Close);
        let task = {
            let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            task.take()
        };
        match task {
            Some(task) => {
                if let Err(error) = task.await
                    && error.is_panic()
                {
                    tracing::error!(%error, "the task of the client panicked");
                }
            }
            None => self.commands.closed().await,
        }
    }

    fn caller(&self) -> Caller {
        Caller {
            commands: self.commands.clone(),
            deadline: self.call_deadline,
        }
    }
}

impl Drop for RuntimeClient {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}

impl fmt::Debug for RuntimeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeClient")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Reads `/health` of a runtime without connecting to it, within `limit`.
///
/// # Errors
///
/// [`ConnectError`] when the URL is not one of a runtime, nothing answers there, or what answers is
/// no runtime. A runtime of another version is no error here; see [`Health::peer`].
pub async fn health(url: &str, limit: Duration) -> Result<Health, ConnectError> {
    let url: RuntimeUrl = url.parse()?;
    let http = Http::new(&url, limit)?;
    let health = timeout(limit, http.health())
        .await
        .unwrap_or_else(|_| Err(timed_out(&url, limit)));
    http.close().await;
    health
}

/// Makes calls; what a future of a call takes along.
struct Caller {
    commands: mpsc::UnboundedSender<Command>,
    deadline: Option<Duration>,
}

impl Caller {
    async fn call(self, target: &CallTarget, arguments: Bytes) -> Reply {
        let call = Call {
            call_id: random_id()?,
            callable: target.as_str().to_owned(),
            arguments,
            context: None,
        };
        let (reply, outcome) = oneshot::channel();
        let mut pending = Pending {
            id: call.call_id.clone(),
            outcome: Some(outcome),
            commands: self.commands,
        };
        if pending.commands.send(Command::Call(call, reply)).is_err() {
            pending.outcome = None;
            return Err(CallError::Closed);
        }
        match self.deadline {
            None => pending.outcome().await,
            Some(after) => timeout(after, pending.outcome())
                .await
                .unwrap_or(Err(CallError::DeadlineExceeded { after })),
        }
    }
}

fn random_id() -> Result<CallId, CallError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| CallError::Entropy(error.to_string()))?;
    Ok(CallId::from_random(u128::from_ne_bytes(bits)))
}

/// A call that is under way. Dropping it cancels the call.
struct Pending {
    id: CallId,
    /// `None` once the outcome is there.
    outcome: Option<oneshot::Receiver<Reply>>,
    commands: mpsc::UnboundedSender<Command>,
}

impl Pending {
    async fn outcome(&mut self) -> Reply {
        let Some(outcome) = self.outcome.as_mut() else {
            return Err(CallError::Closed);
        };
        let reply = outcome.await;
        self.outcome = None;
        // The task of the client is gone, and with it the sender.
        reply.unwrap_or(Err(CallError::Closed))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // The receiver goes first: a call that the driver has not seen yet is then skipped, and a
        // cancel can never come before its call.
        if self.outcome.take().is_some() {
            let _ = self.commands.send(Command::Cancel(self.id.clone()));
        }
    }
}
