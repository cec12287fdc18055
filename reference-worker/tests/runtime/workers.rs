//! The life of workers: started, lost, failing to start, replaced.

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::event::HostEvent;
use agentix_protocol::frame::{FromWorker, PipeEvent, ToWorker};
use agentix_protocol::framing::FrameDecoder;
use agentix_protocol::http::CallReply;
use agentix_protocol::ident::Namespace;
use agentix_protocol::packet::SocketPacket;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::*;

fn error(reply: CallReply) -> RemoteError {
    match reply {
        CallReply::Done(Err(error)) => error,
        other => panic!("no error: {other:?}"),
    }
}

#[tokio::test]
async fn a_worker_that_is_killed_fails_its_calls_and_is_replaced() {
    let runtime = Runtime::start().await;
    let first: i32 = value(runtime.call(1, &pid {}).await);
    let (mut host, _) = Host::connect(&runtime, &["/rpc"]).await;
    let endless = HostEvent::Call(call(2, &block { seconds: 1e6 }));
    host.emit("/rpc", endless.name(), Some(1), &endless.payload())
        .await;
    host.acked(1).await;
    kill_process(Pid::from_raw(first).unwrap(), Signal::KILL).unwrap();
    let died = host.outcome().await.result.unwrap_err();
    assert_eq!(died.error_type, ErrorType::WorkerDied);
    assert_eq!(died.returncode, Some(-9));
    let second: i32 = value(runtime.call(3, &pid {}).await);
    assert_ne!(first, second);
    assert!(!is_alive(first));
    let exited = error(runtime.call(4, &exit { code: 7 }).await);
    assert_eq!(exited.error_type, ErrorType::WorkerDied);
    assert_eq!(exited.returncode, Some(7));
    runtime.stop().await;
    assert!(!is_alive(second));
}

#[tokio::test]
async fn a_worker_that_cannot_start_answers_at_once_and_in_the_pause_after() {
    let runtime = Runtime::with_worker("sh -c 'exit 3'").await;
    for id in [1, 2] {
        let failed = error(runtime.call(id, &pid {}).await);
        assert_eq!(failed.error_type, ErrorType::WorkerUnavailable);
        assert_eq!(failed.returncode, Some(3));
    }
    runtime.stop().await;
}

#[tokio::test]
async fn a_program_that_vanished_is_a_worker_that_cannot_start() {
    let folder = Folder::new("vanished");
    let program = folder.path("worker");
    std::fs::copy("/bin/sh", &program).unwrap();
    let runtime = Runtime::with_worker(program.to_str().unwrap()).await;
    std::fs::remove_file(&program).unwrap();
    let failed = error(runtime.call(1, &pid {}).await);
    assert_eq!(failed.error_type, ErrorType::WorkerUnavailable);
    assert_eq!(failed.returncode, None);
    runtime.stop().await;
}

#[tokio::test]
async fn agx_pipe_027_each_worker_has_an_id_of_its_own() {
    let folder = Folder::new("worker_id");
    folder.frames("ready", &[FromWorker::Ready]);
    let script = "echo $AGENTIX_WORKER_ID >> ids; cat ready; head -c 4 >/dev/null; exit 5";
    let runtime = Runtime::with_worker(&folder.shell(script)).await;
    for id in [1, 2] {
        let died = error(runtime.call(id, &pid {}).await);
        assert_eq!(died.error_type, ErrorType::WorkerDied);
    }
    runtime.stop().await;
    let ids = String::from_utf8(folder.read("ids").unwrap()).unwrap();
    let ids: Vec<&str> = ids.lines().collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert_ne!(ids[0], ids[1]);
    for id in ids {
        let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        assert!(id.len() == 8 && id.chars().all(hex), "{id}");
    }
}

#[tokio::test]
async fn agx_pipe_039_standard_error_is_passed_on() {
    let folder = Folder::new("standard_error");
    folder.frames("ready", &[FromWorker::Ready]);
    let script = "echo said by the worker >&2; cat ready; head -c 4 >/dev/null; exit 5";
    let mut command = command(&["serve", "--worker", &folder.shell(script)]);
    command.stderr(std::fs::File::create(folder.path("stderr")).unwrap());
    let runtime = Runtime::from(command).await;
    let died = error(runtime.call(1, &pid {}).await);
    assert_eq!(died.error_type, ErrorType::WorkerDied);
    runtime.stop().await;
    let said = String::from_utf8(folder.read("stderr").unwrap()).unwrap();
    assert!(
        said.lines().any(|line| line == "said by the worker"),
        "{said}"
    );
}

