//! Calls on `/rpc`: what goes over the wire, and what the caller gets.

use std::collections::BTreeMap;
use std::time::Duration;

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::http::CallReply;
use agentix_protocol::message::Outcome;
use agentix_protocol::safepickle::{self, DecodeErrorKind};
use agentix_protocol::target::CallTarget;
use agentix_reference_host::{CallError, ClientConfig, RuntimeClient, json};
use futures_util::StreamExt;
use tokio::task::JoinHandle;

use super::scripted::{Runtime, Sent, pickle, quick, within};

agentix_protocol::remote! {
    pub(crate) fn run(input: String) -> BTreeMap<String, String> = "app::run";
    pub(crate) fn add(a: i64, b: i64, /) -> i64 = "app::add";
}

pub(crate) fn hello() -> run {
    run {
        input: "hello".into(),
    }
}

pub(crate) async fn joined<T>(task: JoinHandle<T>) -> T {
    within(task).await.unwrap()
}

#[tokio::test]
async fn agx_con_051_a_call_is_a_header_and_one_attachment() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let call = tokio::spawn(client.remote(hello()));

    assert_eq!(
        socket.sent_text().await,
        r#"451-/rpc,1["call",{"_placeholder":true,"num":0}]"#
    );
    let Sent::Binary(payload) = socket.sent().await else {
        panic!("the attachment does not follow its header");
    };
    let HostEvent::Call(sent) = HostEvent::decode("call", &payload.into()).unwrap() else {
        panic!("no call");
    };
    assert_eq!(sent.callable, "app::run");
    assert_eq!(sent.context, None);
    let id = sent.call_id.as_str();
    assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()));
    let arguments = safepickle::decode(&sent.arguments).unwrap();
    assert_eq!(
        json::to_string(arguments.root()).unwrap(),
        r#"[[], {"input": "hello"}]"#
    );

    socket.accept(1).await;
    let value = BTreeMap::from([("output".to_owned(), "HELLO".to_owned())]);
    socket.returns(&sent.call_id, &value).await;
    assert_eq!(joined(call).await.unwrap(), value);
    socket.expect_ack(&sent.call_id).await;
}

#[tokio::test]
async fn agx_call_001_calls_run_side_by_side_each_with_an_id_of_its_own() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let first = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    let first_sent = socket.accepted().await;
    let second = tokio::spawn(client.remote(add { a: 3, b: 4 }));
    let second_sent = socket.accepted().await;
    assert_ne!(first_sent.call_id, second_sent.call_id);

    socket.returns(&second_sent.call_id, &7).await;
    assert_eq!(joined(second).await.unwrap(), 7);
    socket.expect_ack(&second_sent.call_id).await;
    // Before, after or without the Socket.IO ack (AGX-RPC-065), and once for all (AGX-CALL-024).
    socket.returns(&second_sent.call_id, &8).await;
    socket.returns(&first_sent.call_id, &3).await;
    assert_eq!(joined(first).await.unwrap(), 3);
    socket.expect_ack(&first_sent.call_id).await;
}

fn raised() -> RemoteError {
    RemoteError {
        traceback: Some("Traceback …".into()),
        ..RemoteError::new(ErrorType::Other("ValueError".into()), "no good")
    }
}

#[tokio::test]
async fn what_a_function_raises_is_an_error_or_a_value() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;

    let call = tokio::spawn(client.remote(hello()));
    let sent = socket.accepted().await;
    let outcome = Outcome::error(sent.call_id.clone(), raised());
    socket.send(&RuntimeEvent::Outcome(outcome)).await;
    assert!(matches!(joined(call).await, Err(CallError::Remote(error)) if error == raised()));
    socket.expect_ack(&sent.call_id).await;

    let call = tokio::spawn(client.try_remote(hello()));
    let sent = socket.accepted().await;
    let outcome = Outcome::error(sent.call_id.clone(), raised());
    socket.send(&RuntimeEvent::Outcome(outcome)).await;
    assert_eq!(joined(call).await.unwrap(), Err(raised()));
    socket.expect_ack(&sent.call_id).await;

    let call = tokio::spawn(client.try_remote(add { a: 1, b: 2 }));
    let sent = socket.accepted().await;
    socket.returns(&sent.call_id, &3).await;
    assert_eq!(joined(call).await.unwrap(), Ok(3));
}

