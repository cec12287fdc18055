//! A lost connection ends no call.

use agentix_protocol::event::HostEvent;
use agentix_protocol::http::CallReply;
use agentix_reference_host::{CallError, ClientConfig, ConnectError, LinkError};

use super::calls::{add, hello, joined};
use super::scripted::{Runtime, Socket, legacy, once, quick};

/// Ends the TCP connection in the middle.
fn cut(socket: Socket) {
    drop(socket);
}

#[tokio::test]
async fn agx_call_047_accepted_calls_are_resumed() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let first = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let first_sent = socket.accepted().await;
    let second = tokio::spawn(client.remote(add { a: 3, b: 4 }));
    let second_sent = socket.accepted().await;
    // The outcome of another call proves that the acks were read.
    let third = tokio::spawn(client.remote(add { a: 5, b: 6 }));
    let third_sent = socket.accepted().await;
    socket.returns(&third_sent.call_id, &11).await;
    assert_eq!(joined(third).await.unwrap(), 11);
    cut(socket);

    let mut socket = runtime.joined().await;
    let ids = vec![first_sent.call_id.clone(), second_sent.call_id.clone()];
    assert_eq!(socket.rpc().await, (HostEvent::Resume(ids), None));
    socket.returns(&second_sent.call_id, &7).await;
    assert_eq!(joined(second).await.unwrap(), 7);
    socket.expect_ack(&second_sent.call_id).await;
    cut(socket);

    let mut socket = runtime.joined().await;
    let ids = vec![first_sent.call_id.clone()];
    assert_eq!(socket.rpc().await, (HostEvent::Resume(ids), None));
    socket.returns(&first_sent.call_id, &3).await;
    assert_eq!(joined(first).await.unwrap(), 3);
    socket.expect_ack(&first_sent.call_id).await;
}

#[tokio::test]
async fn agx_call_048_a_call_without_ack_is_sent_again() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let call = tokio::spawn(client.remote(hello()));
    let (sent, _) = socket.call().await;
    cut(socket);

    let mut socket = runtime.joined().await;
    let (again, ack) = socket.call().await;
    assert_eq!(again, sent);
    socket.accept(ack).await;
    cut(socket);

    // The ack may or may not have been read before the cut; either is safe.
    let mut socket = runtime.joined().await;
    match socket.rpc().await {
        (HostEvent::Call(again), Some(_)) => assert_eq!(again, sent),
        (HostEvent::Resume(ids), None) => assert_eq!(ids, std::slice::from_ref(&sent.call_id)),
        other => panic!("{other:?}"),
    }
    call.abort();
}

#[tokio::test]
async fn agx_call_049_to_an_older_peer_nothing_is_sent_twice() {
    let mut runtime = Runtime::start(legacy()).await;
    let (client, mut socket) = runtime.client(quick()).await;
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let (sent, _) = socket.call().await;
    cut(socket);
    let mut socket = runtime.joined().await;
    let ids = vec![sent.call_id.clone()];
    assert_eq!(socket.rpc().await, (HostEvent::Resume(ids), None));
    socket.returns(&sent.call_id, &3).await;
    assert_eq!(joined(call).await.unwrap(), 3);
}

#[tokio::test]
async fn calls_made_meanwhile_wait_for_the_connection() {
    let mut runtime = Runtime::v1().await;
    let (client, socket) = runtime.client(quick()).await;
    cut(socket);
    // The client has noticed: it asks for a new socket.
    let mut socket = runtime.socket().await;
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    socket.open().await;
    socket.join("/rpc").await;
    let sent = socket.accepted().await;
    socket.returns(&sent.call_id, &3).await;
    assert_eq!(joined(call).await.unwrap(), 3);
}

#[tokio::test]
async fn agx_http_054_a_202_for_a_former_connection_is_resumed() {
    let mut runtime = Runtime::v1().await;
    let config = ClientConfig {
        http_wait: ClientConfig::default().http_wait,
        ..quick()
    };
    let (client, socket) = runtime.client(config).await;
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let request = runtime.post().await;
    let sent = request.call();
    cut(socket);
    let mut socket = runtime.joined().await;
    // The ping shows that nothing was resumed yet: it might overtake the call.
    socket.text("2").await;
    assert_eq!(socket.sent_text().await, "3");
    request.answer(&CallReply::Accepted(sent.call_id.clone()));
    let ids = vec![sent.call_id.clone()];
    assert_eq!(socket.rpc().await, (HostEvent::Resume(ids), None));
    socket.returns(&sent.call_id, &3).await;
    assert_eq!(joined(call).await.unwrap(), 3);
}

#[tokio::test]
async fn without_reconnects_pending_calls_fail_at_once() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(once()).await;
    let call = tokio::spawn(client.remote(hello()));
    socket.accepted().await;
    cut(socket);
    let Err(CallError::Disconnected { source }) = joined(call).await else {
        panic!("not disconnected");
    };
    assert!(matches!(
        &*source,
        ConnectError::Lost {
            source: LinkError::Ended | LinkError::Io(_),
            ..
        }
    ));
    assert!(matches!(
        client.remote(hello()).await,
        Err(CallError::Disconnected { .. })
    ));
}

#[tokio::test]
async fn agx_con_085_attempts_come_to_an_end() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let call = tokio::spawn(client.remote(hello()));
    socket.accepted().await;
    runtime.stop().await;
    cut(socket);
    let Err(CallError::Disconnected { source }) = joined(call).await else {
        panic!("not disconnected");
    };
    assert!(
        matches!(&*source, ConnectError::Unreachable { .. }),
        "{source:?}"
    );
}

#[tokio::test]
async fn a_cancel_that_could_not_be_sent_is_sent_later() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let call = tokio::spawn(client.remote(hello()));
    let sent = socket.accepted().await;
    cut(socket);
    let mut socket = runtime.socket().await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    socket.open().await;
    socket.join("/rpc").await;
    assert_eq!(
        socket.rpc().await,
        (HostEvent::Cancel(sent.call_id.clone()), None)
    );
    let ids = vec![sent.call_id];
    assert_eq!(socket.rpc().await, (HostEvent::Resume(ids), None));
}
