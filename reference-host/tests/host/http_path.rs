//! The short path: `POST /call`, and what becomes of calls whose answer does not come by it.

use std::time::Duration;

use agentix_protocol::error::RemoteError;
use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::http::CallReply;
use agentix_protocol::message::Outcome;
use agentix_protocol::target::CallTarget;
use agentix_reference_host::{CallError, ClientConfig};
use tokio::io::AsyncWriteExt;

use super::calls::{add, joined};
use super::scripted::{Runtime, legacy, pickle, quick};

fn with_http() -> ClientConfig {
    ClientConfig {
        http_wait: Some(Duration::from_millis(1500)),
        ..quick()
    }
}

#[tokio::test]
async fn agx_http_011_a_call_goes_by_post_and_is_acked_on_rpc() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(with_http()).await;
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let request = runtime.post().await;
    assert_eq!(request.headers["prefer"], "respond-async, wait=1.5");
    assert_eq!(request.headers["agentix-sid"], "sid-of-rpc");
    assert_eq!(request.headers["content-type"], "application/msgpack");
    let sent = request.call();
    assert_eq!(sent.callable, "app::add");
    request.answer(&CallReply::Done(Ok(pickle(&3).into())));
    assert_eq!(joined(call).await.unwrap(), 3);
    socket.expect_ack(&sent.call_id).await;

    let call = tokio::spawn(client.try_remote(add { a: 1, b: 2 }));
    let request = runtime.post().await;
    let sent = request.call();
    let error = RemoteError::new("KeyError".into(), "'x'");
    request.answer(&CallReply::Done(Err(error.clone())));
    assert_eq!(joined(call).await.unwrap(), Err(error));
    socket.expect_ack(&sent.call_id).await;
}

#[tokio::test]
async fn agx_http_050_after_202_the_outcome_comes_on_rpc() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(with_http()).await;
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let request = runtime.post().await;
    let sent = request.call();
    request.answer(&CallReply::Accepted(sent.call_id.clone()));
    socket.returns(&sent.call_id, &3).await;
    assert_eq!(joined(call).await.unwrap(), 3);
    socket.expect_ack(&sent.call_id).await;
}

#[tokio::test]
async fn agx_http_051_without_an_answer_the_same_call_goes_on_rpc() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(with_http()).await;
    for case in 0..4 {
        let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
        let request = runtime.post().await;
        let sent = request.call();
        match case {
            0 => request.cut(),
            1 => request.raw_answer(500, b"Internal Server Error".to_vec()),
            2 => request.raw_answer(200, b"no msgpack".to_vec()),
            _ => request.raw_answer(418, Vec::new()),
        }
        let again = socket.accepted().await;
        assert_eq!(again, sent, "case {case}");
        socket.returns(&sent.call_id, &3).await;
        assert_eq!(joined(call).await.unwrap(), 3);
        socket.expect_ack(&sent.call_id).await;
    }
}

#[tokio::test]
async fn agx_http_052_to_an_older_peer_it_is_resumed_and_not_sent_again() {
    let mut runtime = Runtime::start(legacy()).await;
    let (client, mut socket) = runtime.client(with_http()).await;
    for case in 0..2 {
        let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
        let request = runtime.post().await;
        let sent = request.call();
        match case {
            0 => request.cut(),
            _ => request.raw_answer(500, b"Internal Server Error".to_vec()),
        }
        let resume = HostEvent::Resume(vec![sent.call_id.clone()]);
        assert_eq!(socket.rpc().await, (resume, None), "case {case}");
        socket.returns(&sent.call_id, &3).await;
        assert_eq!(joined(call).await.unwrap(), 3);
        socket.expect_ack(&sent.call_id).await;
    }
    // No such route: certainly not accepted.
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let request = runtime.post().await;
    let sent = request.call();
    request.raw_answer(404, b"Not Found".to_vec());
    assert_eq!(socket.accepted().await, sent);
    call.abort();
}

#[tokio::test]
async fn a_refused_request_is_final_and_not_acked() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(with_http()).await;
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let request = runtime.post().await;
    let error = RemoteError::bad_request("callable is missing");
    request.answer(&CallReply::BadRequest(error.clone()));
    assert!(matches!(joined(call).await, Err(CallError::Remote(found)) if found == error));

    // Nothing was said about it on /rpc: the next event is the ack of another call.
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let request = runtime.post().await;
    let sent = request.call();
    request.answer(&CallReply::Done(Ok(pickle(&3).into())));
    assert_eq!(joined(call).await.unwrap(), 3);
    socket.expect_ack(&sent.call_id).await;
}

#[tokio::test]
async fn a_call_that_waits_for_its_post_can_be_cancelled() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(with_http()).await;
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let request = runtime.post().await;
    let sent = request.call();
    call.abort();
    assert_eq!(
        socket.rpc().await,
        (HostEvent::Cancel(sent.call_id.clone()), None)
    );
    request.answer(&CallReply::Done(Err(RemoteError::cancelled())));
    socket.expect_ack(&sent.call_id).await;
}

#[tokio::test]
async fn a_post_without_end_goes_on_over_rpc() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(with_http()).await;
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let request = runtime.post().await;
    // The wait of 1.5 s and a grace of 30 s.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(32)).await;
    tokio::time::resume();
    assert_eq!(socket.accepted().await, request.call());
    call.abort();
}

#[tokio::test]
async fn a_burst_overflows_to_rpc() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(with_http()).await;
    let calls: Vec<_> = (0..70)
        .map(|a| tokio::spawn(client.remote(add { a, b: 1 })))
        .collect();
    let mut posts = Vec::new();
    for _ in 0..64 {
        posts.push(runtime.post().await);
    }
    for _ in 64..70 {
        let sent = socket.accepted().await;
        socket.returns(&sent.call_id, &0).await;
    }
    for post in posts {
        post.answer(&CallReply::Done(Ok(pickle(&0).into())));
    }
    for call in calls {
        assert_eq!(joined(call).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn large_messages_hold_any_byte() {
    let mut runtime = Runtime::v1().await;
    let payload: Vec<u8> = (0..=255).cycle().take(8 * 1024 * 1024).collect();
    let target = CallTarget::validate("app::echo").unwrap();
    for config in [quick(), with_http()] {
        let has_http = config.http_wait.is_some();
        let (client, mut socket) = runtime.client(config).await;
        let call = tokio::spawn(client.call_raw(&target, payload.clone().into()));
        let sent = if has_http {
            let request = runtime.post().await;
            let sent = request.call();
            request.answer(&CallReply::Done(Ok(sent.arguments.clone())));
            sent
        } else {
            let sent = socket.accepted().await;
            let outcome = Outcome::value(sent.call_id.clone(), sent.arguments.clone());
            socket.send(&RuntimeEvent::Outcome(outcome)).await;
            sent
        };
        assert!(sent.arguments == payload);
        assert!(joined(call).await.unwrap() == payload);
        socket.expect_ack(&sent.call_id).await;
    }
}

#[tokio::test]
async fn a_body_that_trickles_goes_on_over_rpc() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(with_http()).await;
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let request = runtime.post().await;
    let sent = request.call();
    let mut stream = request.begin_answer(1000).await;
    // The head and 30 s more, wherever in between the client reads the head.
    for _ in 0..6 {
        // The client may have given up already.
        let _ = stream.write_all(b"x").await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(11)).await;
        tokio::time::resume();
    }
    assert_eq!(socket.accepted().await, sent);
    call.abort();
}
