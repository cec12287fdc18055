//! Every message in every spelling: name, bytes as hex, and the decoded view.
#![allow(clippy::unwrap_used)]

mod support;

use agentix_protocol::codec::{Key, Value};
use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::frame::{FromWorker, PipeEvent, ToWorker};
use agentix_protocol::framing;
use agentix_protocol::http::{CallReply, Health, Prefer};
use agentix_protocol::ident::{CallId, Namespace, Seq, StreamId};
use agentix_protocol::message::{Call, Outcome};
use agentix_protocol::packet::{EnginePacket, Handshake, SocketPacket};
use agentix_protocol::stream::{Envelope, Feedback};
use bytes::Bytes;
use std::fmt::Write as _;
use std::time::Duration;

fn id() -> CallId {
    CallId::new("c1").unwrap()
}

fn call(context: bool) -> Call {
    Call {
        call_id: id(),
        callable: "app::run".into(),
        // ((), {"input": "hi"})
        arguments: Bytes::from_static(b"\x80\x04)}\x8c\x05input\x8c\x02his\x86."),
        context: context.then(|| Bytes::from_static(b"\x80\x04}.")),
    }
}

fn value() -> Outcome {
    Outcome::value(id(), Bytes::from_static(b"\x80\x04K\x07."))
}

fn raised() -> Outcome {
    let error = RemoteError {
        traceback: Some("Traceback (most recent call last):\n  …\nValueError: no".into()),
        ..RemoteError::new(ErrorType::Other("ValueError".into()), "no")
    };
    Outcome::error(id(), error)
}

fn died() -> Outcome {
    let error = RemoteError {
        returncode: Some(-9),
        ..RemoteError::new(
            ErrorType::WorkerDied,
            "runtime worker exited: killed by signal 9",
        )
    };
    Outcome::error(id(), error)
}

fn cancelled() -> Outcome {
    Outcome::error(id(), RemoteError::cancelled())
}

/// A value as text, independent of how the crate stores it.
fn view(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Nil => out.push_str("nil"),
        Value::Bool(b) => write!(out, "{b}").unwrap(),
        Value::Int(n) => write!(out, "{n}").unwrap(),
        Value::Str(text) => write!(out, "{text:?}").unwrap(),
        Value::Bin(bytes) => write!(out, "bin({})", support::hex(bytes)).unwrap(),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                view(item, out);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (i, (key, item)) in entries.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                match key {
                    Key::Str(text) => write!(out, "{text}: ").unwrap(),
                    Key::Bin(bytes) => write!(out, "bin({}): ", support::hex(bytes)).unwrap(),
                }
                view(item, out);
            }
            out.push('}');
        }
        other => panic!("no view of {other:?}"),
    }
}

fn entry(out: &mut String, title: &str, bytes: &[u8]) {
    let mut text = String::new();
    view(&Value::decode(bytes).unwrap(), &mut text);
    writeln!(
        out,
        "{title}\n  hex   {}\n  value {text}",
        support::hex(bytes)
    )
    .unwrap();
}

#[test]
fn events() {
    let mut out = String::new();
    let host = [
        ("call", HostEvent::Call(call(false))),
        ("call with context", HostEvent::Call(call(true))),
        ("cancel", HostEvent::Cancel(id())),
        (
            "resume",
            HostEvent::Resume(vec![id(), CallId::new("c2").unwrap()]),
        ),
        ("resume of nothing", HostEvent::Resume(vec![])),
        ("ack", HostEvent::Ack(id())),
    ];
    for (title, event) in host {
        let payload = Bytes::from(event.payload());
        assert_eq!(HostEvent::decode(event.name(), &payload), Ok(event.clone()));
        entry(
            &mut out,
            &format!("host, {title}: {}", event.name()),
            &payload,
        );
    }
    let runtime = [
        ("value", RuntimeEvent::Outcome(value())),
        ("raised", RuntimeEvent::Outcome(raised())),
        ("worker died", RuntimeEvent::Outcome(died())),
        ("cancelled", RuntimeEvent::Outcome(cancelled())),
        (
            "no id",
            RuntimeEvent::Rejected(RemoteError::bad_request("field `call_id` is missing")),
        ),
    ];
    for (title, event) in runtime {
        let payload = Bytes::from(event.payload());
        assert_eq!(
            RuntimeEvent::decode(event.name(), &payload),
            Ok(event.clone())
        );
        entry(
            &mut out,
            &format!("runtime, {title}: {}", event.name()),
            &payload,
        );
    }
    insta::assert_snapshot!(out);
}

