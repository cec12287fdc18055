//! Every way to end leaves no process behind.

use std::process::Stdio;
use std::time::Duration;

use agentix_protocol::error::ErrorType;
use agentix_protocol::event::HostEvent;
use agentix_protocol::frame::FromWorker;
use agentix_protocol::http::CallReply;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncBufReadExt as _;

use crate::support::*;

#[tokio::test]
async fn sigterm_with_a_call_running() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        if signal == Signal::HUP && ignores_hang_up() {
            not_run(
                "sigterm_with_a_call_running (SIGHUP)",
                "SIGHUP is ignored here",
            );
            continue;
        }
        let mut runtime = Runtime::start().await;
        let worker: i32 = value(runtime.call(1, &pid {}).await);
        let (mut host, _) = Host::connect(&runtime, &["/rpc"]).await;
        for (id, event) in [
            (2, HostEvent::Call(call(2, &block { seconds: 1e6 }))),
            (3, HostEvent::Call(call(3, &sleep { seconds: 1e6 }))),
        ] {
            host.emit("/rpc", event.name(), Some(id), &event.payload())
                .await;
            host.acked(id).await;
        }
        runtime.signal(signal);
        let (status, took) = timed(runtime.wait()).await;
        assert_eq!(status.code(), Some(0));
        assert!(
            took < Duration::from_secs(4),
            "an orderly end takes {took:?}"
        );
        assert!(group_members(worker).is_empty());
        // Its host hears of both calls, then of the end.
        for _ in 0..2 {
            let error = host.outcome().await.result.unwrap_err();
            assert_eq!(error.error_type, ErrorType::WorkerDied);
        }
        assert_eq!(host.closed().await, Some(1012));
    }
}

