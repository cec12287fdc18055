//! Engine.IO over HTTP polling.

use bytes::Bytes;
use serde_json::Value as Json;

use super::http::Http;
use super::missed;
use crate::verdict::{Verdict, check, fail};

/// One packet of a polling body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Packet {
    /// Its text, with the Engine.IO digit.
    Text(String),
    /// An attachment.
    Binary(Bytes),
}

/// A session on polling.
#[derive(Debug)]
pub(crate) struct Polling {
    http: Http,
    pub(crate) sid: String,
    /// The open packet's JSON.
    pub(crate) open: Json,
    queue: std::collections::VecDeque<Packet>,
}

/// Path and query of a polling request without a session.
pub(crate) const OPEN: &str = "/socket.io/?EIO=4&transport=polling";

impl Polling {
    /// Opens a session.
    pub(crate) async fn open(http: &Http) -> Verdict<Self> {
        let response = http.get(OPEN).await?;
        check(
            response.status == 200,
            "AGX-CON-003",
            "200 for the first GET of polling",
            response.status,
        )?;
        let mut packets = split(&response.body)?;
        let open = match packets.first() {
            Some(Packet::Text(text)) => text.strip_prefix('0').map(serde_json::from_str::<Json>),
            _ => None,
        };
        let Some(Ok(open)) = open else {
            return fail("AGX-CON-010", "an open packet", format_args!("{packets:?}"));
        };
        let Some(sid) = open["sid"].as_str().filter(|sid| !sid.is_empty()) else {
            return fail("AGX-CON-010", "a `sid` in the open packet", open);
        };
        packets.remove(0);
        Ok(Self {
            http: http.clone(),
            sid: sid.to_owned(),
            queue: packets.into(),
            open,
        })
    }

    fn path(&self) -> String {
        format!("{OPEN}&sid={}", self.sid)
    }

    /// Posts packets in one body.
    pub(crate) async fn post(&self, packets: &[Packet]) -> Verdict {
        let body = packets.iter().map(|packet| match packet {
            Packet::Text(text) => text.clone(),
            Packet::Binary(bytes) => format!("b{}", data_encoding::BASE64.encode(bytes)),
        });
        let body = body.collect::<Vec<_>>().join("\x1e");
        let headers = [("content-type", "text/plain;charset=UTF-8")];
        let response = self
            .http
            .request("POST", &self.path(), &headers, body.into_bytes())
            .await?;
        check(
            response.status == 200,
            "AGX-CON-020",
            "200 for a POST of packets",
            response.status,
        )
    }

    /// Ends the session.
    pub(crate) async fn leave(self) -> Verdict {
        self.post(&[Packet::Text("1".to_owned())]).await
    }

    /// The next packet that is no ping; polls as often as it takes, and answers pings.
    pub(crate) async fn next(&mut self, what: &str) -> Verdict<Packet> {
        // Each GET is bounded by the client's wait, and a runtime that answers with noops alone ends here.
        for _ in 0..100 {
            while let Some(packet) = self.queue.pop_front() {
                match &packet {
                    Packet::Text(text) if text.starts_with('2') => {
                        self.post(&[Packet::Text("3".to_owned())]).await?;
                    }
                    Packet::Text(text) if text == "6" => {}
                    _ => return Ok(packet),
                }
            }
            let response = self.http.get(&self.path()).await?;
            check(
                response.status == 200,
                "AGX-CON-003",
                "200 for a GET of polling",
                response.status,
            )?;
            self.queue.extend(split(&response.body)?);
        }
        Err(missed(what, "100 polls without it"))
    }
}

fn split(body: &[u8]) -> Verdict<Vec<Packet>> {
    let Ok(text) = std::str::from_utf8(body) else {
        return fail(
            "AGX-CON-001",
            "a polling body of text",
            crate::verdict::shorten(body),
        );
    };
    let packets = text
        .split('\x1e')
        .map(|packet| match packet.strip_prefix('b') {
            None => Ok(Packet::Text(packet.to_owned())),
            Some(encoded) => match data_encoding::BASE64.decode(encoded.as_bytes()) {
                Ok(bytes) => Ok(Packet::Binary(bytes.into())),
                Err(error) => fail(
                    "AGX-CON-001",
                    "an attachment in base64",
                    format_args!("{error}: {packet}"),
                ),
            },
        });
    packets.collect()
}
