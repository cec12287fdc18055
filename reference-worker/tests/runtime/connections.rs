//! Polling, the upgrade, and hosts that break the rules.

use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::packet::{PollingItem, join_polling, split_polling};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_websockets::{ClientBuilder, Message};

use crate::support::*;

/// A host on polling.
struct Polling<'r> {
    runtime: &'r Runtime,
    target: String,
}

impl<'r> Polling<'r> {
    async fn open(runtime: &'r Runtime) -> Self {
        let target = "/socket.io?transport=polling&EIO=4&t=1";
        let open = http(runtime.address, "GET", target, &[], b"").await;
        assert_eq!(open.status, 200);
        let text = String::from_utf8(open.body.to_vec()).unwrap();
        let json: serde_json::Value =
            serde_json::from_str(text.strip_prefix('0').unwrap()).unwrap();
        assert_eq!(json["upgrades"], serde_json::json!(["websocket"]));
        assert_eq!(json["maxPayload"], 268_435_456);
        let sid = json["sid"].as_str().unwrap();
        Self {
            runtime,
            target: format!("/socket.io/?EIO=4&transport=polling&sid={sid}"),
        }
    }

    async fn post(&self, body: &str) -> u16 {
        http(
            self.runtime.address,
            "POST",
            &self.target,
            &[],
            body.as_bytes(),
        )
        .await
        .status
    }

    async fn poll(&self) -> Vec<PollingItem> {
        let response = http(self.runtime.address, "GET", &self.target, &[], b"").await;
        assert_eq!(response.status, 200);
        split_polling(str::from_utf8(&response.body).unwrap()).unwrap()
    }

    /// Polls until this many items came.
    async fn items(&self, count: usize) -> Vec<PollingItem> {
        let mut items = Vec::new();
        while items.len() < count {
            items.extend(self.poll().await);
        }
        items
    }

    fn call(&self, event: &HostEvent) -> String {
        join_polling(&[
            PollingItem::Text(format!(
                r#"451-/rpc,["{}",{{"_placeholder":true,"num":0}}]"#,
                event.name()
            )),
            PollingItem::Binary(event.payload().into()),
        ])
    }
}

fn outcome(items: &[PollingItem]) -> RuntimeEvent {
    let [PollingItem::Text(header), PollingItem::Binary(payload)] = items else {
        panic!("{items:?}")
    };
    assert_eq!(
        header,
        r#"451-/rpc,["call:result",{"_placeholder":true,"num":0}]"#
    );
    RuntimeEvent::decode("call:result", payload).unwrap()
}

