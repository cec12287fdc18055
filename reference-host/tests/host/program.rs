//! The program `agentix-host`: what it prints, and how it ends.

use std::collections::BTreeMap;
use std::process::{Output, Stdio};

use agentix_protocol::error::RemoteError;
use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::http::CallReply;
use agentix_protocol::message::Outcome;
use agentix_protocol::safepickle;
use agentix_reference_host::json;
use tokio::process::{Child, Command};

use super::scripted::{Runtime, pickle, within};

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_agentix-host"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("RUST_LOG")
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn ended(child: Child) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = within(child.wait_with_output()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[tokio::test]
async fn a_result_is_one_line_of_json() {
    let mut runtime = Runtime::v1().await;
    let url = runtime.url.clone();
    let kwargs = r#"{"input": "hello"}"#;
    let child = start(&[
        "call", "--url", &url, "app::run", "--arg", "[-1]", "--kwargs", kwargs,
    ]);
    let mut socket = runtime.joined().await;
    let request = runtime.post().await;
    let sent = request.call();
    assert_eq!(sent.callable, "app::run");
    let arguments = safepickle::decode(&sent.arguments).unwrap();
    assert_eq!(
        json::to_string(arguments.root()).unwrap(),
        r#"[[[-1]], {"input": "hello"}]"#
    );
    let value = BTreeMap::from([("output", "HELLO")]);
    request.answer(&CallReply::Done(Ok(pickle(&value).into())));
    socket.expect_ack(&sent.call_id).await;
    assert_eq!(
        ended(child).await,
        (
            Some(0),
            "{\"output\": \"HELLO\"}\n".to_owned(),
            String::new()
        )
    );
}

#[tokio::test]
async fn a_failed_call_is_one_line_and_the_traceback() {
    let mut runtime = Runtime::v1().await;
    let url = runtime.url.clone();
    let child = start(&["call", "--url", &url, "--no-http", "app::run"]);
    let mut socket = runtime.joined().await;
    let sent = socket.accepted().await;
    let error = RemoteError {
        traceback: Some("Traceback (most recent call last):\n  here\nValueError: no good\n".into()),
        ..RemoteError::new("ValueError".into(), "no good")
    };
    let outcome = Outcome::error(sent.call_id.clone(), error);
    socket.send(&RuntimeEvent::Outcome(outcome)).await;
    let (status, stdout, stderr) = ended(child).await;
    assert_eq!((status, stdout.as_str()), (Some(1), ""));
    assert_eq!(
        stderr,
        "agentix-host: ValueError: no good\nTraceback (most recent call last):\n  here\nValueError: no good\n"
    );
}

#[tokio::test]
async fn a_timeout_and_a_signal_cancel_the_call() {
    let mut runtime = Runtime::v1().await;
    let url = runtime.url.clone();
    let child = start(&[
        "call",
        "--url",
        &url,
        "--no-http",
        "--timeout",
        "0.05",
        "app::run",
    ]);
    let mut socket = runtime.joined().await;
    let sent = socket.accepted().await;
    assert_eq!(socket.rpc().await.0, HostEvent::Cancel(sent.call_id));
    drop(socket);
    assert_eq!(ended(child).await.0, Some(1));

    let child = start(&["call", "--url", &url, "--no-http", "app::run"]);
    let mut socket = runtime.joined().await;
    let sent = socket.accepted().await;
    let id = i32::try_from(child.id().unwrap()).unwrap();
    let id = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(socket.rpc().await.0, HostEvent::Cancel(sent.call_id));
    drop(socket);
    assert_eq!(ended(child).await.0, Some(130));
}

#[tokio::test]
async fn wrong_usage_starts_nothing() {
    let url = "http://127.0.0.1:1";
    for args in [
        &["call", "--url", url][..],
        &["call", "app::run"],
        &["call", "--url", url, "--local", "app::run"],
        &["call", "--url", url, "--path", "/tmp", "app::run"],
        &["call", "--url", url, "app.run"],
        &["call", "--url", url, "app::<lambda>"],
        &["call", "--url", url, "--arg", "{", "app::run"],
        &["call", "--url", url, "--kwargs", "[]", "app::run"],
        &["call", "--url", url, "--timeout", "-1", "app::run"],
        &["call", "--url", url, "--docker", "image", "app::run"],
        &["health"],
        &[],
    ] {
        let (status, stdout, _) = ended(start(args)).await;
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{args:?}");
    }
}

#[tokio::test]
async fn without_a_runtime_the_status_is_3() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for args in [
        &["call", "--url", &url, "app::run"][..],
        &["call", "--url", "https://127.0.0.1:1", "app::run"],
        &["call", "--local", "--path", "/no/such/folder", "app::run"],
        &["health", &url],
    ] {
        let (status, stdout, stderr) = ended(start(args)).await;
        assert_eq!((status, stdout.as_str()), (Some(3), ""), "{args:?}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[tokio::test]
async fn health_prints_json() {
    let runtime = Runtime::v1().await;
    let (status, stdout, stderr) = ended(start(&["health", &runtime.url])).await;
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    assert_eq!(
        stdout,
        "{\"status\": \"ok\", \"version\": \"9.9.9\", \"protocol\": \"1.0\"}\n"
    );
}
