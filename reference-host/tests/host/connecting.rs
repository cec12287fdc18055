//! Connecting: the order of the handshake, and servers that are no runtime.

use std::time::Duration;

use agentix_protocol::http::{Health, Incompatible};
use agentix_protocol::ident::Namespace;
use agentix_protocol::packet::Payload;
use agentix_reference_host::transport::{Connection, EmitError, Incoming};
use agentix_reference_host::{ClientConfig, ConnectError, LinkError, Stranger, health};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::scripted::{Runtime, once, within};

#[tokio::test]
async fn agx_con_041_nothing_is_emitted_before_the_namespaces_are_joined() {
    let mut runtime = Runtime::v1().await;
    let url = runtime.url.parse().unwrap();
    let namespaces = ["/rpc", "/trace", "/log"].map(|name| Namespace::new(name).unwrap());
    let open = async {
        let mut connection = Connection::open(&url, &namespaces, Duration::from_secs(10))
            .await
            .unwrap();
        for namespace in &namespaces {
            let emitted = connection.emit(namespace, "hello", vec![0x80].into(), true);
            assert!(matches!(emitted, Ok(Some(_))));
        }
        connection
    };
    let server = async {
        let mut socket = runtime.socket().await;
        assert_eq!(socket.uri, "/socket.io/?EIO=4&transport=websocket");
        socket.open().await;
        for name in ["/rpc", "/trace", "/log"] {
            assert_eq!(socket.sent_text().await, format!("40{name},{{}}"));
        }
        // In another order, with an event between.
        socket.text(r#"40/log,{"sid":"a"}"#).await;
        socket
            .event_of("/log", "record", vec![0x81, 0xa1, b'a', 1])
            .await;
        socket.text(r#"40/rpc,{"sid":"b"}"#).await;
        socket.text("2").await;
        assert_eq!(socket.sent_text().await, "3");
        socket.text(r#"40/trace,{"sid":"c"}"#).await;
        socket
    };
    let (mut connection, mut socket) = within(async { tokio::join!(open, server) }).await;
    let sids = namespaces.each_ref().map(|name| connection.sid(name));
    assert_eq!(sids, [Some("b"), Some("c"), Some("a")]);

    let Incoming::Event(event) = connection.next().await.unwrap() else {
        panic!("the early event is lost");
    };
    assert_eq!(
        (event.namespace.as_str(), event.name.as_str()),
        ("/log", "record")
    );
    assert_eq!(
        event.payload,
        Payload::Binary(vec![0x81, 0xa1, b'a', 1].into())
    );
    assert_eq!(connection.next().await.unwrap(), Incoming::Ping);

    socket.text("41/log,").await;
    assert_eq!(
        within(connection.next()).await.unwrap(),
        Incoming::Left(Namespace::log())
    );
    let refused = connection.emit(&Namespace::log(), "hello", vec![0x80].into(), false);
    assert_eq!(refused, Err(EmitError::NotJoined));
    let refused = connection.emit(&Namespace::rpc(), "x", vec![0; 268_435_457].into(), false);
    assert_eq!(refused, Err(EmitError::TooLarge { len: 268_435_457 }));
    for name in ["/rpc", "/trace", "/log"] {
        assert_eq!(socket.event().await.namespace.as_str(), name);
        if name == "/rpc" {
            // Writing goes on while the connection is awaited.
            socket.text("42/rpc,[\"x\",1]").await;
            assert!(matches!(
                within(connection.next()).await,
                Ok(Incoming::Event(_))
            ));
        }
    }
}

fn impatient() -> ClientConfig {
    ClientConfig {
        connect_timeout: Duration::from_millis(200),
        ..once()
    }
}

#[tokio::test]
async fn nobody_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = Runtime::refused(&url, once()).await;
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
    let error = within(health(&url, Duration::from_secs(5)))
        .await
        .unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
    let error = Runtime::refused("https://127.0.0.1:1", once()).await;
    assert!(matches!(error, ConnectError::TlsUnsupported { .. }));
    let error = Runtime::refused("127.0.0.1:1", once()).await;
    assert!(matches!(error, ConnectError::InvalidUrl { .. }));
}

#[tokio::test]
async fn a_server_that_never_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let error = Runtime::refused(&url, impatient()).await;
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error:?}");
    let error = within(health(&url, Duration::from_millis(100)))
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error:?}");
    drop(listener);
}

/// A server that answers the first bytes of each connection with `answer`, and then closes it.
async fn stranger(answer: Vec<u8>) -> (String, tokio::task::JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                if matches!(stream.peek(&mut [0]).await, Ok(1)) {
                    let _ = stream.write_all(&answer).await;
                }
            });
        }
    });
    (url, tasks)
}

