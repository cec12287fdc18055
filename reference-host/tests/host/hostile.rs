//! Runtimes that break the protocol: each a typed error, and no call hangs.

use std::sync::Arc;

use agentix_protocol::packet::PacketError;
use agentix_reference_host::{CallError, ConnectError, LinkError};
use tokio::io::AsyncWriteExt;

use super::calls::{add, hello, joined};
use super::scripted::{Runtime, Socket, once, quick};

/// What a pending call ends with after the peer did `evil`.
async fn after<F>(evil: F) -> LinkError
where
    F: AsyncFnOnce(&mut Socket),
{
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(once()).await;
    let call = tokio::spawn(client.remote(hello()));
    socket.accepted().await;
    evil(&mut socket).await;
    let Err(CallError::Disconnected { source }) = joined(call).await else {
        panic!("the call did not end as lost");
    };
    match Arc::try_unwrap(source).map_or_else(|source| lost(&source), |source| lost(&source)) {
        Some(error) => error,
        None => panic!("not a lost connection"),
    }
}

fn lost(error: &ConnectError) -> Option<LinkError> {
    match error {
        ConnectError::Lost { source, .. } => Some(source.clone()),
        _ => None,
    }
}

/// What a pending call ends with after the peer sent this text.
async fn after_text(text: &str) -> LinkError {
    after(async |socket: &mut Socket| socket.text(text).await).await
}

/// What a pending call ends with after these bytes came in place of a frame.
async fn after_bytes(bytes: &[u8]) -> LinkError {
    after(async |socket: &mut Socket| {
        let stream = socket.socket.get_mut();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
    })
    .await
}

