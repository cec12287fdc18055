//! HTTP/1.1, one connection for each request.

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Endpoint, Wire, missed, silence};
use crate::transcript::Direction;
use crate::verdict::{Stop, Verdict};

/// A client of the plain routes of a runtime.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    pub(crate) endpoint: Endpoint,
    pub(crate) wire: Wire,
}

/// Largest body that is read: a little above the largest message of the protocol.
const MAX_BODY_BYTES: usize = 300 * 1024 * 1024;

/// A whole response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Response {
    /// The header as text; empty where it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// Reads a response whose body has a length, or ends with the connection.
fn parse(answer: &[u8]) -> Option<Response> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name: http::HeaderName = name.trim().parse().ok()?;
        headers.append(name, value.trim().parse().ok()?);
    }
    let mut body = &answer[end + 4..];
    if let Some(length) = headers.get("content-length") {
        body = body.get(..length.to_str().ok()?.parse().ok()?)?;
    }
    Some(Response {
        status,
        headers,
        body: Bytes::copy_from_slice(body),
    })
}

impl Http {
    /// `GET path`.
    pub(crate) async fn get(&self, path: &str) -> Verdict<Response> {
        self.request("GET", path, &[], Vec::new()).await
    }

    /// `POST /call` with a body and further headers.
    pub(crate) async fn call(&self, headers: &[(&str, &str)], body: Vec<u8>) -> Verdict<Response> {
        let mut all = vec![("content-type", "application/msgpack")];
        all.extend_from_slice(headers);
        self.request("POST", "/call", &all, body).await
    }

    /// Any request.
    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Verdict<Response> {
        let what = format!("a response to {method} {path}");
        let clock = self.wire.clock;
        self.record(method, path, headers, &body);
        let stream = self.endpoint.connect(clock).await?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.endpoint.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| Stop::Harness(format!("{method} {path}: {error}")))?;
        let exchange = async {
            let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
            let answer = async move {
                let (parts, body) = sender.send_request(request).await?.into_parts();
                let body = Limited::new(body, MAX_BODY_BYTES).collect().await?;
                Ok((parts, body.to_bytes()))
            };
            // The connection ends when the sender is dropped; an error of its own shows in the answer as well.
            let (answer, _) = tokio::join!(answer, connection);
            answer
        };
        let answer: Result<_, Box<dyn std::error::Error + Send + Sync>> =
            timeout(clock.answer(), exchange)
                .await
                .map_err(|_| silence(&what, clock.answer()))?;
        let (parts, body) = answer.map_err(|error| missed(&what, error))?;
        let response = Response {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        };
        let head = format!("{} {:?}", response.status, response.headers);
        self.wire
            .transcript
            .text("http", Direction::Received, "response", &head);
        self.wire
            .transcript
            .binary("http", Direction::Received, "body", &response.body);
        Ok(response)
    }

    /// Sends a request and leaves it to the caller to hang up before the answer.
    pub(crate) async fn send_call_only(
        &self,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Verdict<TcpStream> {
        self.record("POST", "/call", headers, body);
        let mut stream = self.endpoint.connect(self.wire.clock).await?;
        let mut head = format!(
            "POST /call HTTP/1.1\r\nhost: {}\r\ncontent-type: application/msgpack\r\ncontent-length: {}\r\n",
            self.endpoint,
            body.len()
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let bytes = [head.as_bytes(), body].concat();
        match stream.write_all(&bytes).await {
            Ok(()) => Ok(stream),
            Err(error) => Err(missed("a connection that takes a request", error)),
        }
    }

    /// `POST /call` with a body of `head` and then that many zeros, written until the answer comes.
    pub(crate) async fn call_of_zeros(&self, head: &[u8], zeros: usize) -> Verdict<Response> {
        let what = "a response to a large POST /call";
        let clock = self.wire.clock;
        let length = head.len() + zeros;
        self.record(
            "POST",
            &format!("/call, a body of {length} bytes"),
            &[],
            head,
        );
        let mut stream = self.endpoint.connect(clock).await?;
        let request = format!(
            "POST /call HTTP/1.1\r\nhost: {}\r\ncontent-type: application/msgpack\r\nprefer: wait=30\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n",
            self.endpoint
        );
        let (mut reader, mut writer) = stream.split();
        let write = async {
            writer.write_all(request.as_bytes()).await?;
            writer.write_all(head).await?;
            let piece = vec![0; 64 * 1024];
            let mut left = zeros;
            while left > 0 {
                let len = left.min(piece.len());
                writer.write_all(&piece[..len]).await?;
                left -= len;
            }
            Ok::<_, std::io::Error>(())
        };
        let read = async {
            let mut answer = Vec::new();
            let mut limited = (&mut reader).take(64 * 1024);
            let done = limited.read_to_end(&mut answer).await;
            // A connection that is reset behind the answer does not take the answer back.
            if answer.is_empty() {
                done.map(|_| answer)
            } else {
                Ok(answer)
            }
        };
        let exchange = async {
            // A runtime may answer and hang up before it has read everything: then writing fails.
            let (_, answer) = tokio::join!(write, read);
            answer
        };
        let answer = timeout(clock.answer() * 3, exchange).await;
        let answer = answer.map_err(|_| silence(what, clock.answer() * 3))?;
        let answer = answer.map_err(|error| missed(what, error))?;
        self.wire.transcript.text(
            "http",
            Direction::Received,
            "response",
            &String::from_utf8_lossy(&answer),
        );
        parse(&answer).ok_or_else(|| missed(what, crate::verdict::shorten(&answer)))
    }

    fn record(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let head = format!("{method} {path} {headers:?}");
        self.wire
            .transcript
            .text("http", Direction::Sent, "request", &head);
        if !body.is_empty() {
            self.wire
                .transcript
                .binary("http", Direction::Sent, "body", body);
        }
    }
}
