//! Role worker: calls and the values that they return.

use std::time::Duration;

use crate::case::cases;
use crate::context::{RunningWorker, WorkerCase, fresh_id};
use crate::messages::frame;
use crate::msgpack::{Msg, bin};
use crate::outcome::{Outcome, exact_frame};
use crate::pickle::{Value, args, call_arguments, text};
use crate::verdict::{Verdict, check, equal, fail};

cases! {
    Worker "worker/call/sync", "a sync function returns its value, in one frame of exact bytes",
        ["AGX-WRK-010", "AGX-WRK-014", "AGX-PIPE-001", "AGX-PIPE-020", "AGX-PIPE-033"], sync;
    Worker "worker/call/async", "an async function returns its value",
        ["AGX-WRK-010", "AGX-WRK-015"], asynchronous;
    Worker "worker/call/arguments", "positional and keyword arguments arrive as such, in order",
        ["AGX-WRK-014", "AGX-WRK-013"], arguments;
    Worker "worker/call/keyword-only", "`run(input=\"hello\")` reaches the parameter of that name",
        ["AGX-WRK-014"], keyword_only;
    Worker "worker/call/none", "None is pickled, never nil",
        ["AGX-RPC-030", "AGX-WRK-010"], none;
    Worker "worker/call/plain-values", "plain values come back with their types",
        ["AGX-WRK-014", "AGX-RPC-030"], plain_values;
    Worker "worker/call/unicode", "text of every plane survives",
        ["AGX-RPC-030"], unicode;
    Worker "worker/call/deep", "a value nested 100 deep survives",
        ["AGX-RPC-030"], deep;
    Worker "worker/call/large", "results of 1 MiB, and of every size around a power of two",
        ["AGX-PIPE-001", "AGX-PIPE-003"], large;
    Worker "worker/call/large-arguments", "arguments of 1 MiB arrive whole",
        ["AGX-PIPE-004", "AGX-WRK-013"], large_arguments;
    Worker "worker/call/unknown-keys", "keys that a frame of version 1.0 does not have are ignored",
        ["AGX-PIPE-013", "AGX-VER-008"], unknown_keys;
    Worker "worker/call/key-order", "the keys of a frame may come in any order, in any msgpack form",
        ["AGX-COD-010", "AGX-PIPE-013"], key_order;
    Worker "worker/call/context-absent", "nil and an empty bin are no context",
        ["AGX-WRK-021", "AGX-RPC-019"], context_absent;
    Worker "worker/call/context-undecodable", "a context that does not decode is ignored, or an error of its call",
        ["AGX-WRK-022", "AGX-WRK-020"], context_undecodable;
    Worker "worker/call/async-concurrent", "an async function that waits delays nothing",
        ["AGX-WRK-015", "AGX-WRK-002"], async_concurrent;
    Worker "worker/call/sync-blocks-nothing", "a sync function that blocks delays no async function",
        ["AGX-WRK-016", "AGX-WRK-002"], sync_blocks_nothing;
    Worker "worker/call/sync-concurrent", "five sync functions run at a time",
        ["AGX-WRK-017"], sync_concurrent;
    Worker "worker/call/many", "300 calls sent at once are each answered once",
        ["AGX-WRK-010", "AGX-PIPE-003"], many;
    Worker "worker/call/duplicate-running", "a second frame with the id of a running call starts nothing",
        ["AGX-WRK-011", "AGX-WRK-043"], duplicate_running;
    Worker "worker/call/duplicate-finished", "a second frame with the id of a finished call sends nothing",
        ["AGX-WRK-011", "AGX-WRK-043"], duplicate_finished;
}

async fn sync(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    let numbers = Value::List(vec![Value::Int(1), Value::Int(-2), Value::Int(1 << 40)]);
    worker
        .call(&id, "conformance::total", &args([numbers]))
        .await?;
    let terminal = worker.pipe.terminal(&id).await?;
    exact_frame(&terminal)?;
    terminal
        .outcome
        .is("AGX-WRK-014", &Value::Int((1 << 40) - 1))?;
    worker.alive().await?;
    worker.pipe.terminals("AGX-WRK-010", &id, 1)
}

