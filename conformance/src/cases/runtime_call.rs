//! Role runtime: calls on `/rpc` and their outcomes.

use crate::case::cases;
use crate::context::{RuntimeCase, fresh_id, fresh_key, offered, traceback_names_fail};
use crate::messages;
use crate::msgpack::{Msg, bin, map};
use crate::outcome::{Outcome, RemoteError, exact_payload};
use crate::peer::session::Session;
use crate::pickle::{Value, args, call_arguments, text};
use crate::verdict::{Verdict, check, equal};

use super::worker_calls::{UNICODE, blob, plain};

cases! {
    Runtime "runtime/call/sync", "a sync function: header and payload of exact bytes",
        ["AGX-RPC-001", "AGX-CON-050", "AGX-CON-051", "AGX-RPC-031", "AGX-RPC-066", "AGX-COD-001"], sync;
    Runtime "runtime/call/async", "an async function returns its value",
        ["AGX-CALL-020", "AGX-RPC-001"], asynchronous;
    Runtime "runtime/call/arguments", "positional and keyword arguments reach the function",
        ["AGX-RPC-020", "AGX-PIPE-022"], arguments;
    Runtime "runtime/call/none", "None is a pickle, never nil",
        ["AGX-RPC-030"], none;
    Runtime "runtime/call/plain-values", "plain values and text of every plane come back as they were sent",
        ["AGX-RPC-020", "AGX-RPC-031"], plain_values;
    Runtime "runtime/call/large", "a result and arguments of 1 MiB",
        ["AGX-RPC-031", "AGX-CON-061"], large;
    Runtime "runtime/call/large-burst", "32 results of 1 MiB to a host that reads late are all delivered",
        ["AGX-CON-061", "AGX-CALL-020"], large_burst;
    Runtime "runtime/call/many", "500 calls sent at once are each answered once",
        ["AGX-CALL-020", "AGX-CON-061"], many;
    Runtime "runtime/call/unknown-keys", "unknown keys of the payload are ignored",
        ["AGX-RPC-004", "AGX-VER-008"], unknown_keys;
    Runtime "runtime/call/context", "context absent, nil and bin",
        ["AGX-RPC-019", "AGX-RPC-020"], context;
    Runtime "runtime/call/id-bounds", "ids of 1 and of 128 bytes, and of any text",
        ["AGX-RPC-014"], id_bounds;
    Runtime "runtime/call/bystander", "an outcome goes to its owner and to no other host",
        ["AGX-CALL-031", "AGX-CALL-030"], bystander;
    Runtime "runtime/call/slow-and-fast", "a call that runs delays no other",
        ["AGX-CALL-020"], slow_and_fast;
    Runtime "runtime/ack/call", "the Socket.IO ack of an accepted call",
        ["AGX-RPC-061", "AGX-RPC-064"], ack_of_call;
    Runtime "runtime/ack/running", "the ack of a call does not wait for its end",
        ["AGX-RPC-061"], ack_of_running;
    Runtime "runtime/ack/repeat", "a repeat is acked, running, held or gone",
        ["AGX-RPC-061", "AGX-CALL-013"], ack_of_repeat;
    Runtime "runtime/ack/others", "cancel, ack and resume are acked whether or not they change anything",
        ["AGX-RPC-063", "AGX-RPC-064"], ack_of_others;
    Runtime "runtime/error/sync", "a function that raises: type, message, five keys in order",
        ["AGX-RPC-040", "AGX-RPC-046", "AGX-RPC-043"], error_sync;
    Runtime "runtime/error/async", "an async function that raises",
        ["AGX-RPC-040", "AGX-RPC-046"], error_async;
    Runtime "runtime/error/traceback", "the traceback of the worker is passed on",
        ["AGX-RPC-046", "AGX-RPC-045"], traceback;
    Runtime "runtime/error/base-exceptions", "SystemExit and its like are ordinary errors, and the worker lives on",
        ["AGX-CALL-020", "AGX-WRK-030", "AGX-WRK-031"], base_exceptions;
    Runtime "runtime/error/target", "targets that do not resolve",
        ["AGX-TGT-010", "AGX-TGT-012", "AGX-RPC-040"], target;
    Runtime "runtime/error/arguments", "arguments that do not unpickle, or to something else than a pair",
        ["AGX-RPC-020", "AGX-WRK-013", "AGX-RPC-043"], undecodable_arguments;
    Runtime "runtime/error/result", "a result that cannot be pickled",
        ["AGX-RPC-043", "AGX-WRK-018"], unpicklable;
}