#[tokio::test]
async fn a_lost_pipe_kills_the_worker() {
    let folder = Folder::new("lost_pipe");
    folder.frames("ready", &[FromWorker::Ready]);
    // After the call: a length of 2 GiB, and then it hangs.
    let script =
        "cat ready; echo $$ > pid; head -c 4 >/dev/null; printf '\\0\\0\\0\\200'; sleep 1000";
    let runtime = Runtime::with_worker(&folder.shell(script)).await;
    let failed = error(runtime.call(1, &pid {}).await);
    assert_eq!(failed.error_type, ErrorType::WorkerDied);
    assert_eq!(failed.returncode, Some(-9));
    let group: i32 = String::from_utf8(folder.read("pid").unwrap())
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    until("the end of its group", || group_members(group).is_empty()).await;
    runtime.stop().await;
}

#[tokio::test]
async fn plugin_events_travel_as_the_bytes_they_are() {
    let folder = Folder::new("plugin");
    let app = Namespace::new("/app").unwrap();
    // A map with an integer key and an extension: neither is of the protocol's own.
    let odd = b"\x81\x05\xd4\x63\x01";
    let emit = FromWorker::SioEmit(PipeEvent {
        namespace: app.clone(),
        event: "hello".to_owned(),
        data: odd.to_vec().into(),
    });
    let forged = FromWorker::SioEmit(PipeEvent {
        namespace: Namespace::rpc(),
        event: "call:result".to_owned(),
        data: b"\x80".to_vec().into(),
    });
    let log = FromWorker::SioOpen(Namespace::log());
    let start = [FromWorker::SioOpen(app.clone()), log, FromWorker::Ready];
    folder.frames("start", &start);
    let named = FromWorker::SioEmit(PipeEvent {
        namespace: app.clone(),
        event: "x".repeat(2 << 20),
        data: odd.to_vec().into(),
    });
    folder.frames("emit", &[forged, named, emit]);
    let script = "cat start; head -c 4 | cat > received; cat emit; cat >> received";
    let runtime = Runtime::with_worker(&folder.shell(script)).await;
    let (mut host, _) = Host::connect(&runtime, &["/rpc", "/app", "/log"]).await;
    // Acked without a worker, and held until one has opened the namespace.
    host.emit("/app", "first", Some(1), odd).await;
    host.acked(1).await;
    host.emit("/log", "_resume", Some(2), b"\x80").await;
    host.acked(2).await;
    host.packet(&SocketPacket::Event {
        namespace: app.clone(),
        ack: Some(3),
        name: "second".into(),
        args: vec![serde_json::json!({"a": [1, null]}), serde_json::json!(2)],
    })
    .await;
    host.acked(3).await;
    // Nothing that a stream has: ignored.
    host.emit("/log", "record", Some(9), b"\x80").await;
    host.acked(9).await;
    // Dropped: not one msgpack value.
    host.emit("/app", "third", Some(4), b"\xc1").await;
    host.acked(4).await;
    host.rpc(&HostEvent::Call(call(1, &pid {}))).await;
    let event = host.event().await;
    assert_eq!(
        (event.namespace, event.name.as_str()),
        (app.clone(), "hello")
    );
    assert_eq!(&attachment(event.payload)[..], odd);
    host.packet(&SocketPacket::Event {
        namespace: app.clone(),
        ack: None,
        name: "fourth".into(),
        args: vec![],
    })
    .await;

    let mut events = Vec::new();
    until("what the worker got", || {
        let mut decoder = FrameDecoder::default();
        decoder.push(&folder.read("received").unwrap_or_default());
        events.clear();
        while let Ok(Some(body)) = decoder.next_frame() {
            if let Ok(ToWorker::SioInbound(event)) = ToWorker::decode(&body) {
                events.push((event.event, event.data.to_vec()));
            }
        }
        events.len() == 4
    })
    .await;
    let json = b"\x81\xa1a\x92\x01\xc0".to_vec();
    // Order holds for each namespace.
    let of_log = events.iter().position(|(name, _)| name == "_resume");
    assert_eq!(events.remove(of_log.unwrap()).1, b"\x80");
    assert_eq!(
        events,
        [
            ("first".to_owned(), odd.to_vec()),
            ("second".to_owned(), json),
            ("fourth".to_owned(), vec![0xc0]),
        ]
    );
    runtime.stop().await;
}
