//! Raw clients that play the other side of a testee. They send what they are told, right or wrong, and hand over what
//! came; they judge only what makes it impossible to follow the testee any further.

pub(crate) mod http;
pub(crate) mod pipe;
pub(crate) mod polling;
pub(crate) mod session;
pub(crate) mod tunnel;
pub(crate) mod websocket;

use std::fmt::{self, Display};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::clock::Clock;
use crate::transcript::Transcript;
use crate::verdict::{Failure, Stop, Verdict};

/// Where a runtime listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Endpoint {
    /// A port of this machine.
    pub(crate) fn local(port: u16) -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port,
        }
    }

    /// Reads `http://HOST[:PORT]`.
    ///
    /// # Errors
    ///
    /// A sentence for the command line.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let uri: http_types::Uri = url
            .parse()
            .map_err(|error| format!("{url:?} is no URL: {error}"))?;
        if uri.scheme_str() != Some("http") {
            return Err(format!("{url:?}: only http:// is supported"));
        }
        let host = uri.host().ok_or_else(|| format!("{url:?} names no host"))?;
        Ok(Self {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(80),
        })
    }

    async fn connect(&self, clock: Clock) -> Verdict<TcpStream> {
        // The brackets of an IPv6 address belong to the URL.
        let host = self.host.trim_matches(['[', ']']);
        let attempt = TcpStream::connect((host, self.port));
        let stream = match timeout(clock.answer(), attempt).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(missed("a TCP connection", error)),
            Err(_) => return Err(silence("a TCP connection", clock.answer())),
        };
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

use ::http as http_types;

impl Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// What every peer of one case shares.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) clock: Clock,
    pub(crate) transcript: Transcript,
}

/// Something else came than what was due. The runner fills in the requirement: the first of the case.
pub(crate) fn missed(expected: impl Display, observed: impl Display) -> Stop {
    Stop::Failure(Failure {
        requirement: None,
        expected: expected.to_string(),
        observed: observed.to_string(),
    })
}

/// Nothing came.
pub(crate) fn silence(expected: impl Display, waited: Duration) -> Stop {
    missed(
        expected,
        format_args!("nothing within {:.1} s", waited.as_secs_f64()),
    )
}
