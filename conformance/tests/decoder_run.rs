//! `run decoder`: counts, exit statuses and reports, and that each sort of failure is one.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value as Json, json};
use support::{Run, command, suite};

/// A line of a file of vectors.
fn line(id: &str, hex: &str, expect: &str, value: Json) -> String {
    let (group, _) = id.split_once('/').unwrap();
    format!(
        "{}\n",
        json!({ "id": id, "group": group, "protocol": 2, "hex": hex, "verdict": "accept",
                "error_class": null, "stage": null, "expect": expect, "value": value, "note": "" })
    )
}

fn int(value: &str) -> Json {
    json!({ "root": { "int": value }, "nodes": [] })
}

/// The int 1.
const ONE: &str = "4b012e";
/// A global that no policy admits: os.system.
const REFUSED: &str = "636f730a73797374656d0a2e";

fn in_file(lines: &[String], more: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vectors.jsonl");
    std::fs::write(&path, lines.concat()).unwrap();
    let args = ["run", "decoder", "--vectors", path.to_str().unwrap()];
    suite(&[&args[..], more].concat())
}

fn vectors(lines: &[Json]) -> Vec<(&str, &str)> {
    let lines = lines.iter().filter(|line| line["kind"] == "vector");
    lines
        .map(|line| {
            (
                line["vector"].as_str().unwrap(),
                line["status"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn each_sort_of_wrong_is_told() {
    let lines = [
        line("good/value", ONE, "accept", int("1")),
        line("good/error", REFUSED, "reject", Json::Null),
        line("bad/value", ONE, "accept", int("2")),
        line("bad/error", REFUSED, "accept", int("1")),
        line("bad/no-error", ONE, "reject", Json::Null),
        line(
            "bad/table",
            ONE,
            "accept",
            json!({ "root": { "int": "1" } }),
        ),
        line("any/equal", ONE, "any", int("1")),
        line("any/other", ONE, "any", int("2")),
        line("any/unknown", ONE, "any", Json::Null),
        line("any/not-of-the-format", ONE, "any", json!({ "root": 7 })),
        line("any/error", REFUSED, "any", Json::Null),
    ];
    let run = in_file(&lines, &["--format", "json", "--jobs", "1"]);
    assert_eq!(run.exit_status, 1, "{}", run.stderr);
    let told = run.lines();
    assert_eq!(
        vectors(&told),
        [
            ("good/value", "right"),
            ("good/error", "right"),
            ("bad/value", "wrong"),
            ("bad/error", "wrong"),
            ("bad/no-error", "wrong"),
            ("bad/table", "wrong"),
            ("any/equal", "any_equal"),
            ("any/other", "any_other"),
            ("any/unknown", "any_other"),
            ("any/not-of-the-format", "any_other"),
            ("any/error", "any_error"),
        ]
    );
    let wrong = |id: &str| told.iter().find(|line| line["vector"] == id).unwrap();
    assert_eq!(wrong("good/error")["error_kind"], "refused_global");
    assert_eq!(wrong("bad/error")["error_kind"], "refused_global");
    for id in ["bad/value", "bad/error", "bad/no-error", "bad/table"] {
        for field in ["expected", "found", "repeat"] {
            assert!(wrong(id)[field].is_string(), "{id} {field}");
        }
    }
    let summary = told.last().unwrap();
    let total = json!({ "right": 2, "wrong": 4, "over_limit": 0, "crashed": 0,
                        "any_equal": 1, "any_other": 3, "any_error": 1 });
    assert_eq!(summary["total"], total);
    assert_eq!(summary["groups"].as_array().unwrap().len(), 3);
    assert_eq!(summary["exit_status"], 1);

    // For people: every wrong one is there by its id.
    let run = in_file(&lines, &[]);
    assert_eq!(run.exit_status, 1);
    for id in [
        "bad/value",
        "bad/error",
        "bad/no-error",
        "bad/table",
        "any/other",
    ] {
        assert!(
            run.stdout.contains(&format!("\n  {id}\n")),
            "{}",
            run.stdout
        );
    }
    assert!(!run.stdout.contains("\n  good/"), "{}", run.stdout);
    // Each alone fails, and what is right alone does not.
    for (case, status) in [
        ("bad/value", 1),
        ("bad/error", 1),
        ("bad/no-error", 1),
        ("bad/table", 1),
        ("good/*", 0),
        ("any/*", 0),
    ] {
        assert_eq!(
            in_file(&lines, &["--case", case]).exit_status,
            status,
            "{case}"
        );
    }
}

#[test]
fn nothing_to_run_is_inconclusive() {
    assert_eq!(in_file(&[], &[]).exit_status, 4);
    assert_eq!(in_file(&["\n".to_owned()], &[]).exit_status, 4);
    let lines = [line("a/b", ONE, "accept", int("1"))];
    assert_eq!(in_file(&lines, &["--case", "nothing/*"]).exit_status, 4);
}

#[test]
fn wrong_usage() {
    let lines = [line("a/b", ONE, "accept", int("1"))];
    for more in [
        &["--url", "http://127.0.0.1:1"][..],
        &["--testee", "*"],
        &["--req", "AGX-CALL-001"],
        &["--no-script"],
        &["--", "my-decoder"],
        &["--jobs", "0"],
    ] {
        let run = in_file(&lines, more);
        assert_eq!(run.exit_status, 2, "{more:?}");
        assert_eq!(run.stdout, "", "{more:?}");
    }
    for args in [
        &["run", "decoder"][..],
        &["run", "decoder", "--vectors", "/nonexistent/vectors.jsonl"],
        &["run", "decoder", "--vectors", "/"],
        &["run", "runtime", "--vectors", "/nonexistent/vectors.jsonl"],
        &["run", "--vectors", "/nonexistent/vectors.jsonl"],
        &["list", "decoder"],
    ] {
        let run = suite(args);
        assert_eq!(run.exit_status, 2, "{args:?}");
        assert_eq!(run.stdout, "", "{args:?}");
        assert_ne!(run.stderr, "", "{args:?}");
    }
    // One bad line, and nothing is run.
    let mut lines = lines.to_vec();
    lines.push("{}\n".to_owned());
    let run = in_file(&lines, &[]);
    assert_eq!((run.exit_status, run.stdout.as_str()), (2, ""));
}

#[test]
fn the_report_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let lines = [
        line("a/b", ONE, "accept", int("1")),
        line("a/c", REFUSED, "reject", Json::Null),
    ];
    let run = in_file(&lines, &["--out", out.to_str().unwrap()]);
    assert_eq!(run.exit_status, 0, "{}", run.stdout);
    let read = |name: &str| std::fs::read_to_string(Path::new(&out).join(name)).unwrap();
    assert_eq!(read("summary.txt"), run.stdout);
    assert_eq!(read("report.jsonl").lines().count(), 4);
}

/// The bound on memory is the system's: what asks for more is denied it, and ends.
#[test]
fn a_process_bounds_its_own_memory() {
    const MEMORY_BYTES: u64 = 128 * 1024 * 1024;
    let mut child = command(&["builtin-decoder", &MEMORY_BYTES.to_string(), "2"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // One line, longer than what it may have. It ends before it has read it all, which breaks the pipe.
    let piece = vec![b'0'; 1024 * 1024];
    let written =
        (0..2 * MEMORY_BYTES / piece.len() as u64).try_for_each(|_| stdin.write_all(&piece));
    assert!(written.is_err());
    drop(stdin);
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::ABORT.as_raw()));
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    // What the suite knows it by.
    let known = |line: &str| line.starts_with("memory allocation of ") && line.ends_with(" failed");
    assert!(said.lines().any(known), "{said}");
}
