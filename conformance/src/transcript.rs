//! Everything that crossed the wire during one case, in order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use agentix_protocol::codec::{Key, Value};
use serde_json::json;

/// Who sent an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The suite.
    Sent,
    /// The testee.
    Received,
}

/// A log shared by the peers of one case.
#[derive(Clone, Debug)]
pub(crate) struct Transcript(Arc<Mutex<Vec<serde_json::Value>>>, Instant);

/// Longer payloads are written by their beginning, in bytes.
const SHOWN: usize = 20 * 1024;
const PREFIX: usize = 256;

impl Transcript {
    pub(crate) fn new() -> Self {
        Self(Arc::default(), Instant::now())
    }

    /// A text item: a packet, a request line, a signal.
    pub(crate) fn text(&self, peer: &str, direction: Direction, kind: &str, text: &str) {
        let shown: String = text.chars().take(SHOWN).collect();
        self.push(
            peer,
            direction,
            kind,
            json!({ "len": text.len(), "text": shown }),
        );
    }

    /// A binary item, with its typed view where it is msgpack.
    pub(crate) fn binary(&self, peer: &str, direction: Direction, kind: &str, bytes: &[u8]) {
        let mut item = hex(bytes);
        if let Ok(value) = Value::decode(bytes) {
            item["msgpack"] = typed(&value);
        }
        self.push(peer, direction, kind, item);
    }

    fn push(&self, peer: &str, direction: Direction, kind: &str, mut item: serde_json::Value) {
        item["t_ms"] = json!(self.1.elapsed().as_millis() as u64);
        item["peer"] = json!(peer);
        item["dir"] = json!(match direction {
            Direction::Sent => "suite->testee",
            Direction::Received => "testee->suite",
        });
        item["kind"] = json!(kind);
        self.entries().push(item);
    }

    /// The items as JSON lines.
    pub(crate) fn lines(&self) -> String {
        let entries = self.entries();
        let lines = entries.iter().enumerate().map(|(index, item)| {
            let mut item = item.clone();
            item["seq"] = json!(index + 1);
            format!("{item}\n")
        });
        lines.collect()
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<serde_json::Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hex(bytes: &[u8]) -> serde_json::Value {
    let encode = |bytes| data_encoding::HEXLOWER.encode(bytes);
    if bytes.len() <= SHOWN {
        json!({ "len": bytes.len(), "hex": encode(bytes) })
    } else {
        json!({ "len": bytes.len(), "truncated": true, "hex_prefix": encode(&bytes[..PREFIX]) })
    }
}

/// A msgpack value as JSON, in the notation of the recorded transcripts. Depth is bounded by the codec.
fn typed(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::Nil => serde_json::Value::Null,
        Value::Bool(b) => json!(b),
        Value::Int(n) => json!(n),
        Value::BigUint(n) => json!(n),
        Value::F32(n) => json!({ "$f32": n.to_string() }),
        Value::F64(n) => json!({ "$f64": n.to_string() }),
        Value::Str(text) => json!(text),
        Value::Bin(bytes) => {
            let shown = &bytes[..bytes.len().min(PREFIX)];
            json!({ "$bin": data_encoding::HEXLOWER.encode(shown), "len": bytes.len() })
        }
        Value::Array(items) => items.iter().map(typed).collect(),
        Value::Map(entries) => {
            let plain = entries.iter().map(|(key, value)| match key {
                Key::Str(name) if !name.starts_with('$') => Some((name.to_string(), typed(value))),
                _ => None,
            });
            match plain.collect::<Option<serde_json::Map<_, _>>>() {
                Some(map) => map.into(),
                None => {
                    let key = |key: &Key<'_>| match key {
                        Key::Str(text) => json!(text),
                        Key::Bin(bytes) => json!({ "$bin": data_encoding::HEXLOWER.encode(bytes) }),
                    };
                    let pairs = entries.iter().map(|(k, v)| json!([key(k), typed(v)]));
                    json!({ "$map": pairs.collect::<Vec<_>>() })
                }
            }
        }
        other => json!({ "$ext": format!("{other:?}") }),
    }
}
