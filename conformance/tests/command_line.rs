//! Exit statuses, reports, and what is left behind.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Read;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use support::{command, suite};

const SUITE: &str = env!("CARGO_BIN_EXE_agentix-conformance");

#[test]
fn a_conforming_worker() {
    let run = suite(&[
        "run",
        "worker",
        "--format",
        "json",
        "--case",
        "worker/call/s*",
        "--",
        SUITE,
        "builtin-worker",
    ]);
    assert_eq!(run.exit_status, 0, "{}", run.stdout);
    assert!(run.passed().contains(&"worker/call/sync".to_owned()));
    assert_eq!(run.failed(), Vec::<String>::new());
}

#[test]
fn a_conforming_runtime_with_a_scripted_worker() {
    let run = suite(&[
        "run",
        "runtime",
        "--format",
        "json",
        "--case",
        "runtime/call/sync",
        "--case",
        "runtime/life/exit",
        "--",
        SUITE,
        "builtin-runtime",
        "serve",
        "--port",
        "{port}",
        "--worker",
        "{worker}",
    ]);
    assert_eq!(run.exit_status, 0, "{}", run.stdout);
    assert_eq!(run.passed(), ["runtime/call/sync", "runtime/life/exit"]);
}

#[test]
fn the_help_names_the_placeholders() {
    let run = suite(&["run", "--help"]);
    assert_eq!(run.exit_status, 0);
    for placeholder in ["{port}", "{worker}"] {
        assert!(run.stdout.contains(placeholder), "{}", run.stdout);
    }
}

#[test]
fn a_required_case_that_cannot_run_is_inconclusive() {
    let worker = format!("{SUITE} builtin-worker");
    let args = [
        "run",
        "runtime",
        "--format",
        "json",
        "--case",
        "runtime/call/sync",
        "--case",
        "runtime/life/exit",
        "--",
        SUITE,
        "builtin-runtime",
        "serve",
        "--port",
        "{port}",
        "--worker",
        &worker,
    ];
    let run = suite(&args);
    assert_eq!(run.exit_status, 4, "{}", run.stdout);
    assert_eq!(run.passed(), ["runtime/call/sync"]);
    assert_eq!(run.not_run(), ["runtime/life/exit"]);
    // Left out on purpose, it is not missed.
    let mut args = args.to_vec();
    args.insert(2, "--no-script");
    let run = suite(&args);
    assert_eq!(run.exit_status, 0, "{}", run.stdout);
    assert_eq!(run.not_run(), Vec::<String>::new());
}

#[test]
fn nothing_selected_is_inconclusive() {
    assert_eq!(suite(&["run", "--case", "nothing/*"]).exit_status, 4);
    assert_eq!(suite(&["run", "--testee", "nobody"]).exit_status, 4);
    assert_eq!(suite(&["list", "--case", "nothing/*"]).exit_status, 4);
}

#[test]
fn wrong_usage() {
    for args in [
        &["run", "--nonsense"][..],
        &["run", "conductor"],
        &["run", "runtime", "--", "program-without-a-port"],
        &["run", "--url", "http://127.0.0.1:1"],
        &["run", "worker", "--url", "http://127.0.0.1:1"],
        &["run", "runtime", "--url", "https://127.0.0.1:1"],
        &["run", "--", "a-command-of-unknown-role", "{port}"],
        &["run", "--req", "AGX-NOPE-001"],
        &["run", "--timeout-scale", "0"],
        &["run", "--timeout-scale", "NaN"],
        &["explain", "nothing/*"],
        &["explain", "AGX-NOPE-001"],
    ] {
        let run = suite(args);
        assert_eq!(run.exit_status, 2, "{args:?}");
        assert_eq!(run.stdout, "", "{args:?}");
        assert_ne!(run.stderr, "", "{args:?}");
    }
}

