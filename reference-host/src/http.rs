//! The short HTTP path: `GET /health` and `POST /call` over connections that are kept alive.

use std::error::Error as _;
use std::fmt::Write as _;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agentix_protocol::http::{CallReply, Health, Prefer};
use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::message::Call;
use agentix_protocol::names::http::{MSGPACK, PREFER, SID_HEADER};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::rt::Executor;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{ConnectError, Stranger};
use crate::url::RuntimeUrl;

/// Largest body of `/health`.
const MAX_HEALTH_BYTES: usize = 64 * 1024;
/// Largest body of `/call`: a message and what wraps it.
const MAX_REPLY_BYTES: usize = MAX_MESSAGE_BYTES + 64 * 1024;
/// What a runtime may take beyond the wait that it was given.
const GRACE: Duration = Duration::from_secs(30);
/// Slowest transfer that is waited for, in bytes a second.
const SLOWEST: u64 = 64 * 1024;

/// HTTP to one runtime.
pub(crate) struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    tasks: Tasks,
    url: RuntimeUrl,
    call_uri: Uri,
    health_uri: Uri,
}

/// How a `POST /call` went.
#[derive(Debug)]
pub(crate) enum Posted {
    /// An answer of the protocol.
    Answered(CallReply),
    /// None. `maybe_accepted` is false when the runtime certainly did not take the call.
    Failed {
        maybe_accepted: bool,
        reason: String,
    },
}

impl Http {
    pub(crate) fn new(url: &RuntimeUrl, connect_timeout: Duration) -> Result<Self, ConnectError> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(connect_timeout));
        let tasks = Tasks::default();
        Ok(Self {
            client: Client::builder(tasks.clone()).build(connector),
            tasks,
            url: url.clone(),
            call_uri: url.call()?,
            health_uri: url.health()?,
        })
    }

    /// `GET /health`. It takes as long as the peer takes.
    pub(crate) async fn health(&self) -> Result<Health, ConnectError> {
        if self.tasks.is_closed() {
            return Err(ConnectError::Closed);
        }
        let stranger = |found| ConnectError::NotARuntime {
            url: self.url.clone(),
            found,
        };
        let response = self
            .client
            .get(self.health_uri.clone())
            .await
            .map_err(|error| self.failure(&error))?;
        if response.status() != StatusCode::OK {
            return Err(stranger(Stranger::HealthStatus(response.status().as_u16())));
        }
        let body = read_body(response, MAX_HEALTH_BYTES)
            .await
            .map_err(|reason| stranger(Stranger::HealthBody(reason)))?;
        serde_json::from_slice(&body)
            .map_err(|error| stranger(Stranger::HealthBody(error.to_string())))
    }

    fn failure(&self, error: &ClientError) -> ConnectError {
        if error.is_connect() {
            let mut source = error.source();
            while let Some(inner) = source {
                if let Some(inner) = inner.downcast_ref::<std::io::Error>() {
                    return ConnectError::Unreachable {
                        url: self.url.clone(),
                        source: std::io::Error::new(inner.kind(), inner.to_string()),
                    };
                }
                source = inner.source();
            }
        }
        ConnectError::NotARuntime {
            url: self.url.clone(),
            found: Stranger::NotHttp(chain(error)),
        }
    }

    /// `POST /call`. Ends within the wait, a grace of 30 s, and the time of a slow
    /// transfer.
    pub(crate) async fn post(&self, call: &Call, sid: &str, wait: Duration) -> Posted {
        let body = call.encode();
        let limit = wait
            .saturating_add(GRACE)
            .saturating_add(transfer_time(body.len()));
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.call_uri.clone();
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MSGPACK));
        if let Ok(prefer) = HeaderValue::from_str(&Prefer { wait }.to_string()) {
            headers.insert(PREFER, prefer);
        }
        // A sid that no header can hold was made by no runtime; without it the outcome of a call
        // that runs on goes to every host, this one included.
        if let Ok(sid) = HeaderValue::from_str(sid) {
            headers.insert(SID_HEADER, sid);
        }
        let response = match timeout(limit, self.client.request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return Posted::Failed {
                    maybe_accepted: !error.is_connect(),
                    reason: chain(&error),
                };
            }
            Err(_) => {
                return Posted::Failed {
                    maybe_accepted: true,
                    reason: format!("no answer within {limit:?}"),
                };
            }
        };
        let status = response.status();
        let failed = |reason| Posted::Failed {
            // A client error says that the request was not taken (AGX-HTTP-052).
            maybe_accepted: !status.is_client_error(),
            reason,
        };
        match read_body(response, MAX_REPLY_BYTES).await {
            Ok(body) => match CallReply::decode(status.as_u16(), &body) {
                Ok(reply) => Posted::Answered(reply),
                Err(error) => failed(error.to_string()),
            },
            Err(reason) => failed(reason),
        }
    }

    /// Ends every connection, and waits for their tasks.
    pub(crate) async fn close(&self) {
        self.tasks.close().await;
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // The connections hold the executor that holds their tasks.
        drop(self.tasks.take());
    }
}

/// Reads a body of at most `limit` bytes, which has the grace time and more for what has come.
async fn read_body(response: Response<Incoming>, limit: usize) -> Result<Bytes, String> {
    let mut body = response.into_body();
    let mut whole = BytesMut::new();
    let start = Instant::now();
    loop {
        let until = start + GRACE + transfer_time(whole.len());
        let frame = match timeout_at(until, body.frame()).await {
            Ok(Some(frame)) => frame.map_err(|error| chain(&error))?,
            Ok(None) => break,
            Err(_) => return Err(format!("the body stands still after {} bytes", whole.len())),
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.len() + data.len() > limit {
            return Err(format!("the body is longer than {limit} bytes"));
        }
        if whole.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// What `len` bytes may take.
fn transfer_time(len: usize) -> Duration {
    Duration::from_secs(len as u64 / SLOWEST)
}

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let _ = write!(text, ": {inner}");
        source = inner.source();
    }
    text
}

/// The tasks of the HTTP connections: owned here, so that none outlives the client.
#[derive(Clone)]
struct Tasks(Arc<Mutex<Option<JoinSet<()>>>>);

impl Default for Tasks {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some(JoinSet::new()))))
    }
}

impl Tasks {
    fn take(&self) -> Option<JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_closed(&self) -> bool {
        let set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        set.is_none()
    }

    async fn close(&self) {
        if let Some(mut set) = self.take() {
            set.shutdown().await;
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = set.as_mut() {
            while set.try_join_next().is_some() {}
            set.spawn(task);
        }
    }
}
