//! Calls over HTTP and `/rpc`, through the worker in Rust.

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::event::HostEvent;
use agentix_protocol::http::CallReply;
use agentix_protocol::ident::CallId;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::*;

#[tokio::test]
async fn a_call_over_http() {
    let runtime = Runtime::start().await;
    let value_of = echo {
        value: "a\0é😀".into(),
    };
    let returned: String = value(runtime.call(1, &value_of).await);
    assert_eq!(returned, value_of.value);
    let CallReply::Done(Err(error)) = runtime.call(2, &missing {}).await else {
        panic!("no error")
    };
    assert_eq!(error.error_type, ErrorType::Other("AttributeError".into()));
    runtime.stop().await;
}

#[tokio::test]
async fn the_python_worker_is_the_default() {
    if !has_python("the_python_worker_is_the_default") {
        return;
    }
    let folder = Folder::new("python_default");
    let app =
        "async def run(input: str) -> dict[str, str]:\n    return {'output': input.upper()}\n";
    std::fs::write(folder.path("app.py"), app).unwrap();
    let mut command = command(&["serve"]);
    command.arg("--path").arg(folder.path(""));
    let runtime = Runtime::from(command).await;
    agentix_protocol::remote! {
        fn run(input: String) -> std::collections::BTreeMap<String, String> = "app::run";
    }
    let arguments = run {
        input: "hello".into(),
    };
    let returned: <run as agentix_protocol::remote::RemoteFn>::Output =
        value(runtime.call(1, &arguments).await);
    assert_eq!(returned["output"], "HELLO");
    runtime.stop().await;
}

#[tokio::test]
async fn a_call_over_rpc_is_acked_and_answered() {
    let runtime = Runtime::start().await;
    let (mut host, _) = Host::connect(&runtime, &["/rpc"]).await;
    let event = HostEvent::Call(call(1, &echo { value: "x".into() }));
    host.emit("/rpc", event.name(), Some(7), &event.payload())
        .await;
    host.acked(7).await;
    let outcome = host.outcome().await;
    assert_eq!(outcome.call_id, CallId::from_random(1));
    assert_eq!(value::<String>(CallReply::Done(outcome.result)), "x");
    runtime.stop().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once() {
    let runtime = Runtime::start().await;
    let (mut host, _) = Host::connect(&runtime, &["/rpc"]).await;
    let id = CallId::from_random(1);
    host.rpc(&HostEvent::Call(call(1, &sleep { seconds: 1e6 })))
        .await;
    host.rpc(&HostEvent::Cancel(id.clone())).await;
    let outcome = host.outcome().await;
    assert_eq!(outcome.call_id, id);
    assert_eq!(outcome.result, Err(RemoteError::cancelled()));
    // The worker lives on, and so does the connection.
    host.rpc(&HostEvent::Call(call(2, &pid {}))).await;
    assert!(host.outcome().await.result.is_ok());
    runtime.stop().await;
}

#[tokio::test]
async fn what_functions_print_stays_off_the_pipe() {
    let runtime = Runtime::start().await;
    for (id, stream) in [(1, "stdout"), (2, "stderr")] {
        let printed = print_text {
            text: "\x10\0\0\0printed".into(),
            stream: stream.into(),
        };
        value::<()>(runtime.call(id, &printed).await);
    }
    let child = print_child {
        text: "by a child".into(),
    };
    assert_eq!(value::<i32>(runtime.call(3, &child).await), 0);
    runtime.stop().await;
}

#[tokio::test]
async fn a_panic_is_an_error_of_its_call_alone() {
    let runtime = Runtime::start().await;
    let before: i32 = value(runtime.call(1, &pid {}).await);
    let mut unhappy = call(2, &pid {});
    // A pickle that says it is a pair and holds neither tuple nor dict.
    unhappy.arguments = bytes::Bytes::from_static(b"\x80\x04NN\x86.");
    let CallReply::Done(Err(error)) = runtime.post(&unhappy, &[]).await else {
        panic!("no error")
    };
    assert_eq!(error.error_type, ErrorType::ArgumentsDecodeError);
    assert_eq!(value::<i32>(runtime.call(3, &pid {}).await), before);
    runtime.stop().await;
}

#[tokio::test]
async fn the_outcome_of_a_caller_that_is_gone_goes_to_the_owner() {
    let runtime = Runtime::start().await;
    let (mut host, sids) = Host::connect(&runtime, &["/rpc"]).await;
    let key = || "gone".to_owned();
    let slow = call(
        1,
        &count_slow {
            key: key(),
            seconds: 1.0,
        },
    );
    let body = slow.encode();
    let mut stream = TcpStream::connect(runtime.address).await.unwrap();
    let headers = [("agentix-sid", sids[0].as_str()), ("prefer", "wait=50")];
    request(&mut stream, "POST", "/call", &headers, body.len()).await;
    stream.write_all(&body).await.unwrap();
    // Gone once the call runs, and before it ends.
    let mut id = 100;
    while value::<i64>(runtime.call(id, &counted { key: key() }).await) == 0 {
        id += 1;
    }
    drop(stream);
    let outcome = host.outcome().await;
    assert_eq!(outcome.call_id, slow.call_id);
    assert!(outcome.result.is_ok());
    runtime.stop().await;
}

#[tokio::test]
async fn statuses_and_headers_of_post_call() {
    let runtime = Runtime::start().await;
    let post = async |headers: &[(&str, &str)], body: &[u8]| {
        http(runtime.address, "POST", "/call", headers, body).await
    };
    let slow = call(1, &sleep { seconds: 1e6 }).encode();
    let accepted = post(&[("prefer", "wait=0.25")], &slow).await;
    assert_eq!(accepted.status, 202);
    assert_eq!(accepted.header("preference-applied"), Some("wait=0.25"));
    assert_eq!(accepted.header("content-type"), Some("application/msgpack"));
    let done = post(&[], &call(2, &pid {}).encode()).await;
    assert_eq!(done.status, 200);
    assert_eq!(done.header("preference-applied"), Some("wait=1"));
    for body in [&b""[..], b"\xc1", b"\x80", b"\x90"] {
        let bad = post(&[], body).await;
        assert_eq!(bad.status, 400, "{body:?}");
        assert_eq!(bad.header("preference-applied"), None);
        assert!(matches!(
            CallReply::decode(400, &bad.body),
            Ok(CallReply::BadRequest(error)) if error.error_type == ErrorType::BadRequest
        ));
    }
    for (method, path, status) in [
        ("GET", "/call", 405),
        ("HEAD", "/health", 405),
        ("POST", "/health", 405),
        ("GET", "/", 404),
        ("GET", "/health", 200),
    ] {
        let response = http(runtime.address, method, path, &[], b"").await;
        assert_eq!(response.status, status, "{method} {path}");
    }
    runtime.stop().await;
}