#[tokio::test]
async fn polling_alone() {
    let runtime = Runtime::start().await;
    let host = Polling::open(&runtime).await;
    assert_eq!(host.post("40/rpc,{}").await, 200);
    let items = host.items(1).await;
    assert!(
        matches!(&items[..], [PollingItem::Text(text)] if text.starts_with(r#"40/rpc,{"sid":""#))
    );
    let event = HostEvent::Call(call(1, &echo { value: "x".into() }));
    assert_eq!(host.post(&host.call(&event)).await, 200);
    assert!(matches!(
        outcome(&host.items(2).await),
        RuntimeEvent::Outcome(_)
    ));
    // Leaving.
    assert_eq!(host.post("1").await, 200);
    assert_eq!(host.post("3").await, 400);
    runtime.stop().await;
}

#[tokio::test]
async fn leaving_releases_a_poll_that_waits() {
    let runtime = Runtime::start().await;
    // Nobody can tell when a poll waits: one that comes after the POST is refused. Then once more.
    for _ in 0..100 {
        let host = Polling::open(&runtime).await;
        let poll = http(runtime.address, "GET", &host.target, &[], b"");
        let (poll, left) = tokio::join!(poll, host.post("1"));
        assert_eq!(left, 200);
        match poll.status {
            200 => {
                assert_eq!(&poll.body[..], b"6");
                return runtime.stop().await;
            }
            status => assert_eq!(status, 400),
        }
    }
    panic!("no poll was ahead of its POST");
}

#[tokio::test]
async fn polling_moves_to_a_websocket() {
    let runtime = Runtime::start().await;
    let host = Polling::open(&runtime).await;
    assert_eq!(host.post("40/rpc,{}").await, 200);
    host.items(1).await;
    let target = host.target.replace("polling", "websocket");
    let uri = format!("ws://{}{target}", runtime.address);
    let builder = ClientBuilder::new().uri(&uri).unwrap();
    let (mut socket, _) = within("a WebSocket", builder.connect()).await.unwrap();
    socket.send(Message::text("2probe")).await.unwrap();
    let poll = host.poll();
    let pong = within("a pong", socket.next());
    let (items, pong) = tokio::join!(poll, pong);
    assert_eq!(pong.unwrap().unwrap().as_text(), Some("3probe"));
    assert_eq!(items, [PollingItem::Text("6".into())]);
    socket.send(Message::text("5")).await.unwrap();
    // What was joined stays joined.
    let event = HostEvent::Call(call(1, &echo { value: "x".into() }));
    let header = r#"451-/rpc,["call",{"_placeholder":true,"num":0}]"#;
    socket.send(Message::text(header)).await.unwrap();
    socket.send(Message::binary(event.payload())).await.unwrap();
    let mut messages = Vec::new();
    while messages.len() < 2 {
        messages.push(within("an outcome", socket.next()).await.unwrap().unwrap());
    }
    assert!(messages[0].is_text() && messages[1].is_binary());
    // A poll of a session that has moved is released at once, and another move is refused.
    assert_eq!(host.poll().await, [PollingItem::Text("6".into())]);
    let again = ClientBuilder::new().uri(&uri).unwrap();
    assert!(within("a refusal", again.connect()).await.is_err());
    runtime.stop().await;
}

#[tokio::test]
async fn requests_that_engine_io_refuses() {
    let runtime = Runtime::start().await;
    for (method, target, status) in [
        ("GET", "/socket.io/", 400),
        ("GET", "/socket.io/?EIO=3&transport=polling", 400),
        ("GET", "/socket.io/?EIO=4&transport=carrier-pigeon", 400),
        (
            "GET",
            "/socket.io/?EIO=4&transport=polling&sid=unknown",
            400,
        ),
        (
            "POST",
            "/socket.io/?EIO=4&transport=polling&sid=unknown",
            400,
        ),
        ("POST", "/socket.io/?EIO=4&transport=polling", 400),
        ("GET", "/socket.io/?EIO=4&transport=websocket", 400),
        ("PUT", "/socket.io/?EIO=4&transport=polling", 405),
    ] {
        let response = http(runtime.address, method, target, &[], b"").await;
        assert_eq!(response.status, status, "{method} {target}");
    }
    runtime.stop().await;
}

#[tokio::test]
async fn a_host_that_breaks_the_rules_loses_its_own_session_alone() {
    let runtime = Runtime::start().await;
    let (mut bystander, _) = Host::connect(&runtime, &["/rpc"]).await;
    let header = r#"451-/rpc,["call",{"_placeholder":true,"num":0}]"#;
    for (what, messages, code) in [
        (
            "a text while an attachment is due",
            vec![Message::text(header), Message::text("42/rpc,[\"x\"]")],
            1002,
        ),
        (
            "an attachment that nothing announced",
            vec![Message::binary(vec![0x80])],
            1002,
        ),
        ("no packet", vec![Message::text("")], 1002),
        ("an unknown packet", vec![Message::text("9")], 1002),
        ("broken JSON", vec![Message::text("42/rpc,[")], 1002),
        (
            "deep JSON",
            vec![Message::text(format!(
                "42/app,[\"x\",{}",
                "[".repeat(100_000)
            ))],
            1002,
        ),
        (
            "a namespace with blanks",
            vec![Message::text("40/a b,")],
            1002,
        ),
        (
            "a long header",
            vec![Message::text(format!(
                "42/app,[\"{}\"]",
                "x".repeat(2 << 20)
            ))],
            1009,
        ),
    ] {
        let mut host = Host::open(&runtime).await;
        host.join("/rpc").await;
        for message in messages {
            host.socket.send(message).await.unwrap();
        }
        assert_eq!(host.closed().await, Some(code), "{what}");
    }
    bystander.rpc(&HostEvent::Call(call(1, &pid {}))).await;
    assert!(bystander.outcome().await.result.is_ok());
    runtime.stop().await;
}

#[tokio::test]
async fn events_on_a_namespace_that_was_left_are_ignored() {
    let runtime = Runtime::start().await;
    let (mut host, _) = Host::connect(&runtime, &["/rpc", "/app"]).await;
    host.socket.send(Message::text("41/app,")).await.unwrap();
    host.emit("/app", "x", Some(1), b"\xc0").await;
    host.emit("/other", "x", Some(2), b"\xc0").await;
    // Unknown on `/rpc`, and a payload that is no map: neither gets an ack.
    host.emit("/rpc", "x", Some(3), b"\x80").await;
    host.emit("/rpc", "ack", Some(4), b"\x01").await;
    host.emit("/rpc", "ack", Some(5), b"\x80").await;
    host.acked(5).await;
    runtime.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_protocol_at_all() {
    let runtime = Runtime::start().await;
    // A generator with a fixed seed: the same bytes in every run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    let heads: [&[u8]; 4] = [
        b"",
        b"GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        b"POST /call HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST /call HTTP/1.1\r\nhost: x\r\ncontent-length: 200\r\n\r\n",
    ];
    for round in 0..100 {
        let mut stream = TcpStream::connect(runtime.address).await.unwrap();
        let noise: Vec<u8> = (0..200).map(|_| random()).collect();
        let bytes = [heads[round % heads.len()], &noise].concat();
        // It may be closed before all is written.
        if stream.write_all(&bytes).await.is_ok() {
            let _ = stream.shutdown().await;
        }
        let mut answer = Vec::new();
        let _ = within("the end", stream.read_to_end(&mut answer)).await;
    }
    assert_eq!(runtime.health().await, 200);
    runtime.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_others_are_served() {
    const LIMIT: usize = 256 * 1024 * 1024;
    let runtime = Runtime::start().await;
    // One that asks for leave gets its answer without sending.
    let mut stream = TcpStream::connect(runtime.address).await.unwrap();
    let expect = [("expect", "100-continue")];
    request(&mut stream, "POST", "/call", &expect, LIMIT + 1).await;
    assert_eq!(response(&mut stream).await.status, 413);
    // One that just sends gets it afterwards; meanwhile others are served.
    let mut stream = TcpStream::connect(runtime.address).await.unwrap();
    request(&mut stream, "POST", "/call", &[], LIMIT + 1).await;
    let piece = Bytes::from(vec![0; 1024 * 1024]);
    for _ in 0..256 {
        stream.write_all(&piece).await.unwrap();
    }
    assert_eq!(runtime.health().await, 200);
    stream.write_all(&piece[..1]).await.unwrap();
    let refused = response(&mut stream).await;
    assert_eq!(refused.status, 413);
    assert_eq!(refused.header("content-type"), Some("application/msgpack"));
    assert!(memory(runtime.pid().as_raw_pid()) < 128 * 1024 * 1024);
    runtime.stop().await;
}
