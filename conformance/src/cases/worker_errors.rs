//! Role worker: calls that end with an error.

use crate::case::cases;
use crate::context::{
    RunningWorker, WorkerCase, fresh_id, malformed_calls, offered, traceback_names_fail,
};
use crate::messages::{error, frame};
use crate::msgpack::{Msg, bin, map};
use crate::outcome::{Outcome, exact_frame};
use crate::pickle::{Value, args, call_arguments, text};
use crate::verdict::{Stop, Verdict, check, equal_bytes};

cases! {
    Worker "worker/error/sync", "a sync function that raises: class name, text, five keys",
        ["AGX-RPC-044", "AGX-RPC-040", "AGX-WRK-030", "AGX-WRK-031"], sync;
    Worker "worker/error/async", "an async function that raises: class name, text, five keys",
        ["AGX-RPC-044", "AGX-RPC-040", "AGX-WRK-030", "AGX-WRK-031"], asynchronous;
    Worker "worker/error/traceback", "the traceback names the function that raised",
        ["AGX-RPC-045"], traceback;
    Worker "worker/error/base-exceptions", "SystemExit, KeyboardInterrupt, CancelledError and GeneratorExit of a sync function are ordinary errors",
        ["AGX-WRK-030", "AGX-WRK-031"], base_exceptions;
    Worker "worker/error/base-exceptions-async", "the same, raised by an async function",
        ["AGX-WRK-030", "AGX-WRK-031"], base_exceptions_async;
    Worker "worker/error/others-unharmed", "other calls do not notice one that raises",
        ["AGX-WRK-032"], others_unharmed;
    Worker "worker/error/surplus-arguments", "missing and surplus arguments end the call with an error",
        ["AGX-WRK-030"], surplus_arguments;
    Worker "worker/target/grammar", "a target that breaks the grammar is a ValueError",
        ["AGX-TGT-012"], target_grammar;
    Worker "worker/target/no-module", "a module that does not exist",
        ["AGX-TGT-012"], target_no_module;
    Worker "worker/target/no-attribute", "a name that the module does not have",
        ["AGX-TGT-012", "AGX-TGT-011"], target_no_attribute;
    Worker "worker/target/not-callable", "a name that cannot be called",
        ["AGX-TGT-012"], target_not_callable;
    Worker "worker/target/import-raises", "a module that raises while it is imported",
        ["AGX-TGT-012"], target_import_raises;
    Worker "worker/arguments/undecodable", "bytes that are no pickle, or one cut short",
        ["AGX-WRK-013"], arguments_undecodable;
    Worker "worker/arguments/wrong-shape", "a pickle of something else than a pair of tuple and dict",
        ["AGX-WRK-013"], arguments_wrong_shape;
    Worker "worker/arguments/unknown-class", "a pickle that names a class which cannot be imported",
        ["AGX-WRK-013"], arguments_unknown_class;
    Worker "worker/result/unpicklable", "a value that cannot be pickled",
        ["AGX-WRK-018"], unpicklable;
    Worker "worker/result/too-large", "a result over 256 MiB is FrameTooLarge, and the worker lives on",
        ["AGX-WRK-019", "AGX-PIPE-002", "AGX-LIM-002", "AGX-LIM-003"], too_large;
    Worker "worker/bad-call/fields", "a call whose fields have wrong types is BadRequest, with its id",
        ["AGX-WRK-012", "AGX-WRK-011"], bad_fields;
    Worker "worker/bad-call/id", "a call without a valid id is BadRequest, with the empty id",
        ["AGX-WRK-012"], bad_id;
}

/// Calls, waits for an error of exact bytes, and checks that the worker lives on.
async fn error_after(
    worker: &mut RunningWorker,
    target: &str,
    arguments: &[u8],
    requirement: &'static str,
    kind: &str,
) -> Verdict<crate::outcome::RemoteError> {
    worker.alive().await?;
    let id = fresh_id();
    worker.call(&id, target, arguments).await?;
    let terminal = worker.pipe.terminal(&id).await?;
    exact_frame(&terminal)?;
    let error = terminal.outcome.plain_error_of(requirement, kind)?;
    check(
        error.returncode.is_none(),
        "AGX-RPC-043",
        "`returncode` nil",
        format_args!("{error:?}"),
    )?;
    worker.alive().await?;
    worker.pipe.terminals("AGX-WRK-010", &id, 1)?;
    Ok(error)
}