async fn asynchronous(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    worker
        .call(&id, "conformance::echo_async", &args([text("later")]))
        .await?;
    let terminal = worker.pipe.terminal(&id).await?;
    exact_frame(&terminal)?;
    terminal.outcome.is("AGX-WRK-010", &text("later"))?;
    worker.alive().await?;
    worker.pipe.terminals("AGX-WRK-010", &id, 1)
}

async fn arguments(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    let positional = vec![Value::Int(1), text("a"), Value::Tuple(vec![])];
    let keywords = vec![("k", Value::Float(2.5)), ("a", Value::None)];
    let pickle = call_arguments(positional.clone(), keywords);
    worker.call(&id, "conformance::arguments", &pickle).await?;
    let named = vec![(text("k"), Value::Float(2.5)), (text("a"), Value::None)];
    let expected = Value::List(vec![Value::List(positional), Value::Dict(named)]);
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-WRK-014", &expected)?;

    let id = fresh_id();
    worker
        .call(&id, "conformance::arguments", &args([]))
        .await?;
    let nothing = Value::List(vec![Value::List(vec![]), Value::Dict(vec![])]);
    worker.pipe.outcome(&id).await?.is("AGX-WRK-014", &nothing)
}

async fn keyword_only(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    let pickle = call_arguments(vec![], vec![("value", text("hello"))]);
    worker.call(&id, "conformance::echo_async", &pickle).await?;
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-WRK-014", &text("hello"))
}

async fn none(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    worker
        .call(&id, "conformance::echo", &args([Value::None]))
        .await?;
    let terminal = worker.pipe.terminal(&id).await?;
    exact_frame(&terminal)?;
    terminal.outcome.is("AGX-RPC-030", &Value::None)?;
    worker.alive().await
}

/// Values of every plain type.
pub(super) fn plain() -> Value {
    Value::Dict(vec![
        (text("none"), Value::None),
        (
            text("bools"),
            Value::Tuple(vec![Value::Bool(true), Value::Bool(false)]),
        ),
        (
            text("ints"),
            Value::List(
                [0, -1, 255, 256, 65_536, i64::MIN, i64::MAX]
                    .map(Value::Int)
                    .into(),
            ),
        ),
        (
            text("floats"),
            Value::List(vec![Value::Float(0.1), Value::Float(-0.0)]),
        ),
        (text("bytes"), Value::Bytes((0..=255).collect())),
        (
            text("empty"),
            Value::Tuple(vec![Value::List(vec![]), Value::Dict(vec![])]),
        ),
        (
            Value::Int(7),
            text("an int key, which is plain in a pickle"),
        ),
    ])
}

async fn plain_values(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let came = worker.value_of("echo", [plain()]).await?;
    equal("AGX-WRK-014", "the value sent", &plain(), &came)?;
    let came = worker.value_of("echo_async", [plain()]).await?;
    equal("AGX-WRK-014", "the value sent", &plain(), &came)
}

/// The text of spec/prose/functions.md.
pub(super) const UNICODE: &str =
    "A\u{0}\u{e9}e\u{301}\u{3c0}\u{6a21}\u{2028}\u{feff}\u{1f600}\u{1d54f}\u{10ffff}";

async fn unicode(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let came = worker.value_of("unicode", []).await?;
    equal("AGX-RPC-030", "text", &text(UNICODE), &came)?;
    let came = worker.value_of("echo", [text(UNICODE)]).await?;
    equal("AGX-WRK-014", "text", &text(UNICODE), &came)
}

async fn deep(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let expected = (0..100).fold(Value::None, |value, _| Value::List(vec![value]));
    let came = worker.value_of("nested", [Value::Int(100)]).await?;
    equal("AGX-RPC-030", "None in 100 lists", &expected, &came)
}