async fn sync(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    let numbers = Value::List(vec![Value::Int(1), Value::Int(2)]);
    host.call(&id, "conformance::total", &args([numbers]))
        .await?;
    let (event, terminal) = host.terminal(&id).await?;
    let header = r#"451-/rpc,["call:result",{"_placeholder":true,"num":0}]"#;
    equal("AGX-CON-051", "header", &header, &&*event.header)?;
    check(
        event.ack.is_none(),
        "AGX-RPC-066",
        "no ack id",
        &event.header,
    )?;
    exact_payload(&terminal)?;
    terminal.outcome.is("AGX-RPC-031", &Value::Int(3))?;
    case.alive(&mut host).await?;
    equal("AGX-CALL-020", "outcomes", &1, &host.outcomes_so_far(&id))
}

async fn asynchronous(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let came = case.value_of(&mut host, "echo_async", [text("x")]).await?;
    equal("AGX-CALL-020", "the value", &text("x"), &came)?;
    let short = Value::Float(0.02);
    let came = case.value_of(&mut host, "sleep", [short.clone()]).await?;
    equal("AGX-CALL-020", "the value", &short, &came)
}

async fn arguments(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    let pickle = call_arguments(
        vec![Value::Int(1), text("a")],
        vec![("k", Value::Float(2.5))],
    );
    host.call(&id, "conformance::arguments", &pickle).await?;
    let named = Value::Dict(vec![(text("k"), Value::Float(2.5))]);
    let expected = Value::List(vec![Value::List(vec![Value::Int(1), text("a")]), named]);
    host.outcome(&id).await?.is("AGX-RPC-020", &expected)
}

async fn none(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.call(&id, "conformance::echo", &args([Value::None]))
        .await?;
    let (_, terminal) = host.terminal(&id).await?;
    exact_payload(&terminal)?;
    terminal.outcome.is("AGX-RPC-030", &Value::None)
}

async fn plain_values(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    for value in [plain(), text(UNICODE)] {
        let came = case.value_of(&mut host, "echo", [value.clone()]).await?;
        equal("AGX-RPC-031", "the value sent", &value, &came)?;
    }
    Ok(())
}

fn is_blob(value: &Value, size: usize) -> Verdict {
    let same = matches!(value, Value::Bytes(bytes) if *bytes == blob(size));
    check(
        same,
        "AGX-RPC-031",
        format_args!("the {size} bytes of blob({size})"),
        "something else",
    )
}

async fn large(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let size = 1 << 20;
    let came = case.value_of(&mut host, "blob", [Value::Int(size)]).await?;
    is_blob(&came, size as usize)?;
    let came = case
        .value_of(&mut host, "echo", [Value::Bytes(blob(size as usize))])
        .await?;
    is_blob(&came, size as usize)
}

async fn large_burst(case: RuntimeCase) -> Verdict {
    let mut late = case.host().await?;
    let mut prompt = case.host().await?;
    let ids: Vec<_> = (0..32).map(|_| fresh_id()).collect();
    for id in &ids {
        late.call(id, "conformance::blob", &args([Value::Int(1 << 20)]))
            .await?;
    }
    // It reads nothing meanwhile, and holds up nobody.
    case.alive(&mut prompt).await?;
    for id in &ids {
        is_blob(&late.outcome(id).await?.value("AGX-CON-061")?, 1 << 20)?;
    }
    case.alive(&mut late).await
}

async fn many(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let ids: Vec<_> = (0..500).map(|_| fresh_id()).collect();
    for (number, id) in ids.iter().enumerate() {
        let target = if number % 2 == 0 {
            "conformance::echo"
        } else {
            "conformance::echo_async"
        };
        host.call(id, target, &args([Value::Int(number as i64)]))
            .await?;
    }
    for (number, id) in ids.iter().enumerate() {
        host.outcome(id)
            .await?
            .is("AGX-CALL-020", &Value::Int(number as i64))?;
    }
    case.alive(&mut host).await?;
    for id in &ids {
        equal(
            "AGX-CALL-020",
            "outcomes of one call",
            &1,
            &host.outcomes_so_far(id),
        )?;
    }
    Ok(())
}

async fn unknown_keys(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    let payload = map([
        (
            "priority",
            map([("x", Msg::Array(vec![Msg::Nil, Msg::Bool(true)]))]),
        ),
        ("call_id", crate::msgpack::text(&id)),
        ("callable", crate::msgpack::text("conformance::echo")),
        ("arguments", bin(&args([Value::Int(5)]))),
        ("protocol", Msg::Raw(vec![0xd4, 0x05, 0x00])),
    ]);
    host.emit("/rpc", "call", &payload.bytes()).await?;
    host.outcome(&id).await?.is("AGX-RPC-004", &Value::Int(5))
}