#[test]
fn frames() {
    let data = Bytes::from_static(b"\x81\xa1k\x01");
    let event = |namespace: &str| PipeEvent {
        namespace: Namespace::new(namespace).unwrap(),
        event: "tick".into(),
        data: data.clone(),
    };
    let mut out = String::new();
    let to_worker = [
        ("call", ToWorker::Call(call(false))),
        ("call with context", ToWorker::Call(call(true))),
        ("cancel", ToWorker::Cancel(id())),
        ("shutdown", ToWorker::Shutdown),
        ("sio_inbound", ToWorker::SioInbound(event("/app"))),
    ];
    for (title, frame) in to_worker {
        let body = Bytes::from(frame.encode());
        assert_eq!(ToWorker::decode(&body), Ok(frame));
        let header = support::hex(&framing::header(body.len()).unwrap());
        entry(
            &mut out,
            &format!("runtime to worker, {title}: length {header}"),
            &body,
        );
    }
    let from_worker = [
        ("ready", FromWorker::Ready),
        (
            "boot_error",
            FromWorker::BootError(RemoteError::new(ErrorType::from("ImportError"), "no app")),
        ),
        ("result", FromWorker::Outcome(value())),
        ("error", FromWorker::Outcome(raised())),
        (
            "error without a call",
            FromWorker::Rejected(RemoteError::bad_request("field `call_id` is missing")),
        ),
        (
            "sio_open",
            FromWorker::SioOpen(Namespace::new("/app").unwrap()),
        ),
        ("sio_emit", FromWorker::SioEmit(event("/app"))),
    ];
    for (title, frame) in from_worker {
        let body = Bytes::from(frame.encode());
        assert_eq!(FromWorker::decode(&body), Ok(frame));
        let header = support::hex(&framing::header(body.len()).unwrap());
        entry(
            &mut out,
            &format!("worker to runtime, {title}: length {header}"),
            &body,
        );
    }
    insta::assert_snapshot!(out);
}

#[test]
fn http_bodies() {
    let mut out = String::new();
    entry(&mut out, "POST /call", &call(false).encode());
    let replies = [
        CallReply::Done(value().result),
        CallReply::Done(raised().result),
        CallReply::Accepted(id()),
        CallReply::BadRequest(RemoteError::bad_request("field `call_id` is missing")),
        CallReply::TooLarge(RemoteError::new(ErrorType::PayloadTooLarge, "too large")),
    ];
    for reply in replies {
        let body = Bytes::from(reply.encode());
        assert_eq!(CallReply::decode(reply.status(), &body), Ok(reply.clone()));
        entry(&mut out, &format!("{}", reply.status()), &body);
    }
    let prefer = Prefer {
        wait: Duration::from_millis(1500),
    };
    writeln!(
        out,
        "prefer: {prefer}\npreference-applied: {}",
        prefer.applied()
    )
    .unwrap();
    writeln!(
        out,
        "GET /health: {}",
        serde_json::to_string(&Health::healthy("0.1.0")).unwrap()
    )
    .unwrap();
    insta::assert_snapshot!(out);
}

#[test]
fn packets() {
    let rpc = Namespace::rpc;
    let sid = || Some(serde_json::json!({"sid": "abc"}));
    let engine = [
        EnginePacket::Open(Handshake {
            sid: "s1".into(),
            upgrades: vec!["websocket".into()],
            ping_interval: Duration::from_secs(25),
            ping_timeout: Duration::from_secs(300),
            max_payload: 268_435_456,
        }),
        EnginePacket::Close,
        EnginePacket::Ping(String::new()),
        EnginePacket::Ping("probe".into()),
        EnginePacket::Pong("probe".into()),
        EnginePacket::Upgrade,
        EnginePacket::Noop,
    ];
    let socket = [
        SocketPacket::Connect {
            namespace: rpc(),
            data: Some(serde_json::json!({})),
        },
        SocketPacket::Connect {
            namespace: rpc(),
            data: sid(),
        },
        SocketPacket::Connect {
            namespace: Namespace::new("/").unwrap(),
            data: None,
        },
        SocketPacket::ConnectError {
            namespace: rpc(),
            data: sid(),
        },
        SocketPacket::Disconnect { namespace: rpc() },
        SocketPacket::BinaryEvent {
            namespace: rpc(),
            ack: None,
            name: "call".into(),
        },
        SocketPacket::BinaryEvent {
            namespace: rpc(),
            ack: Some(7),
            name: "call".into(),
        },
        SocketPacket::Event {
            namespace: rpc(),
            ack: None,
            name: "x".into(),
            args: vec![1.into()],
        },
        SocketPacket::Ack {
            namespace: rpc(),
            id: 7,
            args: vec![],
        },
    ];
    let mut out = String::new();
    for packet in engine {
        assert_eq!(EnginePacket::parse(&packet.encode()), Ok(packet.clone()));
        writeln!(out, "{}", packet.encode()).unwrap();
    }
    for packet in socket {
        assert_eq!(SocketPacket::parse(&packet.encode()), Ok(packet.clone()));
        writeln!(out, "{}", EnginePacket::Message(packet.encode()).encode()).unwrap();
    }
    insta::assert_snapshot!(out);
}

#[test]
fn streams() {
    let sid = StreamId::from_random(0xdead_beef);
    let mut out = String::new();
    let envelope = Envelope {
        sid: sid.clone(),
        seq: Seq(1),
        data: Bytes::from_static(b"\x81\xa1k\x01"),
    };
    entry(&mut out, "record", &envelope.encode());
    let feedback = [
        Feedback::Ack {
            sid: Some(sid.clone()),
            seq: Seq(3),
        },
        Feedback::Ack {
            sid: None,
            seq: Seq(3),
        },
        Feedback::Resume {
            sid: Some(sid),
            since: Seq(2),
        },
        Feedback::Resume {
            sid: None,
            since: Seq::ZERO,
        },
    ];
    for f in feedback {
        let payload = Bytes::from(f.payload());
        assert_eq!(Feedback::decode(f.name(), &payload), Ok(f.clone()));
        entry(&mut out, f.name(), &payload);
    }
    insta::assert_snapshot!(out);
}
