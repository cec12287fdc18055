//! Where a runtime is.

use std::fmt;
use std::str::FromStr;

use agentix_protocol::names::http::{CALL_PATH, ENGINE_PATH, HEALTH_PATH};
use http::Uri;

use crate::error::ConnectError;

/// The address of a runtime: `http://HOST[:PORT][/PREFIX]`, or `ws://` in place of `http://`.
///
/// A prefix is for runtimes behind a proxy: the paths of the protocol are appended to it.
///
/// # Example
///
/// ```
/// use agentix_reference_host::RuntimeUrl;
///
/// let url: RuntimeUrl = "http://127.0.0.1:8000/".parse()?;
/// assert_eq!((url.host(), url.port()), ("127.0.0.1", 8000));
/// assert_eq!(url.to_string(), "http://127.0.0.1:8000");
/// # Ok::<(), agentix_reference_host::ConnectError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuntimeUrl {
    /// As it stands in the `Host` header.
    authority: String,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// Empty, or begins with a slash and ends without one.
    prefix: String,
}

impl RuntimeUrl {
    /// Host name or address; an IPv6 address is without its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// TCP port; 80 where the URL has none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn health(&self) -> Result<Uri, ConnectError> {
        self.uri("http", HEALTH_PATH, "")
    }

    pub(crate) fn call(&self) -> Result<Uri, ConnectError> {
        self.uri("http", CALL_PATH, "")
    }

    pub(crate) fn engine(&self) -> Result<Uri, ConnectError> {
        self.uri("ws", ENGINE_PATH, "?EIO=4&transport=websocket")
    }

    fn uri(&self, scheme: &str, path: &str, query: &str) -> Result<Uri, ConnectError> {
        let text = format!("{scheme}://{}{}{path}{query}", self.authority, self.prefix);
        text.parse()
            .map_err(|_| invalid(&text, "it is not well-formed"))
    }
}

fn invalid(url: &str, reason: &'static str) -> ConnectError {
    ConnectError::InvalidUrl {
        url: url.to_owned(),
        reason,
    }
}

impl FromStr for RuntimeUrl {
    type Err = ConnectError;

    /// Checks a URL.
    ///
    /// # Errors
    ///
    /// [`ConnectError::TlsUnsupported`] for `https://` and `wss://`, [`ConnectError::InvalidUrl`]
    /// for everything else that is not of the form above.
    fn from_str(text: &str) -> Result<Self, ConnectError> {
        let uri: Uri = text
            .parse()
            .map_err(|_| invalid(text, "it is not well-formed"))?;
        match uri.scheme_str() {
            Some("http" | "ws") => {}
            Some("https" | "wss") => {
                return Err(ConnectError::TlsUnsupported {
                    url: text.to_owned(),
                });
            }
            Some(_) => return Err(invalid(text, "its scheme is not http")),
            None => return Err(invalid(text, "it has no scheme; write http://HOST:PORT")),
        }
        let authority = uri
            .authority()
            .ok_or_else(|| invalid(text, "it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(invalid(text, "it holds a user name, which nobody reads"));
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(invalid(text, "it holds a query or a fragment"));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        if host.is_empty() {
            return Err(invalid(text, "it has no host"));
        }
        let whole = authority.as_str();
        let after_host = whole.rsplit_once(']').map_or(whole, |(_, rest)| rest);
        let port = match after_host.rsplit_once(':') {
            None => 80,
            Some((_, port)) => match port.parse() {
                Ok(port) => port,
                Err(_) => return Err(invalid(text, "its port is not a number from 0 to 65535")),
            },
        };
        Ok(Self {
            authority: authority.as_str().to_owned(),
            host: host.to_owned(),
            port,
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for RuntimeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RuntimeUrl, ConnectError> {
        text.parse()
    }

    #[test]
    fn urls_lead_to_the_paths_of_the_protocol() {
        let url = parse("http://[::1]:9000/sandbox/7/").unwrap();
        assert_eq!((url.host(), url.port()), ("::1", 9000));
        assert_eq!(
            url.engine().unwrap().to_string(),
            "ws://[::1]:9000/sandbox/7/socket.io/?EIO=4&transport=websocket"
        );
        let url = parse("ws://localhost").unwrap();
        assert_eq!(url.port(), 80);
        assert_eq!(url.call().unwrap().to_string(), "http://localhost/call");
    }

    #[test]
    fn other_urls_are_refused() {
        for tls in ["https://localhost", "wss://localhost:1/"] {
            assert!(matches!(
                parse(tls),
                Err(ConnectError::TlsUnsupported { .. })
            ));
        }
        for bad in [
            "",
            "localhost:8000",
            "127.0.0.1",
            "ftp://localhost",
            "http://",
            "http://:80",
            "http://me@localhost",
            "http://localhost/?a=1",
            "http://localhost/#a",
            "http://local host",
            "http://localhost:99999",
            "http://localhost:",
            "http://[::1]:x",
        ] {
            let found = parse(bad);
            assert!(
                matches!(found, Err(ConnectError::InvalidUrl { .. })),
                "{bad}: {found:?}"
            );
        }
    }
}