async fn context(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let empty = Value::Dict(vec![]).dump();
    for context in [Msg::Nil, bin(&empty)] {
        let id = fresh_id();
        let arguments = args([Value::Int(1)]);
        let payload = messages::call_with_context(&id, "conformance::echo", &arguments, context);
        host.emit("/rpc", "call", &payload).await?;
        host.outcome(&id).await?.is("AGX-RPC-019", &Value::Int(1))?;
    }
    Ok(())
}

async fn id_bounds(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let random = fresh_id();
    let ids = [
        format!("{random}{}", "x".repeat(96)),
        format!("{random} \u{0}\n\u{1f600}\"'%/"),
    ];
    for id in &ids {
        host.call(id, "conformance::echo", &args([Value::Int(1)]))
            .await?;
        host.outcome(id).await?.is("AGX-RPC-014", &Value::Int(1))?;
    }
    // An earlier run against the same runtime may have used this one: then it is a repeat, which is not refused either.
    let one = char::from(fastrand::u8(0x21..0x7f)).to_string();
    host.call(&one, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    let outcome = host.outcome(&one).await?;
    let repeated = matches!(&outcome, Outcome::Error(error) if error.kind == "ResultUnavailable");
    if repeated {
        return Ok(());
    }
    outcome.is("AGX-RPC-014", &Value::Int(1))?;
    host.ack(&one).await?;
    host.fence().await
}

async fn bystander(case: RuntimeCase) -> Verdict {
    let (mut owner, mut other) = (case.host().await?, case.host().await?);
    let (value, error) = (fresh_id(), fresh_id());
    owner
        .call(&value, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    owner
        .call(&error, "conformance::fail", &args([text("x")]))
        .await?;
    owner
        .outcome(&value)
        .await?
        .is("AGX-CALL-030", &Value::Int(1))?;
    owner
        .outcome(&error)
        .await?
        .plain_error_of("AGX-CALL-030", "ValueError")?;
    case.alive(&mut owner).await?;
    // Whatever the runtime sent the bystander was sent before the outcome of this one.
    case.alive(&mut other).await?;
    other.no_outcome("AGX-CALL-031", &value)?;
    other.no_outcome("AGX-CALL-031", &error)
}

async fn slow_and_fast(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let slow = fresh_id();
    host.call(&slow, "conformance::sleep", &args([Value::Float(60.0)]))
        .await?;
    case.alive(&mut host).await?;
    host.no_outcome("AGX-CALL-020", &slow)?;
    host.cancel(&slow).await?;
    host.outcome(&slow).await?.cancelled("AGX-CALL-051")
}

async fn acked_exactly(host: &mut Session, event: &str, payload: &[u8]) -> Verdict {
    let ack = host.emit_for_ack("/rpc", event, payload).await?;
    let came = host.acked("/rpc", ack).await?;
    equal(
        "AGX-RPC-064",
        &format!("ack of {event}"),
        &format!("43/rpc,{ack}[]"),
        &came,
    )
}

async fn ack_of_call(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    let payload = messages::call(&id, "conformance::echo", &args([Value::Int(1)]));
    acked_exactly(&mut host, "call", &payload).await?;
    host.outcome(&id).await?.is("AGX-CALL-020", &Value::Int(1))
}

async fn ack_of_running(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    let payload = messages::call(&id, "conformance::sleep", &args([Value::Float(60.0)]));
    acked_exactly(&mut host, "call", &payload).await?;
    host.no_outcome("AGX-RPC-061", &id)?;
    acked_exactly(&mut host, "cancel", &messages::only_id(&id)).await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-051")
}

async fn ack_of_repeat(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    let payload = messages::call(
        &id,
        "conformance::count_slow",
        &args([key.clone(), Value::Float(0.2)]),
    );
    acked_exactly(&mut host, "call", &payload).await?;
    acked_exactly(&mut host, "call", &payload).await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    acked_exactly(&mut host, "call", &payload).await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-012", &Value::Int(1))?;
    host.ack(&id).await?;
    acked_exactly(&mut host, "call", &payload).await?;
    host.outcome(&id)
        .await?
        .error_of("AGX-CALL-013", "ResultUnavailable")?;
    case.counted("AGX-CALL-003", &mut host, &key, 1).await
}

async fn ack_of_others(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    acked_exactly(&mut host, "resume", &messages::resume(&[])).await?;
    for id in [id, fresh_id()] {
        acked_exactly(&mut host, "cancel", &messages::only_id(&id)).await?;
        acked_exactly(&mut host, "resume", &messages::resume(&[&id])).await?;
        acked_exactly(&mut host, "ack", &messages::only_id(&id)).await?;
    }
    for event in ["cancel", "ack", "resume"] {
        acked_exactly(&mut host, event, &map([]).bytes()).await?;
    }
    Ok(())
}

/// Calls, and waits for an error of exact bytes; behind it the runtime still works.
async fn error_of(
    case: &RuntimeCase,
    host: &mut Session,
    target: &str,
    arguments: &[u8],
    requirement: &'static str,
    kind: &str,
) -> Verdict<RemoteError> {
    case.alive(host).await?;
    let id = fresh_id();
    host.call(&id, target, arguments).await?;
    let (event, terminal) = host.terminal(&id).await?;
    let header = r#"451-/rpc,["call:error",{"_placeholder":true,"num":0}]"#;
    equal("AGX-CON-051", "header", &header, &&*event.header)?;
    exact_payload(&terminal)?;
    let error = terminal.outcome.plain_error_of(requirement, kind)?;
    check(
        error.returncode.is_none(),
        "AGX-RPC-043",
        "`returncode` nil",
        format_args!("{error:?}"),
    )?;
    case.alive(host).await?;
    equal("AGX-CALL-020", "outcomes", &1, &host.outcomes_so_far(&id))?;
    Ok(error)
}

async fn raises(case: RuntimeCase, target: &str) -> Verdict {
    let mut host = case.host().await?;
    let message = "boom \u{1f600}";
    let error = error_of(
        &case,
        &mut host,
        target,
        &args([text(message)]),
        "AGX-RPC-046",
        "ValueError",
    )
    .await?;
    equal("AGX-RPC-046", "message", &message, &&*error.message)
}

async fn error_sync(case: RuntimeCase) -> Verdict {
    raises(case, "conformance::fail").await
}

async fn error_async(case: RuntimeCase) -> Verdict {
    raises(case, "conformance::fail_async").await
}

async fn traceback(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let error = error_of(
        &case,
        &mut host,
        "conformance::fail",
        &args([text("why")]),
        "AGX-RPC-046",
        "ValueError",
    )
    .await?;
    traceback_names_fail(&error)
}

async fn base_exceptions(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let pid = case.value_of(&mut host, "pid", []).await?;
    for function in ["raise_base", "raise_base_async"] {
        for kind in [
            "SystemExit",
            "KeyboardInterrupt",
            "CancelledError",
            "GeneratorExit",
        ] {
            let id = fresh_id();
            host.call(
                &id,
                &format!("conformance::{function}"),
                &args([text(kind)]),
            )
            .await?;
            let outcome = offered("raise_base", host.outcome(&id).await?)?;
            outcome.plain_error_of("AGX-WRK-030", kind)?;
            let now = case.value_of(&mut host, "pid", []).await?;
            equal("AGX-WRK-031", "the worker's process id", &pid, &now)?;
        }
    }
    Ok(())
}

async fn target(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let targets = [
        ("no_such_module_5f1c::f", "ModuleNotFoundError"),
        ("conformance::no_such_function", "AttributeError"),
        ("conformance", "ValueError"),
        ("", "ValueError"),
        ("::", "ValueError"),
        ("conformance:: echo", "ValueError"),
    ];
    for (target, kind) in targets {
        error_of(&case, &mut host, target, &args([]), "AGX-TGT-012", kind).await?;
    }
    Ok(())
}

async fn undecodable_arguments(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let shape = Value::Tuple(vec![Value::Int(5), Value::Dict(vec![])]).dump();
    let unknown = b"\x80\x02cno_such_module_5f1c\nNothing\n\x85}\x86.";
    for arguments in [&[][..], b"no pickle", b"\x80\x04N", &shape, unknown] {
        let kind = "ArgumentsDecodeError";
        error_of(
            &case,
            &mut host,
            "conformance::echo",
            arguments,
            "AGX-WRK-013",
            kind,
        )
        .await?;
    }
    Ok(())
}

async fn unpicklable(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let target = "conformance::unpicklable";
    error_of(
        &case,
        &mut host,
        target,
        &args([]),
        "AGX-WRK-018",
        "ResultEncodeError",
    )
    .await?;
    Ok(())
}