/// The `bytes` of `blob(size)`.
pub(super) fn blob(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

async fn large(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    for size in [0, 1, 191, 192, 255, 256, 4095, 65_535, 65_536, 1 << 20] {
        blob_of(&mut worker, size).await?;
    }
    Ok(())
}

async fn blob_of(worker: &mut RunningWorker, size: usize) -> Verdict {
    match worker.value_of("blob", [Value::Int(size as i64)]).await? {
        Value::Bytes(bytes) => check(
            bytes == blob(size),
            "AGX-PIPE-003",
            format_args!("the {size} bytes of blob({size})"),
            format_args!("{} bytes, not those", bytes.len()),
        ),
        other => fail(
            "AGX-RPC-030",
            format_args!("bytes of length {size}"),
            format_args!("{other:?}"),
        ),
    }
}

async fn large_arguments(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let sent = Value::Bytes(blob(1 << 20));
    let came = worker.value_of("echo", [sent.clone()]).await?;
    check(
        came == sent,
        "AGX-WRK-013",
        "1 MiB, as it was sent",
        "something else",
    )
}

async fn unknown_keys(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    let body = crate::msgpack::map([
        ("type", crate::msgpack::text("call")),
        ("call_id", crate::msgpack::text(&id)),
        (
            "later",
            crate::msgpack::map([("x", Msg::Array(vec![Msg::Nil, Msg::Int(1)]))]),
        ),
        ("callable", crate::msgpack::text("conformance::echo")),
        ("arguments", bin(&args([Value::Int(5)]))),
        ("context", Msg::Nil),
        ("version", Msg::Int(2)),
    ]);
    worker.pipe.send(&body.bytes()).await?;
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-PIPE-013", &Value::Int(5))
}

async fn key_order(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    // A map of 5 in its longest form; str 8 and bin 32 where shorter ones would do; keys backwards.
    let mut body = vec![0xdf, 0, 0, 0, 5];
    let string = |text: &str, body: &mut Vec<u8>| {
        body.extend([0xd9, text.len() as u8]);
        body.extend_from_slice(text.as_bytes());
    };
    let pickle = args([Value::Int(6)]);
    string("arguments", &mut body);
    body.push(0xc6);
    body.extend((pickle.len() as u32).to_be_bytes());
    body.extend_from_slice(&pickle);
    string("context", &mut body);
    body.push(0xc0);
    for (key, value) in [
        ("callable", "conformance::echo"),
        ("call_id", &id),
        ("type", "call"),
    ] {
        string(key, &mut body);
        string(value, &mut body);
    }
    worker.pipe.send(&body).await?;
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-COD-010", &Value::Int(6))
}

async fn context_absent(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    for context in [Msg::Nil, bin(&[])] {
        let id = fresh_id();
        let body = frame::call(&id, "conformance::echo", &args([Value::Int(1)]), context);
        worker.pipe.send(&body).await?;
        worker
            .pipe
            .outcome(&id)
            .await?
            .is("AGX-WRK-021", &Value::Int(1))?;
    }
    Ok(())
}

async fn context_undecodable(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let (id, key) = (fresh_id(), text(&fresh_id()));
    let body = frame::call(
        &id,
        "conformance::count",
        &args([key.clone()]),
        bin(b"no pickle"),
    );
    worker.pipe.send(&body).await?;
    let ran = match worker.pipe.outcome(&id).await? {
        Outcome::Value(_) => 1,
        error @ Outcome::Error(_) => {
            error.plain_error_of("AGX-WRK-022", "ArgumentsDecodeError")?;
            0
        }
    };
    let counted = worker.value_of("counted", [key]).await?;
    equal("AGX-WRK-022", "executions", &Value::Int(ran), &counted)
}

/// Long enough to still run when the case is over; every case cancels what it started.
const LONG: Value = Value::Float(60.0);

async fn async_concurrent(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    worker
        .call(&id, "conformance::sleep", &args([LONG]))
        .await?;
    worker.alive().await?;
    let came = worker.value_of("echo_async", [Value::Int(2)]).await?;
    equal("AGX-WRK-015", "another async call", &Value::Int(2), &came)?;
    let short = Value::Float(0.05);
    let came = worker.value_of("sleep", [short.clone()]).await?;
    equal("AGX-WRK-015", "a shorter sleep", &short, &came)?;
    worker.pipe.terminals("AGX-WRK-010", &id, 0)?;
    worker.pipe.send(&frame::cancel(&id)).await?;
    worker.pipe.outcome(&id).await?.cancelled("AGX-WRK-040")
}

async fn sync_blocks_nothing(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    worker
        .call(&id, "conformance::block", &args([LONG]))
        .await?;
    let came = worker.value_of("echo_async", [Value::Int(3)]).await?;
    equal("AGX-WRK-016", "an async call", &Value::Int(3), &came)?;
    worker.pipe.terminals("AGX-WRK-010", &id, 0)?;
    worker.pipe.send(&frame::cancel(&id)).await?;
    worker.pipe.outcome(&id).await?.cancelled("AGX-WRK-040")
}

async fn sync_concurrent(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    worker.alive().await?;
    let mut ids = Vec::new();
    // min(32, CPUs + 4) is at least 5: four that block leave room for one.
    for _ in 0..4 {
        let id = fresh_id();
        worker
            .call(&id, "conformance::block", &args([LONG]))
            .await?;
        ids.push(id);
    }
    let fifth = worker.alive().await;
    fifth.map_err(|stop| stop.breaks("AGX-WRK-017"))?;
    for id in ids {
        worker.pipe.terminals("AGX-WRK-010", &id, 0)?;
        worker.pipe.send(&frame::cancel(&id)).await?;
        worker.pipe.outcome(&id).await?.cancelled("AGX-WRK-040")?;
    }
    Ok(())
}

async fn many(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let ids: Vec<_> = (0..300).map(|_| fresh_id()).collect();
    for (number, id) in ids.iter().enumerate() {
        let target = if number % 2 == 0 {
            "conformance::echo"
        } else {
            "conformance::echo_async"
        };
        worker
            .call(id, target, &args([Value::Int(number as i64)]))
            .await?;
    }
    for (number, id) in ids.iter().enumerate() {
        worker
            .pipe
            .outcome(id)
            .await?
            .is("AGX-WRK-010", &Value::Int(number as i64))?;
    }
    worker.alive().await?;
    ids.iter()
        .try_for_each(|id| worker.pipe.terminals("AGX-WRK-010", id, 1))
}

async fn duplicate_running(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let (id, key) = (fresh_id(), text(&fresh_id()));
    let arguments = args([key.clone(), Value::Float(0.3)]);
    worker
        .call(&id, "conformance::count_slow", &arguments)
        .await?;
    worker.until_counted(&key, 1).await?;
    worker
        .call(&id, "conformance::count_slow", &arguments)
        .await?;
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-WRK-010", &Value::Int(1))?;
    // An execution that the second frame had started would have counted by now, and end after as long as the first.
    crate::context::pass(Duration::from_millis(400)).await;
    let counted = worker.value_of("counted", [key]).await?;
    equal("AGX-WRK-011", "executions", &Value::Int(1), &counted)?;
    worker.pipe.terminals("AGX-WRK-043", &id, 1)
}

async fn duplicate_finished(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let (id, key) = (fresh_id(), text(&fresh_id()));
    let arguments = args([key.clone()]);
    worker.call(&id, "conformance::count", &arguments).await?;
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-WRK-010", &Value::Int(1))?;
    worker.call(&id, "conformance::count", &arguments).await?;
    // Another target does not make it another call.
    worker
        .call(&id, "conformance::echo", &args([Value::None]))
        .await?;
    worker.alive().await?;
    let counted = worker.value_of("counted", [key]).await?;
    equal("AGX-WRK-011", "executions", &Value::Int(1), &counted)?;
    worker.pipe.terminals("AGX-WRK-043", &id, 1)
}
