//! Every message of the recorded transcripts parses into typed messages, and comes out again as
//! the same bytes where the encoding is ours to choose. What was recorded as malformed is
//! refused.
//!
//! The transcripts are not part of this repository; without them the tests say that they did not
//! run.
#![allow(clippy::unwrap_used)]

mod support;

use agentix_protocol::codec::{Keys, Limits, Value, scan};
use agentix_protocol::event::{BadHostEvent, HostEvent, RuntimeEvent};
use agentix_protocol::frame::{BadFrame, FromWorker, ToWorker};
use agentix_protocol::framing::FrameDecoder;
use agentix_protocol::http::{CallReply, decode_call};
use agentix_protocol::packet::{EnginePacket, SocketPacket, split_polling};
use agentix_protocol::stream::{Envelope, Feedback};
use bytes::Bytes;
use serde_json::Value as Json;

const FIVE: [&str; 5] = ["type", "message", "traceback", "cancelled", "returncode"];

fn keys(map: &Json) -> Vec<&str> {
    map.as_object()
        .map(|o| o.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

fn is_bin(value: &Json) -> bool {
    value.get("$bin").is_some() || value.get("$bin_prefix").is_some()
}

/// Is this typed JSON a call by the rules of the specification?
fn is_call(map: &Json) -> bool {
    let id = map["call_id"]
        .as_str()
        .is_some_and(|id| (1..=128).contains(&id.len()));
    id && map["callable"].is_string()
        && is_bin(&map["arguments"])
        && (map["context"].is_null() || is_bin(&map["context"]))
}

/// Is it written as we would write it?
fn is_canonical_call(map: &Json, context_always: bool) -> bool {
    let mut names = vec!["call_id", "callable", "arguments"];
    if context_always || !map["context"].is_null() {
        names.push("context");
    }
    let fields: Vec<&str> = keys(map).into_iter().filter(|key| *key != "type").collect();
    fields == names
        && is_bin(&map["arguments"])
        && (map["context"].is_null() || is_bin(&map["context"]))
}

#[derive(Debug, Default)]
struct Tally {
    messages: usize,
    same_bytes: usize,
    refused: usize,
    cut_short: usize,
}

impl Tally {
    fn same(&mut self, at: &str, ours: &[u8], theirs: &[u8]) {
        assert_eq!(support::hex(ours), support::hex(theirs), "{at}");
        self.same_bytes += 1;
    }
}

#[test]
fn wire() {
    let Some(files) = support::shared_transcripts("wire") else {
        return support::not_run("transcripts::wire", "no folder ../shared/vectors/wire");
    };
    let mut tally = Tally::default();
    for (name, lines) in &files {
        for line in lines {
            let at = format!("{name} {}", line["seq"]);
            match (line["kind"].as_str(), line["opcode"].as_str()) {
                (Some("ws_message"), Some("text")) => text(&at, line, &mut tally),
                (Some("ws_message"), Some("binary")) => attachment(&at, line, &mut tally),
                (Some("http_request"), _) => request(&at, line, &mut tally),
                (Some("http_response"), _) => response(&at, line, lines, &mut tally),
                _ => {}
            }
        }
    }
    println!("{} files: {tally:?}", files.len());
    assert!(
        tally.messages > 2500 && tally.same_bytes > 2000 && tally.refused > 10,
        "{tally:?}"
    );
}

/// An Engine.IO packet, and a Socket.IO packet in it.
fn text(at: &str, line: &Json, tally: &mut Tally) {
    let text = line["text"].as_str().unwrap();
    packet(at, text, &line["decoded"], tally);
}

fn packet(at: &str, text: &str, decoded: &Json, tally: &mut Tally) {
    tally.messages += 1;
    let engine = EnginePacket::parse(text).unwrap_or_else(|e| panic!("{at}: {e}"));
    tally.same(at, engine.encode().as_bytes(), text.as_bytes());
    if decoded.get("engineio").is_none() {
        // Recorded as mere text: nothing to compare with.
        assert!(decoded.get("text").is_some(), "{at}");
        return;
    }
    let EnginePacket::Message(message) = engine else {
        assert!(decoded.get("socketio").is_none(), "{at}");
        return;
    };
    let expected = &decoded["socketio"];
    match SocketPacket::parse(&message) {
        Ok(packet) => {
            let name = match &packet {
                SocketPacket::Connect { .. } => "CONNECT",
                SocketPacket::Disconnect { .. } => "DISCONNECT",
                SocketPacket::Event { .. } => "EVENT",
                SocketPacket::Ack { .. } => "ACK",
                SocketPacket::ConnectError { .. } => "CONNECT_ERROR",
                SocketPacket::BinaryEvent { .. } => "BINARY_EVENT",
            };
            assert_eq!(expected["name"].as_str(), Some(name), "{at}");
            // JSON that a peer wrote with blanks is not ours.
            if !text.contains("\": ") {
                tally.same(at, packet.encode().as_bytes(), message.as_bytes());
            }
        }
        // More attachments than one, or none.
        Err(e) => {
            assert_ne!(expected["attachments"], 1, "{at}: {e}");
            assert_eq!(expected["name"], "BINARY_EVENT", "{at}: {e}");
            tally.refused += 1;
        }
    }
}

fn attachment(at: &str, line: &Json, tally: &mut Tally) {
    tally.messages += 1;
    let Some(hex) = line["hex"].as_str() else {
        assert_eq!(line["truncated"], true, "{at}");
        tally.cut_short += 1;
        return;
    };
    let payload = Bytes::from(support::unhex(hex));
    let decoded = &line["decoded"];
    let event = decoded["attachment"]["event"].as_str().unwrap();
    let namespace = decoded["attachment"]["namespace"].as_str().unwrap();
    let from_host = line["dir"] == "host->runtime";
    match (namespace, from_host) {
        ("/rpc", true) => host_event(at, event, &payload, &decoded["msgpack"], tally),
        ("/rpc", false) => runtime_event(at, event, &payload, &decoded["msgpack"], tally),
        ("/log" | "/trace", true) => match Feedback::decode(event, &payload) {
            Ok(feedback) => {
                let position = &decoded["msgpack"]["since_seq"];
                if event == "_ack" || position.is_u64() {
                    tally.same(at, &feedback.payload(), &payload);
                }
            }
            Err(e) => {
                let seq = &decoded["msgpack"]["seq"];
                assert!(
                    event != "_resume" && seq.as_u64().is_none() || !decoded["msgpack"].is_object(),
                    "{at}: {e}"
                );
                tally.refused += 1;
            }
        },
        ("/log" | "/trace", false) => {
            let envelope = Envelope::decode(&payload).unwrap_or_else(|e| panic!("{at}: {e}"));
            tally.same(at, &envelope.encode(), &payload);
        }
        // Plugin data: one value, and ours to relay.
        _ => {
            let whole = scan(&payload, Keys::Any, &Limits::default()).is_ok();
            assert_eq!(whole, decoded.get("msgpack").is_some(), "{at}");
            if let Ok(value) = Value::decode(&payload) {
                if let Ok(bytes) = value.encode() {
                    tally.same(at, &bytes, &payload);
                }
            } else {
                tally.refused += 1;
            }
        }
    }
}

fn host_event(at: &str, name: &str, payload: &Bytes, expected: &Json, tally: &mut Tally) {
    let decoded = HostEvent::decode(name, payload);
    match (&decoded, name) {
        (Err(BadHostEvent::Unknown), _) => {
            assert!(!["call", "cancel", "resume", "ack"].contains(&name), "{at}");
            tally.refused += 1;
        }
        (Ok(HostEvent::Call(call)), "call") => {
            assert!(is_call(expected), "{at}");
            assert_eq!(
                Some(call.call_id.as_str()),
                expected["call_id"].as_str(),
                "{at}"
            );
            assert_eq!(Some(&*call.callable), expected["callable"].as_str(), "{at}");
            if is_canonical_call(expected, false) {
                tally.same(at, &call.encode(), payload);
            }
        }
        (Err(_), "call") => {
            assert!(!is_call(expected), "{at}: {decoded:?}");
            tally.refused += 1;
        }
        (Ok(event), "resume") => {
            let strings = |list: &Vec<Json>| list.iter().all(Json::is_string);
            if expected["call_ids"].as_array().is_some_and(strings) {
                tally.same(at, &event.payload(), payload);
            }
        }
        (Ok(event), _) => tally.same(at, &event.payload(), payload),
        (Err(e), _) => {
            assert!(
                expected["call_id"].as_str().is_none_or(str::is_empty),
                "{at}: {e}"
            );
            tally.refused += 1;
        }
    }
}

fn runtime_event(at: &str, name: &str, payload: &Bytes, expected: &Json, tally: &mut Tally) {
    let id = expected["call_id"].as_str().unwrap();
    match RuntimeEvent::decode(name, payload) {
        Ok(event) => {
            assert_eq!(event.name(), name, "{at}");
            match &event {
                RuntimeEvent::Outcome(outcome) => assert_eq!(outcome.call_id.as_str(), id, "{at}"),
                RuntimeEvent::Rejected(_) => assert_eq!(id, "", "{at}"),
            }
            // We always write five keys; the recorded BadRequest has two.
            if name == "call:result" || keys(&expected["error"]) == FIVE {
                tally.same(at, &event.payload(), payload);
            }
        }
        // A result for an empty id: no id of ours.
        Err(e) => {
            assert_eq!(id, "", "{at}: {e}");
            tally.refused += 1;
        }
    }
}

fn request(at: &str, line: &Json, tally: &mut Tally) {
    let target = line["target"].as_str().unwrap();
    if target.starts_with("/socket.io") && line["method"] == "POST" {
        return polling(at, line, tally);
    }
    let Some(hex) = line["body"]["hex"].as_str() else {
        tally.cut_short += usize::from(line["body"]["truncated"] == true);
        return;
    };
    if target != "/call" || line["method"] != "POST" {
        return;
    }
    tally.messages += 1;
    let body = Bytes::from(support::unhex(hex));
    // A body that was sent as text was recorded as text; it is judged by its bytes alone.
    let expected = &line["decoded"]["msgpack"];
    match decode_call(&body) {
        Ok(call) => {
            assert!(expected.is_null() || is_call(expected), "{at}");
            if is_canonical_call(expected, false) {
                tally.same(at, &call.encode(), &body);
            }
        }
        Err(e) => {
            assert!(!is_call(expected), "{at}: {e}");
            tally.refused += 1;
        }
    }
}

fn response(at: &str, line: &Json, lines: &[Json], tally: &mut Tally) {
    let request = lines.iter().find(|l| l["seq"] == line["of_seq"]).unwrap();
    let target = request["target"].as_str().unwrap();
    if target.starts_with("/socket.io") && line["decoded"].get("engineio_payload").is_some() {
        return polling(at, line, tally);
    }
    if target != "/call" || request["method"] != "POST" {
        return;
    }
    tally.messages += 1;
    let Some(hex) = line["body"]["hex"].as_str() else {
        tally.cut_short += 1;
        return;
    };
    let body = Bytes::from(support::unhex(hex));
    let status = line["status"].as_u64().unwrap().try_into().unwrap();
    let expected = &line["decoded"]["msgpack"];
    match CallReply::decode(status, &body) {
        Ok(reply) => {
            assert_eq!(reply.status(), status, "{at}");
            if expected["error"].is_null() || keys(&expected["error"]) == FIVE {
                tally.same(at, &reply.encode(), &body);
            }
        }
        Err(e) => {
            assert_eq!(status, 500, "{at}: {e}");
            tally.refused += 1;
        }
    }
}

fn polling(at: &str, line: &Json, tally: &mut Tally) {
    let Some(hex) = line["body"]["hex"].as_str() else {
        tally.cut_short += 1;
        return;
    };
    if hex.is_empty() || hex == support::hex(b"OK") {
        return;
    }
    let body = String::from_utf8(support::unhex(hex)).unwrap();
    if line["status"].as_u64().is_some_and(|status| status != 200) {
        return;
    }
    let items = split_polling(&body).unwrap();
    let joined = agentix_protocol::packet::join_polling(&items);
    tally.same(at, joined.as_bytes(), body.as_bytes());
    let decoded = line["decoded"]["engineio_payload"].as_array().unwrap();
    for (item, decoded) in items.iter().zip(decoded) {
        if let agentix_protocol::packet::PollingItem::Text(text) = item {
            packet(at, text, decoded, tally);
        }
    }
}

#[test]
fn pipe() {
    let Some(files) = support::shared_transcripts("pipe") else {
        return support::not_run("transcripts::pipe", "no folder ../shared/vectors/pipe");
    };
    let mut tally = Tally::default();
    for (name, lines) in &files {
        for line in lines.iter().filter(|line| line["kind"] == "frame") {
            let at = format!("{name} {}", line["seq"]);
            tally.messages += 1;
            let Some(hex) = line["hex"].as_str() else {
                assert_eq!(line["truncated"], true, "{at}");
                tally.cut_short += 1;
                continue;
            };
            let mut decoder = FrameDecoder::default();
            decoder.push(&support::unhex(hex));
            let body = decoder
                .next_frame()
                .unwrap()
                .unwrap_or_else(|| panic!("{at}: not whole"));
            assert!(decoder.is_empty(), "{at}");
            frame(&at, line, &body, &mut tally);
        }
    }
    println!("{} files: {tally:?}", files.len());
    assert!(
        tally.messages > 1000 && tally.same_bytes > 1000 && tally.refused > 3,
        "{tally:?}"
    );
}

fn frame(at: &str, line: &Json, body: &Bytes, tally: &mut Tally) {
    let expected = &line["decoded"];
    let to_worker = line["dir"] == "runtime->worker";
    let known: &[&str] = if to_worker {
        &["call", "cancel", "shutdown", "sio_inbound"]
    } else {
        &[
            "ready",
            "boot_error",
            "result",
            "error",
            "sio_open",
            "sio_emit",
        ]
    };
    let (encoded, bad) = if to_worker {
        match ToWorker::decode(body) {
            Ok(frame) => (Some(frame.encode()), None),
            Err(bad) => (None, Some(bad)),
        }
    } else {
        match FromWorker::decode(body) {
            Ok(frame) => (Some(frame.encode()), None),
            Err(bad) => (None, Some(bad)),
        }
    };
    let tag = expected["type"].as_str();
    match (encoded, bad) {
        (Some(encoded), _) => {
            assert!(known.contains(&tag.unwrap()), "{at}");
            let canonical = match tag {
                Some("call") => is_canonical_call(expected, true),
                Some("sio_inbound") => expected.get("data").is_some(),
                Some("error") => keys(&expected["error"]) == FIVE,
                _ => true,
            };
            if canonical {
                tally.same(at, &encoded, body);
            }
        }
        (None, Some(bad)) => {
            let fits = match &bad {
                BadFrame::Empty => body.is_empty(),
                BadFrame::Codec(_) => line.get("decode_error").is_some(),
                BadFrame::NotAMap => !expected.is_object(),
                BadFrame::Tag(_) => tag.is_none(),
                BadFrame::UnknownTag(name) => !known.contains(&name.as_str()),
                BadFrame::Call(_) => !is_call(expected),
                BadFrame::Field { .. } | BadFrame::Namespace { .. } => {
                    let namespace = expected["namespace"].as_str();
                    namespace.is_none_or(|name| !name.starts_with('/'))
                        || expected["event"].as_str().is_none()
                }
                other => panic!("{at}: {other}"),
            };
            assert!(fits, "{at}: {bad}");
            tally.refused += 1;
        }
        (None, None) => unreachable!("decode gives one of both"),
    }
}