/// Nothing stays in the folder for temporary files, neither after an orderly end nor a forced one.
#[tokio::test]
async fn the_script_of_the_python_worker_is_removed() {
    if !has_python("the_script_of_the_python_worker_is_removed") {
        return;
    }
    let folder = Folder::new("script");
    let temporary = folder.path("tmp");
    for signals in [1, 2] {
        std::fs::create_dir_all(&temporary).unwrap();
        let mut command = command(&["serve"]);
        command.env("TMPDIR", &temporary);
        let mut runtime = Runtime::from(command).await;
        let CallReply::Done(Err(_)) = runtime.call(1, &missing {}).await else {
            panic!("no error")
        };
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1);
        for _ in 0..signals {
            runtime.signal(Signal::TERM);
        }
        runtime.wait().await;
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn the_end_of_standard_input() {
    let mut piped = command(&["serve", "--worker", WORKER]);
    piped.stdin(Stdio::piped());
    let mut runtime = Runtime::from(piped).await;
    let worker: i32 = value(runtime.call(1, &pid {}).await);
    drop(runtime.stdin.take());
    assert_eq!(runtime.wait().await.code(), Some(0));
    assert!(group_members(worker).is_empty());
}

#[tokio::test]
async fn an_input_that_had_ended_means_nothing() {
    let (ours, theirs) = std::io::pipe().unwrap();
    drop(theirs);
    let mut ended = command(&["serve", "--worker", WORKER]);
    ended.stdin(ours);
    let runtime = Runtime::from(ended).await;
    assert_eq!(
        value::<String>(runtime.call(1, &echo { value: "x".into() }).await),
        "x"
    );
    runtime.stop().await;
}

#[tokio::test]
async fn a_parent_that_is_gone() {
    if ignores_hang_up() {
        not_run(
            "a_parent_that_is_gone",
            "SIGHUP is ignored here: runtimes outlive their parent",
        );
        return;
    }
    let mut shell = tokio::process::Command::new("sh");
    shell
        .args([
            "-c",
            r#""$0" serve --worker "$1" </dev/null & echo "pid $!"; wait"#,
        ])
        .args([RUNTIME, WORKER])
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut shell = shell.spawn().unwrap();
    let mut lines = tokio::io::BufReader::new(shell.stdout.take().unwrap()).lines();
    let (mut runtime, mut listens) = (0, false);
    while runtime == 0 || !listens {
        let line = within("a line", lines.next_line()).await.unwrap().unwrap();
        match line.strip_prefix("pid ") {
            Some(pid) => runtime = pid.parse().unwrap(),
            None => listens = true,
        }
    }
    assert!(is_alive(runtime));
    shell.kill().await.unwrap();
    until("the runtime's end", || !is_alive(runtime)).await;
}

#[tokio::test]
async fn what_a_worker_started_ends_with_it() {
    let folder = Folder::new("grandchildren");
    folder.frames("ready", &[FromWorker::Ready]);
    let script = "sleep 1000 & sleep 1000 & echo $$ > pid; cat ready; cat >/dev/null; exit 5";
    let mut runtime = Runtime::with_worker(&folder.shell(script)).await;
    let (mut host, _) = Host::connect(&runtime, &["/rpc"]).await;
    host.rpc(&HostEvent::Call(call(1, &pid {}))).await;
    let mut group = 0;
    until("the worker's start", || {
        let text = String::from_utf8(folder.read("pid").unwrap_or_default()).unwrap();
        group = text.trim().parse().unwrap_or(0);
        group != 0 && group_members(group).len() >= 3
    })
    .await;
    runtime.signal(Signal::TERM);
    assert_eq!(runtime.wait().await.code(), Some(0));
    assert!(group_members(group).is_empty());
    let error = host.outcome().await.result.unwrap_err();
    assert_eq!(error.returncode, Some(5));
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    let folder = Folder::new("stubborn");
    folder.frames("ready", &[FromWorker::Ready]);
    let script = "trap '' TERM; echo $$ > pid; cat ready; while :; do sleep 1; done";
    let mut runtime = Runtime::with_worker(&folder.shell(script)).await;
    let (mut host, _) = Host::connect(&runtime, &["/rpc"]).await;
    host.rpc(&HostEvent::Call(call(1, &pid {}))).await;
    let mut group = 0;
    until("the worker's start", || {
        let text = String::from_utf8(folder.read("pid").unwrap_or_default()).unwrap();
        group = text.trim().parse().unwrap_or(0);
        group != 0
    })
    .await;
    runtime.signal(Signal::TERM);
    // The first one has arrived when no connection is accepted any more.
    let address = runtime.address;
    within("the first signal", async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    runtime.signal(Signal::TERM);
    let (status, took) = timed(runtime.wait()).await;
    assert_eq!(status.code(), Some(130));
    assert!(took < Duration::from_secs(2), "took {took:?}");
    until("the end of its group", || group_members(group).is_empty()).await;
}

#[tokio::test]
async fn a_worker_ends_when_its_runtime_was_killed() {
    let mut runtime = Runtime::start().await;
    let worker: i32 = value(runtime.call(1, &pid {}).await);
    let (mut host, _) = Host::connect(&runtime, &["/rpc"]).await;
    let endless = HostEvent::Call(call(2, &block { seconds: 1e6 }));
    host.emit("/rpc", endless.name(), Some(1), &endless.payload())
        .await;
    host.acked(1).await;
    // A stranger in its group, as a child that a function left behind.
    runtime.signal(Signal::KILL);
    runtime.wait().await;
    until("the worker's end", || !is_alive(worker)).await;
}

#[tokio::test]
async fn a_worker_without_a_runtime_ends_what_is_left_of_its_group() {
    for (id, stays) in [(Some("0123abcd"), false), (None, true)] {
        // The shell becomes the worker, and so the worker leads the group.
        let mut command = tokio::process::Command::new("sh");
        command
            .args(["-c", r#"sleep 1000 & echo "$!" >&2; exec "$0""#, WORKER])
            .env_remove("AGENTIX_WORKER_ID")
            .envs(id.map(|id| ("AGENTIX_WORKER_ID", id)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut worker = command.spawn().unwrap();
        let stderr = worker.stderr.take().unwrap();
        let mut lines = tokio::io::BufReader::new(stderr).lines();
        let line = within("a line", lines.next_line()).await.unwrap();
        let left: i32 = line.unwrap().parse().unwrap();
        drop(worker.stdin.take());
        let status = within("the worker's end", worker.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0));
        if stays {
            assert!(is_alive(left));
            kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
        } else {
            until("the end of what was left", || !is_alive(left)).await;
        }
    }
}

#[tokio::test]
async fn a_worker_told_to_stop_ends_and_is_replaced() {
    let runtime = Runtime::start().await;
    let worker: i32 = value(runtime.call(1, &pid {}).await);
    kill_process(Pid::from_raw(worker).unwrap(), Signal::TERM).unwrap();
    until("the worker's end", || !is_alive(worker)).await;
    let next: i32 = value(runtime.call(2, &pid {}).await);
    assert_ne!(worker, next);
    runtime.stop().await;
}

/// Entered without a new session, a container's processes have a group and a session whose leaders
/// have no number inside: the runtime starts, calls, and ends with its standard input.
#[tokio::test]
async fn group_and_session_of_an_outer_namespace() {
    const NAMESPACE: [&str; 4] = ["--map-root-user", "--pid", "--fork", "--mount-proc"];
    let possible = std::process::Command::new("unshare")
        .args(NAMESPACE)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if !possible.is_ok_and(|status| status.success()) {
        let test = "group_and_session_of_an_outer_namespace";
        not_run(test, "unshare cannot make a process namespace");
        return;
    }
    let mut inside = tokio::process::Command::new("unshare");
    inside
        .args(NAMESPACE)
        .args(["--kill-child", RUNTIME, "serve", "--worker", WORKER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut runtime = Runtime::from(inside).await;
    let worker: i32 = value(runtime.call(1, &pid {}).await);
    assert!(worker > 1);
    drop(runtime.stdin.take());
    assert_eq!(runtime.wait().await.code(), Some(0));
}