#[tokio::test]
async fn agx_call_025_to_027_a_refused_value_is_final() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let refused = |error: &CallError| match error {
        CallError::Decode(error) => matches!(
            error.kind(),
            DecodeErrorKind::RefusedGlobal { module, qualname }
                if module == "os" && qualname == "system"
        ),
        _ => false,
    };
    let value: &[u8] = b"cos\nsystem\n.";

    let call = tokio::spawn(client.remote(hello()));
    let first = socket.accepted().await;
    let outcome = Outcome::value(first.call_id.clone(), value.into());
    socket.send(&RuntimeEvent::Outcome(outcome)).await;
    assert!(refused(&joined(call).await.unwrap_err()));
    socket.expect_ack(&first.call_id).await;

    // The same error from the other form; and no cancel of the first came in between.
    let call = tokio::spawn(client.try_remote(hello()));
    let second = socket.accepted().await;
    let outcome = Outcome::value(second.call_id.clone(), value.into());
    socket.send(&RuntimeEvent::Outcome(outcome)).await;
    assert!(refused(&joined(call).await.unwrap_err()));
    socket.expect_ack(&second.call_id).await;

    let call = tokio::spawn(client.remote(hello()));
    let third = socket.accepted().await;
    socket.returns(&third.call_id, &5).await;
    assert!(matches!(joined(call).await, Err(CallError::Type(_))));
    socket.expect_ack(&third.call_id).await;
}

#[tokio::test]
async fn agx_call_058_a_dropped_call_is_cancelled() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let call = tokio::spawn(client.remote(hello()));
    let sent = socket.accepted().await;
    call.abort();
    assert_eq!(
        socket.rpc().await,
        (HostEvent::Cancel(sent.call_id.clone()), None)
    );

    // The Cancelled outcome is acked (AGX-CALL-039), though nobody awaits it.
    let outcome = Outcome::error(sent.call_id.clone(), RemoteError::cancelled());
    socket.send(&RuntimeEvent::Outcome(outcome)).await;
    socket.expect_ack(&sent.call_id).await;

    // A future that is never polled sends nothing at all: the next event is another call's.
    drop(client.remote(hello()));
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    assert_eq!(socket.accepted().await.callable, "app::add");
    call.abort();
}

#[tokio::test]
async fn agx_call_058_a_deadline_cancels() {
    let mut runtime = Runtime::v1().await;
    let after = Duration::from_millis(30);
    let config = ClientConfig {
        call_deadline: Some(after),
        ..quick()
    };
    let (client, mut socket) = runtime.client(config).await;
    let call = tokio::spawn(client.remote(hello()));
    let sent = socket.accepted().await;
    assert!(matches!(
        joined(call).await,
        Err(CallError::DeadlineExceeded { after: limit }) if limit == after
    ));
    assert_eq!(socket.rpc().await, (HostEvent::Cancel(sent.call_id), None));
}

#[tokio::test]
async fn closing_cancels_and_leaves_in_order() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let call = tokio::spawn(client.remote(hello()));
    let sent = socket.accepted().await;

    let client = std::sync::Arc::new(client);
    let other = client.clone();
    let closing = tokio::spawn(async move { tokio::join!(client.close(), client.close()) });
    assert_eq!(socket.rpc().await, (HostEvent::Cancel(sent.call_id), None));
    assert!(matches!(socket.sent().await, Sent::Close(1000)));
    assert!(matches!(joined(call).await, Err(CallError::Closed)));
    // Going on to read answers the close.
    assert!(within(socket.socket.next()).await.is_none());
    joined(closing).await;

    assert!(matches!(
        within(other.remote(hello())).await,
        Err(CallError::Closed)
    ));
    assert!(within(other.health()).await.is_err());
}