#[tokio::test]
async fn garbage_text() {
    type P = PacketError;
    let found = |error: LinkError| match error {
        LinkError::Packet(error) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(found(after_text("").await), P::Empty);
    assert_eq!(found(after_text("zzz").await), P::Type('z'));
    assert_eq!(found(after_text("4").await), P::Empty);
    assert_eq!(found(after_text("4x").await), P::Type('x'));
    assert!(matches!(found(after_text("42/rpc,{").await), P::Json(_)));
    assert_eq!(found(after_text("42/rpc,[]").await), P::EventName);
    assert_eq!(found(after_text("42/rpc,[1]").await), P::EventName);
    assert!(matches!(
        found(after_text("42/a\tb,[\"x\"]").await),
        P::Namespace(_)
    ));
    assert_eq!(
        found(after_text("43/rpc,99999999999999999999999[]").await),
        P::Number
    );
    let nested = format!("42/rpc,[\"x\",{}", "[".repeat(100_000));
    assert!(matches!(found(after_text(&nested).await), P::Json(_)));
}

#[tokio::test]
async fn agx_con_057_a_huge_header() {
    let header = format!("42/rpc,[\"{}\"]", "x".repeat(1024 * 1024));
    assert!(matches!(
        after_text(&header).await,
        LinkError::Packet(PacketError::HeaderTooLong(_))
    ));
    let ping = format!("2{}", "x".repeat(1024 * 1024));
    assert!(matches!(
        after_text(&ping).await,
        LinkError::Packet(PacketError::HeaderTooLong(_))
    ));
}

#[tokio::test]
async fn agx_con_054_and_055_attachments_out_of_turn() {
    let error = after(async |socket: &mut Socket| socket.binary(vec![0x80]).await).await;
    assert!(matches!(
        error,
        LinkError::Packet(PacketError::UnexpectedAttachment)
    ));
    let header = r#"451-/rpc,["call:result",{"_placeholder":true,"num":0}]"#;
    let error = after(async |socket: &mut Socket| {
        socket.text(header).await;
        socket.text(header).await;
    })
    .await;
    assert!(matches!(
        error,
        LinkError::Packet(PacketError::AttachmentDue)
    ));
    let error = after_text(&header.replace("51-", "52-")).await;
    assert!(matches!(
        error,
        LinkError::Packet(PacketError::Attachments(2))
    ));
    let error = after_text(r#"451-/rpc,["call:result",1]"#).await;
    assert!(matches!(error, LinkError::Packet(PacketError::Placeholder)));
}

#[tokio::test]
async fn endings_in_the_middle() {
    // A close where an attachment is due.
    let error = after(async |socket: &mut Socket| {
        socket
            .text(r#"451-/rpc,["call:result",{"_placeholder":true,"num":0}]"#)
            .await;
        let close = tokio_websockets::Message::close(
            Some(tokio_websockets::CloseCode::SERVICE_RESTART),
            "bye",
        );
        futures_util::SinkExt::send(&mut socket.socket, close)
            .await
            .unwrap();
    })
    .await;
    assert!(
        matches!(&error, LinkError::Closed { code: 1012, reason } if reason == "bye"),
        "{error:?}"
    );
    // The end of the stream inside a frame: a binary one of 100 bytes, of which 3 come.
    let error = after_bytes(&[0x82, 100, 1, 2, 3]).await;
    assert!(
        matches!(error, LinkError::Ended | LinkError::Io(_)),
        "{error:?}"
    );
    let error = after_bytes(&[]).await;
    assert!(
        matches!(error, LinkError::Ended | LinkError::Io(_)),
        "{error:?}"
    );
}

#[tokio::test]
async fn malformed_frames() {
    // Reserved bits, an unknown opcode, a masked frame, a lone continuation, bad UTF-8.
    for bytes in [
        &[0xf2, 0][..],
        &[0x83, 0],
        &[0x82, 0x80, 0, 0, 0, 0],
        &[0x80, 0],
        &[0x81, 1, 0xff],
    ] {
        let error = after_bytes(bytes).await;
        assert!(
            matches!(error, LinkError::WebSocket(_)),
            "{bytes:?}: {error:?}"
        );
    }
    // A length of 2^40: refused by the header alone.
    let error = after_bytes(&[0x82, 127, 0, 0, 1, 0, 0, 0, 0, 0]).await;
    assert!(
        matches!(
            error,
            LinkError::TooLarge {
                len: 0x100_0000_0000,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn packets_out_of_turn() {
    for text in [
        r#"40/rpc,{"sid":"again"}"#,
        r#"44/rpc,{"message":"no"}"#,
        r#"0{"sid":"x","upgrades":[],"pingTimeout":1,"pingInterval":1}"#,
    ] {
        let error = after_text(text).await;
        assert!(
            matches!(error, LinkError::OutOfTurn(_)),
            "{text}: {error:?}"
        );
    }
    for text in ["41/rpc,", "1"] {
        let error = after_text(text).await;
        assert!(matches!(error, LinkError::Left), "{text}: {error:?}");
    }
}

#[tokio::test]
async fn what_means_nothing_is_ignored() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(once()).await;
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let sent = socket.accepted().await;

    socket.text("6").await;
    socket.text("3").await;
    socket.text("42/rpc,[\"call:result\",{}]").await;
    socket.text("42/other,[\"x\"]").await;
    socket.text("43/rpc,77[]").await;
    socket.text("43/rpc,1[]").await;
    socket.event_of("/rpc", "call:result", Vec::new()).await;
    socket.event_of("/rpc", "call:result", vec![0xc1]).await;
    socket.event_of("/rpc", "call:result", vec![0x90]).await;
    socket.event_of("/rpc", "call:result", vec![0x80]).await;
    socket.event_of("/rpc", "nonsense", vec![0x80]).await;
    // An outcome of somebody else's call is not acked (AGX-CALL-045).
    let stranger = agentix_protocol::ident::CallId::from_random(1);
    socket.returns(&stranger, &1).await;
    // BadRequest to nobody.
    let rejected = agentix_protocol::event::RuntimeEvent::Rejected(
        agentix_protocol::error::RemoteError::bad_request("missing call_id"),
    );
    socket.send(&rejected).await;

    socket.returns(&sent.call_id, &3).await;
    assert_eq!(joined(call).await.unwrap(), 3);
    socket.expect_ack(&sent.call_id).await;
}

#[tokio::test]
async fn a_malformed_outcome_ends_its_call_alone() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let call = tokio::spawn(client.remote(hello()));
    let sent = socket.accepted().await;
    // {"call_id": id, "value": 1}
    let mut payload = vec![0x82, 0xa7];
    payload.extend(b"call_id");
    payload.extend([0xd9, 32]);
    payload.extend(sent.call_id.as_str().bytes());
    payload.extend([0xa5]);
    payload.extend(b"value");
    payload.push(1);
    socket.event_of("/rpc", "call:result", payload).await;
    assert!(matches!(
        joined(call).await,
        Err(CallError::Malformed { .. })
    ));
    socket.expect_ack(&sent.call_id).await;
}