async fn raises(case: WorkerCase, function: &str) -> Verdict {
    let mut worker = case.ready().await?;
    let message = "boom \u{1f600} 'quoted'";
    let target = format!("conformance::{function}");
    let error = error_after(
        &mut worker,
        &target,
        &args([text(message)]),
        "AGX-RPC-044",
        "ValueError",
    )
    .await?;
    check(
        error.message == message,
        "AGX-RPC-044",
        format_args!("the message {message:?}"),
        format_args!("{error:?}"),
    )
}

async fn sync(case: WorkerCase) -> Verdict {
    raises(case, "fail").await
}

async fn asynchronous(case: WorkerCase) -> Verdict {
    raises(case, "fail_async").await
}

async fn traceback(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    for function in ["fail", "fail_async"] {
        let id = fresh_id();
        worker
            .call(
                &id,
                &format!("conformance::{function}"),
                &args([text("why")]),
            )
            .await?;
        let error = worker
            .pipe
            .outcome(&id)
            .await?
            .plain_error_of("AGX-RPC-044", "ValueError")?;
        traceback_names_fail(&error)?;
    }
    Ok(())
}

async fn base_exceptions(case: WorkerCase) -> Verdict {
    base(case, "raise_base").await
}

async fn base_exceptions_async(case: WorkerCase) -> Verdict {
    base(case, "raise_base_async").await
}

async fn base(case: WorkerCase, function: &'static str) -> Verdict {
    let mut worker = case.ready().await?;
    for kind in [
        "SystemExit",
        "KeyboardInterrupt",
        "CancelledError",
        "GeneratorExit",
    ] {
        let id = fresh_id();
        worker
            .call(
                &id,
                &format!("conformance::{function}"),
                &args([text(kind)]),
            )
            .await?;
        let outcome = offered(function, worker.pipe.outcome(&id).await?)?;
        let error = outcome.plain_error_of("AGX-WRK-030", kind)?;
        check(
            error.message == "raised by the target",
            "AGX-RPC-044",
            "the message `raised by the target`",
            format_args!("{error:?}"),
        )?;
        worker.alive().await?;
        worker.pipe.terminals("AGX-WRK-010", &id, 1)?;
    }
    Ok(())
}

async fn others_unharmed(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let (slow, key) = (fresh_id(), text(&fresh_id()));
    worker
        .call(
            &slow,
            "conformance::count_slow",
            &args([key.clone(), Value::Float(0.2)]),
        )
        .await?;
    worker.until_counted(&key, 1).await?;
    for function in ["fail", "fail_async"] {
        let id = fresh_id();
        worker
            .call(&id, &format!("conformance::{function}"), &args([text("x")]))
            .await?;
        worker
            .pipe
            .outcome(&id)
            .await?
            .plain_error_of("AGX-RPC-044", "ValueError")?;
    }
    worker
        .pipe
        .outcome(&slow)
        .await?
        .is("AGX-WRK-032", &Value::Int(1))
}

async fn surplus_arguments(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let unknown = call_arguments(vec![Value::None], vec![("nobody", Value::None)]);
    for arguments in [args([]), args([Value::None, Value::None]), unknown] {
        let id = fresh_id();
        worker.call(&id, "conformance::echo", &arguments).await?;
        let error = worker.pipe.outcome(&id).await?.error("AGX-WRK-030")?;
        check(
            !error.cancelled,
            "AGX-WRK-030",
            "`cancelled` false",
            format_args!("{error:?}"),
        )?;
        worker.alive().await?;
    }
    Ok(())
}