#[tokio::test]
async fn dropping_the_client_ends_its_calls_and_its_connection() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let call = tokio::spawn(client.remote(hello()));
    socket.accepted().await;
    drop(client);
    assert!(matches!(joined(call).await, Err(CallError::Closed)));
    loop {
        match within(socket.socket.next()).await {
            None | Some(Err(_)) => break,
            Some(Ok(_)) => {}
        }
    }
}

#[tokio::test]
async fn nothing_runs_after_close_or_drop() {
    let mut runtime = Runtime::v1().await;
    let url = runtime.url.clone();
    // The client gets an executor of its own, whose tasks can be counted.
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let alive = || executor.metrics().num_alive_tasks();
    for closes in [true, false] {
        // Over HTTP too, so that a connection is kept alive.
        let connecting = {
            let url = url.clone();
            executor
                .spawn(async move { RuntimeClient::connect(&url, ClientConfig::default()).await })
        };
        let mut socket = runtime.joined().await;
        let client = joined(connecting).await.unwrap();
        let call = executor.spawn(client.remote(add { a: 1, b: 2 }));
        let request = runtime.post().await;
        let sent = request.call();
        request.answer(&CallReply::Done(Ok(pickle(&3).into())));
        assert_eq!(joined(call).await.unwrap(), 3);
        socket.expect_ack(&sent.call_id).await;
        assert!(alive() > 0);
        if closes {
            let closing = executor.spawn(async move { client.close().await });
            assert!(matches!(socket.sent().await, Sent::Close(1000)));
            assert!(within(socket.socket.next()).await.is_none());
            joined(closing).await;
        } else {
            drop(client);
        }
        // A task is counted until just after whoever awaits it hears of its end, and an aborted one
        // until the executor gets to it.
        within(async {
            while alive() > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    executor.shutdown_background();
}

#[tokio::test]
async fn tools_call_by_name_with_json() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let target = CallTarget::validate("pkg.mod::Tools.run").unwrap();
    let kwargs = serde_json::from_str(r#"{"x": [1, null]}"#).unwrap();
    let call = tokio::spawn(client.call_value(&target, vec!["a".into(), 2.into()], kwargs));
    let sent = socket.accepted().await;
    assert_eq!(sent.callable, "pkg.mod::Tools.run");
    let arguments = safepickle::decode(&sent.arguments).unwrap();
    assert_eq!(
        json::to_string(arguments.root()).unwrap(),
        r#"[["a", 2], {"x": [1, null]}]"#
    );
    socket.returns(&sent.call_id, &(1, "b")).await;
    let value = joined(call).await.unwrap();
    assert_eq!(json::to_string(value.root()).unwrap(), r#"[1, "b"]"#);
    socket.expect_ack(&sent.call_id).await;

    let arguments = pickle(&((), BTreeMap::<String, ()>::new()));
    let call = tokio::spawn(client.call_raw(&target, arguments.clone().into()));
    let sent = socket.accepted().await;
    assert_eq!(sent.arguments, arguments);
    socket.returns(&sent.call_id, &true).await;
    assert_eq!(joined(call).await.unwrap(), pickle(&true));
}

#[tokio::test]
async fn agx_con_071_pings_are_answered_at_once() {
    let mut runtime = Runtime::v1().await;
    let (_client, mut socket) = runtime.client(quick()).await;
    socket.text("2").await;
    assert_eq!(socket.sent_text().await, "3");
    socket.text("2probe").await;
    assert_eq!(socket.sent_text().await, "3probe");
}

#[tokio::test]
async fn agx_call_076_a_call_above_the_limit_is_not_sent() {
    let mut runtime = Runtime::v1().await;
    let (client, mut socket) = runtime.client(quick()).await;
    let target = CallTarget::validate("app::run").unwrap();
    let arguments = vec![0; 256 * 1024 * 1024].into();
    assert!(matches!(
        within(client.call_raw(&target, arguments)).await,
        Err(CallError::PayloadTooLarge {
            limit: 268_435_456,
            ..
        })
    ));
    // The connection lives on, and the next thing on it is another call.
    let call = tokio::spawn(client.remote(add { a: 1, b: 2 }));
    assert_eq!(socket.accepted().await.callable, "app::add");
    call.abort();
}
