//! Large messages, bursts and slow readers: nothing is lost, and memory stays bounded.

use agentix_protocol::codec::Value;
use agentix_protocol::event::HostEvent;
use agentix_protocol::frame::FromWorker;
use agentix_protocol::http::CallReply;
use agentix_protocol::ident::{CallId, Namespace};

use crate::support::*;

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_large_message_each_way() {
    let runtime = Runtime::start().await;
    let (mut host, _) = Host::connect(&runtime, &["/rpc"]).await;
    let large = echo {
        value: "x".repeat(64 * MIB),
    };
    host.rpc(&HostEvent::Call(call(1, &large))).await;
    let outcome = host.outcome().await;
    let returned: String = value(CallReply::Done(outcome.result));
    assert!(returned == large.value);
    host.rpc(&HostEvent::Ack(outcome.call_id)).await;
    let returned: String = value(runtime.call(2, &large).await);
    assert!(returned == large.value);
    runtime.stop().await;
}

#[tokio::test]
async fn outcomes_for_a_host_that_does_not_read_wait_in_the_table() {
    let runtime = Runtime::start().await;
    let (mut slow, _) = Host::connect(&runtime, &["/rpc"]).await;
    const CALLS: u128 = 40;
    for id in 1..=CALLS {
        slow.rpc(&HostEvent::Call(call(id, &blob { size: MIB })))
            .await;
    }
    // Others are served meanwhile.
    let (mut other, _) = Host::connect(&runtime, &["/rpc"]).await;
    for id in 1001..1101 {
        other.rpc(&HostEvent::Call(call(id, &pid {}))).await;
        assert_eq!(other.outcome().await.call_id, CallId::from_random(id));
    }
    let mut ids = Vec::new();
    for _ in 0..CALLS {
        let outcome = slow.outcome().await;
        assert!(outcome.result.unwrap().len() >= MIB);
        slow.rpc(&HostEvent::Ack(outcome.call_id.clone())).await;
        ids.push(outcome.call_id);
    }
    ids.sort();
    let expected: Vec<_> = (1..=CALLS).map(CallId::from_random).collect();
    assert_eq!(ids, expected);
    runtime.stop().await;
}

/// A worker that sends this many events once it has a call, and then their number as its value.
fn burst(folder: &Folder, events: u64, padding: usize) -> String {
    let app = Namespace::new("/app").unwrap();
    folder.frames("ready", &[FromWorker::Ready, FromWorker::SioOpen(app)]);
    let all: Vec<_> = (0..events).map(|n| app_event(n, padding)).collect();
    folder.frames("events", &all);
    folder.shell("cat ready; head -c 4 >/dev/null; cat events; cat >/dev/null")
}

async fn read_all(host: &mut Host, events: u64) {
    for expected in 0..events {
        let event = host.event().await;
        assert_eq!(event.name, "tick");
        let data = attachment(event.payload);
        let value = Value::decode(&data).unwrap();
        assert_eq!(value.as_array().unwrap()[0].as_u64(), Some(expected));
    }
}

#[tokio::test]
async fn a_burst_to_a_slow_reader_loses_nothing() {
    const EVENTS: u64 = 2000;
    let folder = Folder::new("burst");
    let runtime = Runtime::with_worker(&burst(&folder, EVENTS, 16 * 1024)).await;
    let (mut slow, _) = Host::connect(&runtime, &["/app"]).await;
    let (mut fast, _) = Host::connect(&runtime, &["/rpc", "/app"]).await;
    fast.rpc(&HostEvent::Call(call(1, &pid {}))).await;
    // The fast one has everything before the slow one reads anything.
    read_all(&mut fast, EVENTS).await;
    read_all(&mut slow, EVENTS).await;
    runtime.stop().await;
}

#[tokio::test]
async fn a_flood_to_a_host_that_does_not_read_is_bounded() {
    const EVENTS: u64 = 4000;
    let folder = Folder::new("flood");
    let runtime = Runtime::with_worker(&burst(&folder, EVENTS, 64 * 1024)).await;
    let (mut slow, _) = Host::connect(&runtime, &["/app"]).await;
    let (mut other, _) = Host::connect(&runtime, &["/rpc", "/app"]).await;
    other.rpc(&HostEvent::Call(call(1, &pid {}))).await;
    // The other one reads until the worker's output is not read any more: 64 MiB wait for the
    // slow one by then.
    for _ in 0..1000 {
        other.event().await;
    }
    let runtime_pid = runtime.pid().as_raw_pid();
    assert!(memory(runtime_pid) < 160 * MIB);
    let rest = async {
        for _ in 1000..EVENTS {
            other.event().await;
        }
    };
    tokio::join!(read_all(&mut slow, EVENTS), rest);
    assert!(memory(runtime_pid) < 160 * MIB);
    runtime.stop().await;
}

#[tokio::test]
async fn calls_for_a_worker_that_does_not_read_are_bounded() {
    let folder = Folder::new("deaf");
    folder.frames("ready", &[FromWorker::Ready]);
    let worker = folder.shell("cat ready; exec sleep 1000");
    let mut runtime = Runtime::with_worker(&worker).await;
    let (mut host, _) = Host::connect(&runtime, &["/rpc"]).await;
    let runtime_pid = runtime.pid().as_raw_pid();
    // 1 GiB; it cannot all be sent.
    let sending = async {
        let large = echo {
            value: "x".repeat(32 * MIB),
        };
        for id in 1..=32 {
            host.rpc(&HostEvent::Call(call(id, &large))).await;
        }
    };
    let watching = async {
        until("calls that wait", || memory(runtime_pid) > 250 * MIB).await;
        for _ in 0..200 {
            assert!(memory(runtime_pid) < 450 * MIB);
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = sending => panic!("all calls were taken"),
        () = watching => {}
    }
    // Others are answered as far as they need no worker, and the end is orderly.
    assert_eq!(runtime.health().await, 200);
    runtime.signal(rustix::process::Signal::TERM);
    assert_eq!(runtime.wait().await.code(), Some(0));
}
