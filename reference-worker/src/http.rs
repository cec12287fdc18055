//! The routes of the runtime's port.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::http::{self as wire, BadCallBody, CallReply, Health, Prefer};
use agentix_protocol::ident::CallId;
use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::names::http as names;
use agentix_protocol::packet::MAX_HEADER_BYTES;
use agentix_protocol::runtime::HttpId;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::sync::{mpsc, oneshot, watch};

use crate::body::{self, NoBody, Pieces};
use crate::inbox::{Inbox, Input};
use crate::polling;
use crate::session::{Session, Sessions};
use crate::websocket;

/// Largest body of a polling POST: an attachment of the largest size in base64, and headers.
const MAX_POST_BYTES: usize = MAX_MESSAGE_BYTES.div_ceil(3) * 4 + MAX_HEADER_BYTES;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const MSGPACK: HeaderValue = HeaderValue::from_static(names::MSGPACK);
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=UTF-8");

/// A WebSocket that a connection turns into once its 101 is sent.
pub(crate) struct Upgrade {
    pub(crate) on: hyper::upgrade::OnUpgrade,
    pub(crate) session: Arc<Session>,
    /// The open packet of a new session; none where a polling session moves.
    pub(crate) open: Option<String>,
}

/// Answers requests; one for all connections.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) sessions: Sessions,
    pub(crate) inbox: Inbox,
    next: AtomicU64,
    shut_down: watch::Sender<bool>,
}

impl Routes {
    pub(crate) fn new(sessions: Sessions, inbox: Inbox) -> Self {
        Self {
            sessions,
            inbox,
            next: AtomicU64::new(1),
            shut_down: watch::Sender::new(false),
        }
    }

    /// Connections end once their request is answered.
    pub(crate) fn shut_down(&self) {
        self.shut_down.send_replace(true);
    }

    /// Waits for [`Routes::shut_down`].
    pub(crate) fn is_shut_down(&self) -> impl Future<Output = ()> + use<> {
        let mut receiver = self.shut_down.subscribe();
        async move {
            // Without a sender nobody answers any more either.
            let _ = receiver.wait_for(|shut_down| *shut_down).await;
        }
    }

