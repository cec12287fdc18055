//! `agentix-host inspect`: what it finds, and how it ends.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::scripted::within;

pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one document on one line");
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// Runs the program with `pickle` on stdin.
pub(crate) async fn inspect(pickle: &[u8], options: &[&str]) -> Ended {
    let args = [&["inspect", "-"], options].concat();
    run(pickle, &args).await
}

async fn run(stdin: &[u8], args: &[&str]) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_agentix-host"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("RUST_LOG")
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let feed = async move {
        // The program may refuse before it has read all.
        let _ = pipe.write_all(stdin).await;
    };
    let (output, ()) = within(async { tokio::join!(child.wait_with_output(), feed) }).await;
    let output = output.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended {
        status: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// What `--json` says; the status is in it, too.
pub(crate) async fn report(pickle: &[u8], options: &[&str]) -> Value {
    let ended = inspect(pickle, &[&["--json"], options].concat()).await;
    let report = ended.json();
    assert_eq!(report["status"], json!(ended.status), "{report}");
    assert_eq!(ended.stderr, "");
    report
}

/// The classic: `os.system('id')`.
const SYSTEM: &[u8] = b"cos\nsystem\n(S'id'\ntR.";
/// `[1]`.
pub(crate) const LIST: &[u8] = b"\x80\x04]K\x01a.";

#[tokio::test]
async fn plain_values_are_clean() {
    let found = report(LIST, &[]).await;
    assert_eq!(found["verdict"], "clean");
    assert_eq!(found["status"], 0);
    assert_eq!(found["bytes"], 7);
    assert_eq!(found["trailing"], Value::Null);
    assert_eq!(found["streams"].as_array().unwrap().len(), 1);
    let stream = &found["streams"][0];
    assert_eq!(
        (&stream["offset"], &stream["length"]),
        (&json!(0), &json!(7))
    );
    assert_eq!(stream["protocol"], 4);
    assert_eq!(stream["globals"], json!([]));
    assert_eq!(
        stream["value"],
        json!({
            "root": {"ref": 0},
            "nodes": [{"t": "list", "items": [{"int": "1"}]}],
            "nodes_left_out": 0,
        })
    );
    assert_eq!(
        (&stream["error"], &stream["refusal"]),
        (&Value::Null, &Value::Null)
    );
    assert!(stream.get("opcodes").is_none());
}

#[tokio::test]
async fn a_call_is_shown_and_not_admitted() {
    let found = report(SYSTEM, &["--opcodes"]).await;
    assert_eq!(
        (&found["verdict"], &found["status"]),
        (&json!("not_clean"), &json!(1))
    );
    let stream = &found["streams"][0];
    assert_eq!(stream["protocol"], Value::Null);
    let system = json!([{
        "module": "os", "qualname": "system", "offset": 0, "count": 1,
        "admitted": false, "admit_with": ["--allow", "os:system"],
    }]);
    assert_eq!(stream["globals"], system);
    assert_eq!(found["refused"], system);
    assert_eq!(
        stream["value"]["nodes"],
        json!([{"t": "record", "origin": "call", "class": ["os", "system"], "args": ["id"]}])
    );
    assert_eq!(stream["refusal"]["kind"], "global");
    assert_eq!(stream["refusal"]["offset"], 0);
    assert_eq!(
        stream["opcodes"],
        json!([
            {"offset": 0, "opcode": "GLOBAL", "argument": ["os", "system"]},
            {"offset": 11, "opcode": "MARK", "argument": null},
            {"offset": 12, "opcode": "STRING", "argument": "'id'"},
            {"offset": 18, "opcode": "TUPLE", "argument": null},
            {"offset": 19, "opcode": "REDUCE", "argument": null},
            {"offset": 20, "opcode": "STOP", "argument": null},
        ])
    );
    assert_eq!(stream["opcodes_left_out"], 0);

    let text = inspect(SYSTEM, &["--opcodes"]).await;
    assert_eq!((text.status, text.stderr.as_str()), (Some(1), ""));
    for part in ["os.system", "'id'", "GLOBAL", "--allow os:system"] {
        assert!(text.stdout.contains(part), "{}", text.stdout);
    }
}

#[tokio::test]
async fn options_change_what_is_admitted() {
    // app.Point(), and an array's `_frombuffer`, by name only.
    let point = b"\x80\x04\x8c\x03app\x8c\x05Point\x93)\x81.";
    assert_eq!(report(point, &[]).await["status"], 1);
    let allowed = report(point, &["--allow", "app:Point"]).await;
    assert_eq!(
        (&allowed["status"], &allowed["refused"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(report(point, &["--allow", "app:Poin"]).await["status"], 1);

    let buffer = b"\x80\x04\x8c\x12numpy._core.numeric\x8c\x0b_frombuffer\x93.";
    let buffer = [&buffer[..3], b"\x13", &buffer[4..]].concat();
    let refused = report(&buffer, &[]).await;
    assert_eq!(refused["refused"][0]["admit_with"], json!(["--numpy"]));
    assert_eq!(report(&buffer, &["--numpy"]).await["status"], 0);
}

#[tokio::test]
async fn every_global_is_found_behind_the_first_refused_one() {
    // Three names, one of them twice, one of them admitted, and a drop for each.
    let pickle = b"ca\nb\n0ccollections\ndeque\n0cc\nd\n0ca\nb\n.";
    let found = report(pickle, &[]).await;
    let globals = found["streams"][0]["globals"].as_array().unwrap();
    let told: Vec<_> = globals
        .iter()
        .map(|global| {
            let name = format!(
                "{}.{}",
                global["module"].as_str().unwrap(),
                global["qualname"].as_str().unwrap()
            );
            (
                name,
                global["offset"].as_u64().unwrap(),
                global["count"].as_u64().unwrap(),
                global["admitted"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("a.b".to_owned(), 0, 2, false),
            ("collections.deque".to_owned(), 6, 1, true),
            ("c.d".to_owned(), 26, 1, false),
        ]
    );
    assert_eq!(found["refused"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn further_streams_and_trailing_bytes_are_found() {
    let found = report(&[LIST, SYSTEM, b"N.", b"garbage"].concat(), &[]).await;
    let streams = found["streams"].as_array().unwrap();
    let offsets: Vec<_> = streams
        .iter()
        .map(|stream| stream["offset"].as_u64())
        .collect();
    assert_eq!(offsets, [Some(0), Some(7), Some(28)]);
    assert_eq!(streams[1]["globals"][0]["offset"], 7);
    assert_eq!(streams[1]["refusal"]["offset"], 7);
    assert_eq!(streams[2]["value"]["root"], Value::Null);
    assert_eq!(
        found["trailing"],
        json!({"offset": 30, "length": 7, "hex": "67617262616765"})
    );
    assert_eq!(found["status"], 1);

    let clean = report(&[LIST, LIST].concat(), &[]).await;
    assert_eq!(
        (&clean["status"], &clean["streams"][1]["offset"]),
        (&json!(0), &json!(7))
    );
    // Plain values and something behind them: never clean.
    let found = report(&[LIST, b"\n"].concat(), &[]).await;
    assert_eq!(
        (&found["status"], &found["trailing"]["length"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn a_further_stream_that_breaks_is_not_trailing_bytes() {
    for broken in [&b"\x80\x04]K\x01"[..], b"cos\nsystem\n", b"\x80\x04"] {
        let found = report(&[LIST, broken].concat(), &[]).await;
        assert_eq!(
            (&found["verdict"], &found["status"]),
            (&json!("stopped"), &json!(3))
        );
        assert_eq!(found["trailing"], Value::Null);
        let stream = &found["streams"][1];
        assert_eq!(stream["offset"], 7);
        assert_eq!(stream["error"]["kind"], "malformed");
        assert_eq!(
            stream["error"]["offset"].as_u64().unwrap(),
            7 + broken.len() as u64
        );
        assert_eq!(stream["value"], Value::Null);
    }
}

#[tokio::test]
async fn what_broke_tells_where_and_keeps_what_was_found() {
    let cut = &SYSTEM[..SYSTEM.len() - 1];
    let found = report(cut, &["--opcodes"]).await;
    assert_eq!(
        (&found["verdict"], &found["status"]),
        (&json!("stopped"), &json!(3))
    );
    let stream = &found["streams"][0];
    assert_eq!(stream["error"]["offset"], 20);
    assert_eq!(stream["error"]["opcode"], Value::Null);
    assert_eq!(stream["globals"][0]["qualname"], "system");
    assert_eq!(stream["opcodes"].as_array().unwrap().len(), 5);
    assert_eq!(stream["length"], 20);
    let text = inspect(cut, &[]).await;
    assert_eq!(text.status, Some(3));
    assert!(text.stdout.contains("os.system"), "{}", text.stdout);

    // No prefix is clean.
    for end in 0..SYSTEM.len() {
        let found = report(&SYSTEM[..end], &[]).await;
        assert_eq!(found["status"], 3, "{end}");
    }
    let empty = report(b"", &[]).await;
    assert_eq!(empty["status"], 3);
    assert_eq!(empty["streams"][0]["error"]["kind"], "malformed");
}

#[tokio::test]
async fn what_lies_outside_of_the_stream_is_shown() {
    // As torch writes its tensors: a tuple with a class in it for an id.
    let tensor = b"\x80\x02(\x8c\x07storagectorch\nFloatStorage\nq\x00\x8c\x010tQ.";
    let found = report(tensor, &[]).await;
    let stream = &found["streams"][0];
    assert_eq!(stream["persistent_ids"].as_array().unwrap().len(), 1);
    assert_eq!(stream["persistent_ids"][0]["offset"], 38);
    assert_eq!(
        stream["value"]["nodes"],
        json!([
            {"t": "record", "origin": "persistent_id", "args": [{"ref": 1}]},
            {"t": "tuple", "items": ["storage", {"type": ["torch", "FloatStorage"]}, "0"]},
        ])
    );
    assert_eq!(found["status"], 1);

    // All globals are admitted; what is not is no global.
    for (pickle, kind, origin) in [
        (&b"Psomewhere\n."[..], "persistent_id", "persistent_id"),
        (b"\x80\x02\x82\x07.", "extension", "extension"),
        (b"\x80\x05\x97.", "unsupported", "buffer"),
    ] {
        let found = report(pickle, &[]).await;
        let stream = &found["streams"][0];
        assert_eq!(stream["refusal"]["kind"], kind);
        assert_eq!(stream["value"]["nodes"][0]["origin"], origin);
        assert_eq!(
            (&found["status"], &found["refused"]),
            (&json!(1), &json!([]))
        );
    }
}

#[tokio::test]
async fn objects_of_protocol_0_are_shown() {
    // copy_reg._reconstructor(app.Point, object, None) and a state.
    let pickle =
        b"ccopy_reg\n_reconstructor\n(capp\nPoint\nc__builtin__\nobject\nNtR(S'x'\nI1\ndb.";
    let found = report(pickle, &[]).await;
    assert_eq!(found["refused"].as_array().unwrap().len(), 3);
    let node = &found["streams"][0]["value"]["nodes"][0];
    assert_eq!(node["class"], json!(["copy_reg", "_reconstructor"]));
    assert_eq!(node["attrs"], json!([["x", {"int": "1"}]]));
}

#[tokio::test]
async fn shared_objects_and_cycles_are_told() {
    // a = []; a.append(a); (a, a)
    let pickle = b"]q\x00h\x00ah\x00\x86.";
    let found = report(pickle, &[]).await;
    assert_eq!(
        found["streams"][0]["value"]["nodes"],
        json!([
            {"t": "tuple", "items": [{"ref": 1}, {"ref": 1}]},
            {"t": "list", "items": [{"ref": 1}]},
        ])
    );
    let text = inspect(pickle, &[]).await;
    assert_eq!(text.stdout.matches("-> #1").count(), 2, "{}", text.stdout);
    assert_eq!(text.status, Some(0));
}

#[tokio::test]
async fn files_and_their_errors() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(SYSTEM).unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(run(b"", &["inspect", path]).await.status, Some(1));

    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none");
    for args in [
        &["inspect", none.to_str().unwrap()][..],
        &["inspect", folder.path().to_str().unwrap()],
        &["inspect", path, "--max-bytes", "20"],
        &["inspect", path, "--max-bytes", "20", "--json"],
    ] {
        let ended = run(b"", args).await;
        assert_eq!(
            (ended.status, ended.stdout.as_str()),
            (Some(3), ""),
            "{args:?}"
        );
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    let whole = run(b"", &["inspect", path, "--max-bytes", "21"]).await;
    assert_eq!(whole.status, Some(1));

    for args in [
        &["inspect"][..],
        &["inspect", path, path],
        &["inspect", path, "--allow", "os"],
        &["inspect", path, "--allow", "os:"],
        &["inspect", path, "--allow", "os::system"],
        &["inspect", path, "--max-lines", "-1"],
        &["inspect", path, "--all", "--max-lines", "9"],
        &["inspect", path, "--max-bytes", "4294967295"],
    ] {
        assert_eq!(run(b"", args).await.status, Some(2), "{args:?}");
    }
}