async fn target_grammar(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let broken = [
        "",
        "::",
        "conformance",
        "conformance:echo",
        "conformance::",
        "::echo",
        "conformance::echo::x",
        "conformance::.echo",
        "conformance::echo.",
        "conformance::echo..x",
        ".conformance::echo",
        "conformance.::echo",
        "conformance:: echo",
        "conformance::<lambda>",
        "conformance::f.<locals>.g",
        "conformance::1echo",
        "conformance::echo\n",
        "a b::c",
    ];
    for target in broken {
        error_after(
            &mut worker,
            target,
            &args([Value::None]),
            "AGX-TGT-012",
            "ValueError",
        )
        .await?;
    }
    Ok(())
}

async fn target_no_module(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    for target in ["no_such_module_5f1c::f", "no_such_package_5f1c.sub::f"] {
        error_after(
            &mut worker,
            target,
            &args([]),
            "AGX-TGT-012",
            "ModuleNotFoundError",
        )
        .await?;
    }
    Ok(())
}

async fn target_no_attribute(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    for target in [
        "conformance::no_such_function",
        "conformance::Nothing.echo",
        "conformance::Echo",
    ] {
        error_after(
            &mut worker,
            target,
            &args([]),
            "AGX-TGT-012",
            "AttributeError",
        )
        .await?;
    }
    Ok(())
}

/// Calls a target of a module that only workers in Python find.
async fn python_target(case: WorkerCase, target: &str, kind: &str) -> Verdict {
    let mut worker = case.ready().await?;
    worker.alive().await?;
    for _ in 0..2 {
        let id = fresh_id();
        worker.call(&id, target, &args([])).await?;
        let terminal = worker.pipe.terminal(&id).await?;
        exact_frame(&terminal)?;
        let missing = matches!(&terminal.outcome, Outcome::Error(error) if error.kind == "ModuleNotFoundError");
        if missing {
            let reason =
                format!("the worker does not import Python modules, such as that of {target}");
            return Err(Stop::NotApplicable(reason));
        }
        terminal.outcome.plain_error_of("AGX-TGT-012", kind)?;
        worker.alive().await?;
    }
    Ok(())
}

async fn target_not_callable(case: WorkerCase) -> Verdict {
    python_target(case, "sys::maxsize", "TypeError").await
}

async fn target_import_raises(case: WorkerCase) -> Verdict {
    python_target(case, "conformance_raises::f", "LookupError").await
}

async fn arguments_undecodable(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let whole = args([Value::Int(1)]);
    let cut = &whole[..whole.len() - 2];
    for arguments in [&[][..], b"\x80\x04", cut, b"not a pickle", &[0xff; 64]] {
        refused(&mut worker, arguments).await?;
    }
    Ok(())
}

async fn refused(worker: &mut RunningWorker, arguments: &[u8]) -> Verdict {
    let kind = "ArgumentsDecodeError";
    error_after(worker, "conformance::echo", arguments, "AGX-WRK-013", kind)
        .await
        .map(|_| ())
}

async fn arguments_wrong_shape(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let pair = || Value::Tuple(vec![Value::Int(1), Value::Int(2)]);
    let shapes = [
        Value::None,
        pair(),
        Value::List(vec![Value::Tuple(vec![]), Value::Dict(vec![])]),
        Value::Tuple(vec![pair()]),
        Value::Tuple(vec![pair(), Value::Dict(vec![]), Value::None]),
        Value::Tuple(vec![pair(), Value::None]),
        Value::Tuple(vec![Value::Int(5), Value::Dict(vec![])]),
        Value::Tuple(vec![Value::List(vec![Value::Int(1)]), Value::Dict(vec![])]),
        Value::Tuple(vec![
            Value::Tuple(vec![]),
            Value::Dict(vec![(Value::Int(1), Value::None)]),
        ]),
    ];
    for shape in shapes {
        refused(&mut worker, &shape.dump()).await?;
    }
    Ok(())
}

async fn arguments_unknown_class(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    // ((no_such_module_5f1c.Nothing,), {})
    refused(
        &mut worker,
        b"\x80\x02cno_such_module_5f1c\nNothing\n\x85}\x86.",
    )
    .await
}