fn http_answer(status: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[tokio::test]
async fn servers_that_are_no_runtime() {
    let (url, _tasks) = stranger(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()).await;
    let error = Runtime::refused(&url, once()).await;
    assert!(
        matches!(
            error,
            ConnectError::NotARuntime {
                found: Stranger::NotHttp(_),
                ..
            }
        ),
        "{error:?}"
    );
    let (url, _tasks) = stranger(http_answer(404, "not here")).await;
    let error = Runtime::refused(&url, once()).await;
    assert!(
        matches!(
            error,
            ConnectError::NotARuntime {
                found: Stranger::HealthStatus(404),
                ..
            }
        ),
        "{error:?}"
    );
    for body in ["<html></html>", "[]", r#"{"status":"ok"}"#] {
        let (url, _tasks) = stranger(http_answer(200, body)).await;
        let error = Runtime::refused(&url, once()).await;
        assert!(
            matches!(
                error,
                ConnectError::NotARuntime {
                    found: Stranger::HealthBody(_),
                    ..
                }
            ),
            "{error:?}"
        );
    }
    let long = " ".repeat(100_000);
    let (url, _tasks) = stranger(http_answer(200, &long)).await;
    let error = Runtime::refused(&url, once()).await;
    assert!(
        matches!(
            error,
            ConnectError::NotARuntime {
                found: Stranger::HealthBody(_),
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn agx_ver_002_health_is_read_first_and_decides() {
    let health = |version: &str, protocol: Option<&str>| Health {
        status: "ok".into(),
        version: version.into(),
        protocol: protocol.map(str::to_owned),
    };
    let runtime = Runtime::start(health("0.2.6", None)).await;
    let error = Runtime::refused(&runtime.url, once()).await;
    assert!(
        matches!(
            error,
            ConnectError::Incompatible {
                source: Incompatible::TooOld { .. },
                ..
            }
        ),
        "{error:?}"
    );
    let runtime = Runtime::start(health("3.0", Some("2.0"))).await;
    let error = Runtime::refused(&runtime.url, once()).await;
    assert!(
        matches!(
            error,
            ConnectError::Incompatible {
                source: Incompatible::Protocol { .. },
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn runtimes_that_stop_half_way() {
    // No WebSocket.
    let mut runtime = Runtime::v1().await;
    let url = runtime.url.clone();
    let server = async {
        let mut stream = runtime.stream().await;
        stream.write_all(&http_answer(404, "")).await.unwrap();
        stream
    };
    let (error, _) = tokio::join!(Runtime::refused(&url, once()), server);
    assert!(
        matches!(
            error,
            ConnectError::NotARuntime {
                found: Stranger::NoWebSocket(_),
                ..
            }
        ),
        "{error:?}"
    );

    // A response header without end.
    let server = async {
        let mut stream = runtime.stream().await;
        let _ = stream.write_all(b"HTTP/1.1 101 X\r\na: ").await;
        while stream.write_all(&[b'x'; 8192]).await.is_ok() {}
    };
    let (error, ()) = tokio::join!(Runtime::refused(&url, once()), server);
    assert!(
        matches!(
            error,
            ConnectError::Lost {
                source: LinkError::Io(_),
                ..
            }
        ),
        "{error:?}"
    );

    // No Engine.IO.
    for first in ["hello", "40/rpc,", "0{}", "0{\"sid\":1}", "2"] {
        let server = async {
            let mut socket = runtime.socket().await;
            socket.text(first).await;
            socket
        };
        let (error, _) = tokio::join!(Runtime::refused(&url, once()), server);
        assert!(
            matches!(
                error,
                ConnectError::NotARuntime {
                    found: Stranger::NoEngine,
                    ..
                }
            ),
            "{first}: {error:?}"
        );
    }

    // No answer to CONNECT.
    let server = async {
        let mut socket = runtime.socket().await;
        socket.open().await;
        socket
    };
    let (error, _) = tokio::join!(Runtime::refused(&url, impatient()), server);
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error:?}");

    // A refusal.
    let server = async {
        let mut socket = runtime.socket().await;
        socket.open().await;
        socket.text(r#"44/rpc,{"message":"not today"}"#).await;
        socket
    };
    let (error, _) = tokio::join!(Runtime::refused(&url, once()), server);
    assert!(
        matches!(&error, ConnectError::NamespaceRefused { message, .. } if message == "not today"),
        "{error:?}"
    );

    // Another namespace, and the same one twice.
    let server = async {
        let mut socket = runtime.socket().await;
        socket.open().await;
        socket.text(r#"40/other,{"sid":"x"}"#).await;
        socket
    };
    let (error, _) = tokio::join!(Runtime::refused(&url, once()), server);
    assert!(
        matches!(
            error,
            ConnectError::Lost {
                source: LinkError::OutOfTurn(_),
                ..
            }
        ),
        "{error:?}"
    );

    // Events without end.
    let server = async {
        let mut socket = runtime.socket().await;
        socket.open().await;
        for _ in 0..1025 {
            socket.text("42/rpc,[\"x\"]").await;
        }
        socket
    };
    let (error, _) = tokio::join!(Runtime::refused(&url, once()), server);
    assert!(
        matches!(
            error,
            ConnectError::Lost {
                source: LinkError::Flood,
                ..
            }
        ),
        "{error:?}"
    );
}