    /// Answers one request. Where it is an upgrade, `upgrades` gets what comes of it.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        upgrades: mpsc::UnboundedSender<Upgrade>,
    ) -> Result<Response<Pieces>, Infallible> {
        let path = request.uri().path();
        let method = request.method().clone();
        Ok(match path {
            names::HEALTH_PATH if method == Method::GET => health(),
            names::CALL_PATH if method == Method::POST => self.call(request).await,
            names::HEALTH_PATH => not_allowed("GET"),
            names::CALL_PATH => not_allowed("POST"),
            path if path.trim_end_matches('/') == names::ENGINE_PATH.trim_end_matches('/') => {
                self.engine(request, upgrades).await
            }
            _ => plain(StatusCode::NOT_FOUND, "no such path"),
        })
    }

    async fn call(&self, request: Request<Incoming>) -> Response<Pieces> {
        let (parts, body) = request.into_parts();
        let text = |name: &str| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let prefer = Prefer::parse(text(names::PREFER).unwrap_or_default());
        let owner_sid = text(names::SID_HEADER).map(str::to_owned);
        let expects = expects_continue(&parts.headers);
        let body = match body::read(body, expects, MAX_MESSAGE_BYTES, || {}).await {
            Ok(body) => body,
            Err(error @ NoBody::TooLarge { .. }) => {
                let error = RemoteError::new(ErrorType::PayloadTooLarge, error.to_string());
                return reply(&CallReply::TooLarge(error), prefer, None);
            }
            // Nobody is there to read an answer.
            Err(NoBody::Lost(_) | NoBody::Stalled) => {
                return plain(StatusCode::BAD_REQUEST, "no whole body");
            }
        };
        let call_id = match wire::decode_call(&body) {
            Ok(call) => Some(call.call_id),
            Err(BadCallBody::Call(bad)) => bad.call_id,
            Err(_) => None,
        };
        let http = HttpId(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        let mut waiting = Waiting {
            inbox: self.inbox.clone(),
            http,
            call_id: call_id.clone(),
            receiver,
            over: false,
        };
        self.inbox.backlog.room().await;
        self.inbox
            .data(Input::Http {
                http,
                body,
                prefer,
                owner_sid,
                reply: sender,
            })
            .await;
        let answer = (&mut waiting.receiver).await;
        waiting.over = true;
        match answer {
            Ok((answer, prefer)) => {
                let undelivered = match &answer {
                    CallReply::Done(_) => call_id.map(|id| (self.inbox.clone(), id)),
                    _ => None,
                };
                reply(&answer, prefer, undelivered)
            }
            Err(_) => plain(StatusCode::SERVICE_UNAVAILABLE, "the runtime has shut down"),
        }
    }

    async fn engine(
        &self,
        request: Request<Incoming>,
        upgrades: mpsc::UnboundedSender<Upgrade>,
    ) -> Response<Pieces> {
        let query = request.uri().query().unwrap_or_default();
        // The first of a name counts; others and unknown names are ignored.
        let parameter = |name: &str| {
            query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
        };
        if parameter("EIO") != Some("4") {
            return refusal(5, "Unsupported protocol version");
        }
        let session = match parameter("sid") {
            None => None,
            Some(sid) => match self.sessions.find(sid) {
                Some(session) => Some(session),
                None => return refusal(1, "Session ID unknown"),
            },
        };
        match (parameter("transport"), request.method(), session) {
            (Some("websocket"), &Method::GET, session) => {
                self.websocket(request, session, &upgrades)
            }
            (Some("polling"), &Method::GET, None) => match self.sessions.open(false) {
                Some((_, open)) => response(StatusCode::OK, TEXT, Pieces::new(open)),
                None => plain(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the runtime is shutting down",
                ),
            },
            (Some("polling"), &Method::GET, Some(session)) => {
                session.received();
                let body = polling::poll(&session, &self.inbox).await;
                response(StatusCode::OK, TEXT, body)
            }
            (Some("polling"), &Method::POST, Some(session)) => {
                let expects = expects_continue(request.headers());
                let body = request.into_body();
                match body::read(body, expects, MAX_POST_BYTES, || session.received()).await {
                    Ok(body) => {
                        session.received();
                        polling::take(&session, &body).await;
                        response(StatusCode::OK, TEXT, Pieces::new("ok"))
                    }
                    Err(NoBody::TooLarge { .. }) => {
                        plain(StatusCode::PAYLOAD_TOO_LARGE, "too large")
                    }
                    Err(NoBody::Lost(_) | NoBody::Stalled) => {
                        plain(StatusCode::BAD_REQUEST, "no whole body")
                    }
                }
            }
            (Some("polling"), &Method::POST, None) => refusal(2, "Bad handshake method"),
            (Some("polling" | "websocket"), _, _) => not_allowed("GET, POST"),
            _ => refusal(0, "Transport unknown"),
        }
    }

    fn websocket(
        &self,
        mut request: Request<Incoming>,
        session: Option<Arc<Session>>,
        upgrades: &mpsc::UnboundedSender<Upgrade>,
    ) -> Response<Pieces> {
        let has = |name: HeaderName, token: &str| {
            request
                .headers()
                .get_all(name)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(','))
                .any(|part| part.trim().eq_ignore_ascii_case(token))
        };
        let wanted = has(header::UPGRADE, "websocket")
            && has(header::CONNECTION, "upgrade")
            && has(header::SEC_WEBSOCKET_VERSION, "13");
        let key = request.headers().get(header::SEC_WEBSOCKET_KEY);
        let (true, Some(key)) = (wanted, key) else {
            return refusal(3, "Bad request: no WebSocket handshake of version 13");
        };
        let accept = websocket::accept_key(key.as_bytes());
        let (session, open) = match session {
            Some(session) if session.is_upgraded() => {
                return refusal(3, "Bad request: the session is on a WebSocket already");
            }
            Some(session) => (session, None),
            None => match self.sessions.open(true) {
                Some((session, open)) => (session, Some(open)),
                None => {
                    return plain(
                        StatusCode::SERVICE_UNAVAILABLE,
                        "the runtime is shutting down",
                    );
                }
            },
        };
        session.received();
        let on = hyper::upgrade::on(&mut request);
        // The connection of this request waits for it.
        let _ = upgrades.send(Upgrade { on, session, open });
        let mut response = Response::new(Pieces::new(Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        if let Ok(accept) = HeaderValue::from_str(&accept) {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        }
        response
    }
}

/// A `POST /call` that waits for its answer; tells the driver when its caller goes away.
struct Waiting {
    inbox: Inbox,
    http: HttpId,
    call_id: Option<CallId>,
    receiver: oneshot::Receiver<(CallReply, Prefer)>,
    over: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.inbox.control(Input::HttpGone(self.http));
        // The answer may have been on its way.
        self.receiver.close();
        if let (Ok((CallReply::Done(_), _)), Some(id)) = (self.receiver.try_recv(), &self.call_id) {
            self.inbox.control(Input::Undelivered(id.clone()));
        }
    }
}

fn reply(
    reply: &CallReply,
    prefer: Prefer,
    undelivered: Option<(Inbox, CallId)>,
) -> Response<Pieces> {
    let mut body = Pieces::new(reply.encode());
    if let Some((inbox, id)) = undelivered {
        body = body.or_else(move || inbox.control(Input::Undelivered(id)));
    }
    let status = StatusCode::from_u16(reply.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = response(status, MSGPACK, body);
    if matches!(reply, CallReply::Done(_) | CallReply::Accepted(_))
        && let Ok(applied) = HeaderValue::from_str(&prefer.applied())
    {
        let name = HeaderName::from_static(names::PREFERENCE_APPLIED);
        response.headers_mut().insert(name, applied);
    }
    response
}

fn expects_continue(headers: &HeaderMap) -> bool {
    headers
        .get(header::EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

fn health() -> Response<Pieces> {
    let health = Health::healthy(env!("CARGO_PKG_VERSION"));
    let body = serde_json::to_vec(&health).unwrap_or_default();
    response(StatusCode::OK, JSON, Pieces::new(body))
}

/// Engine.IO's answer to a request that it cannot serve.
fn refusal(code: u8, message: &str) -> Response<Pieces> {
    let body = serde_json::json!({ "code": code, "message": message }).to_string();
    response(StatusCode::BAD_REQUEST, JSON, Pieces::new(body))
}

fn plain(status: StatusCode, text: &'static str) -> Response<Pieces> {
    response(status, TEXT, Pieces::new(text))
}

fn not_allowed(allow: &'static str) -> Response<Pieces> {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
    let allow = HeaderValue::from_static(allow);
    response.headers_mut().insert(header::ALLOW, allow);
    response
}

fn response(status: StatusCode, content_type: HeaderValue, body: Pieces) -> Response<Pieces> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}