async fn unpicklable(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let target = "conformance::unpicklable";
    let error = error_after(
        &mut worker,
        target,
        &args([]),
        "AGX-WRK-018",
        "ResultEncodeError",
    )
    .await?;
    check(
        error.traceback.is_none(),
        "AGX-WRK-018",
        "`traceback` nil",
        format_args!("{error:?}"),
    )
}

async fn too_large(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let (other, key) = (fresh_id(), text(&fresh_id()));
    let slow = args([key.clone(), Value::Float(60.0)]);
    worker
        .call(&other, "conformance::count_slow", &slow)
        .await?;
    worker.until_counted(&key, 1).await?;
    // The value alone is as long as a whole frame may be.
    worker.pipe.be_patient(6);
    let target = "conformance::blob";
    let size = args([Value::Int(268_435_456)]);
    error_after(&mut worker, target, &size, "AGX-WRK-019", "FrameTooLarge").await?;
    worker.pipe.terminals("AGX-LIM-003", &other, 0)?;
    worker.pipe.send(&frame::cancel(&other)).await?;
    worker.pipe.outcome(&other).await?.cancelled("AGX-LIM-003")
}

async fn bad_fields(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    let payloads = malformed_calls(&id);
    for (count, (what, payload)) in payloads.into_iter().enumerate() {
        worker.alive().await?;
        // The payload of `call`, whose map head is one byte, with a `type` before its keys.
        let mut body = vec![payload[0] + 1];
        body.extend(b"\xa4type\xa4call");
        body.extend_from_slice(&payload[1..]);
        worker.pipe.send(&body).await?;
        let terminal = worker.pipe.terminal(&id).await;
        let terminal = terminal.map_err(|stop| stop.in_case_of(what))?;
        exact_frame(&terminal)?;
        let error = terminal.outcome.plain_error_of("AGX-WRK-012", "BadRequest");
        error.map_err(|stop| stop.in_case_of(what))?;
        worker.alive().await?;
        worker.pipe.terminals("AGX-WRK-010", &id, count + 1)?;
    }
    // The id was taken from no well-formed frame: the corrected call runs.
    worker
        .call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-WRK-011", &Value::Int(1))
}

async fn bad_id(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let long = "x".repeat(129);
    let ids = [
        ("no call_id", None),
        ("an empty call_id", Some(crate::msgpack::text(""))),
        ("a call_id of 129 bytes", Some(crate::msgpack::text(&long))),
        ("an int call_id", Some(Msg::Int(7))),
        ("a bin call_id", Some(bin(b"abc"))),
        ("a nil call_id", Some(Msg::Nil)),
    ];
    for (count, (what, id)) in ids.into_iter().enumerate() {
        worker.alive().await?;
        let mut entries = vec![(crate::msgpack::text("type"), crate::msgpack::text("call"))];
        entries.extend(id.map(|id| (crate::msgpack::text("call_id"), id)));
        let rest = map([
            ("callable", crate::msgpack::text("conformance::echo")),
            ("arguments", bin(&args([Value::Int(1)]))),
            ("context", Msg::Nil),
        ]);
        let Msg::Map(rest) = rest else { unreachable!() };
        entries.extend(rest);
        worker.pipe.send(&Msg::Map(entries).bytes()).await?;
        let terminal = worker
            .pipe
            .terminal("")
            .await
            .map_err(|stop| stop.in_case_of(what))?;
        if let Outcome::Error(came) = &terminal.outcome {
            let expected = error("BadRequest", &came.message, None, false, None);
            let expected = frame::error("", expected);
            equal_bytes("AGX-WRK-012", what, &expected, &terminal.bytes)?;
        }
        terminal
            .outcome
            .error("AGX-WRK-012")
            .map_err(|stop| stop.in_case_of(what))?;
        worker.alive().await?;
        worker.pipe.terminals("AGX-WRK-010", "", count + 1)?;
    }
    // 128 bytes are allowed.
    let longest = "x".repeat(128);
    worker
        .call(&longest, "conformance::echo", &args([Value::Int(8)]))
        .await?;
    worker
        .pipe
        .outcome(&longest)
        .await?
        .is("AGX-WRK-012", &Value::Int(8))
}
