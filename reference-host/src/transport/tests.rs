//! Order, keepalive and back-pressure over an in-memory stream and virtual time.

use std::time::Duration;

use agentix_protocol::ident::Namespace;
use agentix_protocol::packet::Payload;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep};
use tokio_websockets::{Config, Message, ServerBuilder, WebSocketStream};

use super::{Connection, Incoming};
use crate::error::LinkError;

type Server = WebSocketStream<DuplexStream>;

const PATIENCE: Duration = Duration::from_secs(325);

/// Both ends of a connection with `/rpc` joined, over a stream that holds `buffer` bytes. The
/// server cuts its messages into frames of `frame` bytes.
async fn pair(buffer: usize, frame: usize) -> (Connection<DuplexStream>, Server) {
    let (near, far) = duplex(buffer);
    let url = "http://127.0.0.1".parse().unwrap();
    let namespaces = [Namespace::rpc()];
    let server = async {
        let config = Config::default().frame_size(frame);
        let (_, mut server) = ServerBuilder::new()
            .config(config)
            .accept(far)
            .await
            .unwrap();
        let open = r#"0{"sid":"s","upgrades":[],"pingTimeout":300000,"pingInterval":25000}"#;
        server.send(Message::text(open)).await.unwrap();
        assert_eq!(text(&mut server).await, "40/rpc,{}");
        let joined = r#"40/rpc,{"sid":"r"}"#;
        server.send(Message::text(joined)).await.unwrap();
        server
    };
    let (connection, server) = tokio::join!(Connection::over(near, &url, &namespaces), server);
    (connection.unwrap(), server)
}

async fn message(server: &mut Server) -> Message {
    server.next().await.unwrap().unwrap()
}

async fn text(server: &mut Server) -> String {
    message(server).await.as_text().unwrap().to_owned()
}

fn emit(connection: &mut Connection<DuplexStream>, payload: Bytes) {
    let emitted = connection.emit(&Namespace::rpc(), "x", payload, false);
    assert_eq!(emitted, Ok(None));
}

const HEADER: &str = r#"451-/rpc,["x",{"_placeholder":true,"num":0}]"#;

#[tokio::test(start_paused = true)]
async fn agx_con_074_silence_ends_the_connection() {
    let (mut connection, _server) = pair(4096, 4096).await;
    let start = Instant::now();
    let error = connection.next().await.unwrap_err();
    assert!(matches!(error, LinkError::Silent { after } if after == PATIENCE));
    let silent = start.elapsed();
    assert!(silent >= PATIENCE && silent < PATIENCE + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn agx_con_075_any_byte_is_a_sign_of_life() {
    let (mut connection, mut server) = pair(4096, 4096).await;
    let start = Instant::now();
    let trickle = async {
        server.send(Message::text(HEADER)).await.unwrap();
        // A binary frame of four bytes.
        for byte in [0x82, 4, 1, 2, 3, 4] {
            sleep(PATIENCE - Duration::from_secs(1)).await;
            server.get_mut().write_all(&[byte]).await.unwrap();
        }
    };
    let (incoming, ()) = tokio::join!(connection.next(), trickle);
    let Incoming::Event(event) = incoming.unwrap() else {
        panic!("no event");
    };
    assert_eq!(
        event.payload,
        Payload::Binary(Bytes::from_static(&[1, 2, 3, 4]))
    );
    assert!(start.elapsed() > PATIENCE * 5);
}

#[tokio::test(start_paused = true)]
async fn agx_con_071_a_pong_overtakes_events_that_wait_but_splits_none() {
    let (mut connection, mut server) = pair(1024, 4096).await;
    let large = Bytes::from(vec![0x1e; 200 * 1024]);
    for _ in 0..3 {
        emit(&mut connection, large.clone());
    }
    // The server reads nothing: the first event is stuck, and the ping is heard all the same.
    server.send(Message::text("2")).await.unwrap();
    assert_eq!(connection.next().await.unwrap(), Incoming::Ping);

    let reader = async {
        let mut kinds = Vec::new();
        while kinds.len() < 7 {
            let message = message(&mut server).await;
            kinds.push(match message.as_text() {
                Some("3") => "pong",
                Some(HEADER) => "header",
                Some(other) => panic!("{other}"),
                None => {
                    assert_eq!(message.as_payload().len(), large.len());
                    "attachment"
                }
            });
        }
        server.send(Message::text("2")).await.unwrap();
        kinds
    };
    let (incoming, kinds) = tokio::join!(connection.next(), reader);
    assert_eq!(incoming.unwrap(), Incoming::Ping);
    assert_eq!(
        kinds,
        [
            "header",
            "attachment",
            "pong",
            "header",
            "attachment",
            "header",
            "attachment"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn agx_con_034_and_059_fragments_and_any_byte() {
    let (mut connection, mut server) = pair(1 << 20, 7).await;
    let payload: Vec<u8> = (0..=255).cycle().take(5000).collect();
    server.send(Message::text(HEADER)).await.unwrap();
    server.send(Message::binary(payload.clone())).await.unwrap();
    let Incoming::Event(event) = connection.next().await.unwrap() else {
        panic!("no event");
    };
    assert_eq!(event.payload, Payload::Binary(payload.into()));
}

#[tokio::test(start_paused = true)]
async fn agx_con_076_websocket_pings_are_answered() {
    let (mut connection, mut server) = pair(4096, 4096).await;
    let peer = async {
        server.send(Message::ping("are you there")).await.unwrap();
        let answer = message(&mut server).await;
        assert!(answer.is_pong());
        assert_eq!(&answer.as_payload()[..], b"are you there");
        server.send(Message::text("2")).await.unwrap();
    };
    let (incoming, ()) = tokio::join!(connection.next(), peer);
    assert_eq!(incoming.unwrap(), Incoming::Ping);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_pings_and_never_reads_is_left() {
    let (mut connection, mut server) = pair(64, 4096).await;
    let flood = async { while server.send(Message::ping("?")).await.is_ok() {} };
    let link = async {
        let error = connection.next().await.unwrap_err();
        drop(connection);
        error
    };
    let (error, ()) = tokio::join!(link, flood);
    assert!(matches!(error, LinkError::Flood));
}

#[tokio::test(start_paused = true)]
async fn what_is_queued_goes_out_before_leaving() {
    let (mut connection, mut server) = pair(256, 4096).await;
    for _ in 0..50 {
        emit(&mut connection, Bytes::from_static(&[0x80]));
    }
    let peer = async {
        for _ in 0..50 {
            assert_eq!(text(&mut server).await, HEADER);
            assert!(message(&mut server).await.is_binary());
        }
        let (code, _) = message(&mut server)
            .await
            .as_close()
            .map(|c| (u16::from(c.0), ()))
            .unwrap();
        assert_eq!(code, 1000);
        assert!(server.next().await.is_none());
    };
    tokio::join!(connection.close(Duration::from_secs(2)), peer);
}

#[tokio::test(start_paused = true)]
async fn leaving_a_peer_that_does_not_read_takes_a_bounded_time() {
    let (mut connection, _server) = pair(256, 4096).await;
    let large = Bytes::from(vec![0; 100_000]);
    emit(&mut connection, large);
    let start = Instant::now();
    connection.close(Duration::from_secs(2)).await;
    assert!(start.elapsed() < Duration::from_secs(3));
}