#[test]
fn a_testee_that_does_not_start() {
    for args in [
        &[
            "run",
            "worker",
            "--format",
            "json",
            "--",
            "/nonexistent/worker",
        ][..],
        &[
            "run",
            "runtime",
            "--format",
            "json",
            "--",
            "/nonexistent/runtime",
            "{port}",
        ],
        &[
            "run", "runtime", "--format", "json", "--", "false", "{port}",
        ],
        &[
            "run",
            "runtime",
            "--format",
            "json",
            "--timeout-scale",
            "0.01",
            "--",
            "sh",
            "-c",
            "sleep 100",
            "{port}",
        ],
    ] {
        let run = suite(args);
        assert_eq!(run.exit_status, 5, "{args:?}");
        assert_eq!(run.passed(), Vec::<String>::new(), "{args:?}");
    }
}

#[test]
fn what_the_suite_says_about_itself() {
    let list = suite(&["list"]);
    assert_eq!(list.exit_status, 0);
    assert!(list.stdout.contains("runtime/cancel/async "));
    let requirement = suite(&["explain", "AGX-CALL-051"]);
    assert_eq!(requirement.exit_status, 0);
    assert!(requirement.stdout.contains("runtime/cancel/async"));
    let case = suite(&["explain", "runtime/cancel/async"]);
    assert_eq!(case.exit_status, 0);
    assert!(case.stdout.contains("AGX-CALL-051"));
    assert_eq!(suite(&["--help"]).exit_status, 0);
    assert_eq!(suite(&["--version"]).exit_status, 0);
}

#[test]
fn the_report_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let run = suite(&[
        "run",
        "worker",
        "--out",
        out,
        "--case",
        "worker/call/sync",
        "--",
        SUITE,
        "builtin-worker",
    ]);
    assert_eq!(run.exit_status, 0, "{}", run.stdout);
    let summary = std::fs::read_to_string(folder.path().join("summary.txt")).unwrap();
    assert_eq!(summary, run.stdout);
    let report = std::fs::read_to_string(folder.path().join("report.jsonl")).unwrap();
    assert_eq!(report.lines().count(), 3);
    let mut transcripts = std::fs::read_dir(folder.path().join("transcripts")).unwrap();
    let testee = transcripts.next().unwrap().unwrap().path();
    let transcript = std::fs::read_to_string(testee.join("worker__call__sync.jsonl")).unwrap();
    let items: Vec<serde_json::Value> = transcript
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(items[0]["dir"], "testee->suite");
    assert_eq!(items[0]["hex"], "81a474797065a57265616479");
    assert_eq!(items[1]["dir"], "suite->testee");
    assert_eq!(items[1]["msgpack"]["callable"], "conformance::total");
}

/// A worker that notes its process id, and that of a child in its group, and stays.
fn lasting(file: &str) -> String {
    format!("sleep 1000 & echo $$ $! > {file}.new; mv {file}.new {file}; exec sleep 1000")
}

fn alive(pid: i32) -> bool {
    let known = Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok());
    // One that has ended, and that the init process has not collected yet, is still known.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    known
        && !stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"))
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn pids(file: &std::path::Path) -> Vec<i32> {
    let text = std::fs::read_to_string(file).unwrap();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

#[test]
fn no_process_is_left_behind_by_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let script = lasting(file.to_str().unwrap());
    let run = suite(&[
        "run",
        "worker",
        "--timeout-scale",
        "0.02",
        "--case",
        "worker/call/sync",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    assert_eq!(run.exit_status, 1);
    for pid in pids(&file) {
        wait_until("the end of the testee", || !alive(pid));
    }
}

#[test]
fn no_process_is_left_behind_by_an_interruption() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pids");
        let script = lasting(file.to_str().unwrap());
        let args = [
            "run",
            "worker",
            "--case",
            "worker/call/sync",
            "--",
            "sh",
            "-c",
            &script,
        ];
        let mut child = command(&args).spawn().unwrap();
        wait_until("the start of the testee", || file.exists());
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(130));
        let mut stdout = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        for pid in pids(&file) {
            wait_until("the end of the testee", || !alive(pid));
        }
    }
}
