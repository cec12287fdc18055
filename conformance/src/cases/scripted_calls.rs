//! Role runtime, the suite playing its worker: calls, outcomes and cancel on the pipe.

use crate::case::cases;
use crate::context::{ScriptedCase, call_arrives, fresh_id};
use crate::messages::{self, error, frame};
use crate::msgpack::{Msg, bin, map, text};
use crate::outcome::{Outcome, exact_payload};
use crate::pickle::{Value, args};
use crate::verdict::{Verdict, check, equal, equal_bytes};

cases! {
    Scripted "runtime/pipe/call-frame", "the `call` frame, byte by byte: context nil",
        ["AGX-PIPE-020", "AGX-PIPE-021", "AGX-PIPE-022", "AGX-PIPE-001"], call_frame;
    Scripted "runtime/pipe/call-frame-context", "the `call` frame with context, and without, over both ways in",
        ["AGX-PIPE-021", "AGX-PIPE-022", "AGX-RPC-019", "AGX-RPC-020"], call_frame_context;
    Scripted "runtime/pipe/opaque", "target and arguments are passed on unread, and so is the value",
        ["AGX-RPC-020", "AGX-TGT-010", "AGX-RPC-031"], opaque;
    Scripted "runtime/pipe/order-of-calls", "calls that came before `ready` are sent in their order",
        ["AGX-PIPE-032", "AGX-PIPE-025"], order_of_calls;
    Scripted "runtime/pipe/error", "an error of the worker is passed on with its values",
        ["AGX-RPC-046", "AGX-RPC-042"], error_passed_on;
    Scripted "runtime/pipe/error-incomplete", "an error without some of its keys gets them",
        ["AGX-RPC-041", "AGX-RPC-040"], error_incomplete;
    Scripted "runtime/pipe/second-outcome", "a second terminal frame of one call is dropped",
        ["AGX-CALL-022", "AGX-CALL-020"], second_outcome;
    Scripted "runtime/pipe/unknown-outcome", "a terminal frame that names no running call is dropped",
        ["AGX-CALL-023", "AGX-CALL-004"], unknown_outcome;
    Scripted "runtime/pipe/unusable-outcome", "a terminal frame without a usable value or error ends the call all the same",
        ["AGX-PIPE-024", "AGX-RPC-043"], unusable_outcome;
    Scripted "runtime/pipe/order-of-outcomes", "outcomes reach a host in the order of the pipe",
        ["AGX-PIPE-026"], order_of_outcomes;
    Scripted "runtime/pipe/cancel-frame", "a cancel reaches the worker behind its call, byte by byte; the host does not wait",
        ["AGX-CALL-050", "AGX-CALL-051", "AGX-PIPE-025"], cancel_frame;
    Scripted "runtime/pipe/cancel-late-result", "what the worker says of a cancelled call is dropped",
        ["AGX-CALL-022", "AGX-CALL-052"], cancel_late_result;
    Scripted "runtime/pipe/cancel-silent", "cancels that change nothing reach no worker",
        ["AGX-CALL-055", "AGX-RPC-050"], cancel_silent;
    Scripted "runtime/pipe/cancel-before-ready", "a call cancelled before `ready` is not sent to the worker",
        ["AGX-CALL-056", "AGX-CALL-051"], cancel_before_ready;
    Scripted "runtime/pipe/repeat", "a repeat causes no second frame",
        ["AGX-CALL-010", "AGX-CALL-003"], repeat;
    Scripted "runtime/pipe/worker-cancelled", "an error that the worker calls cancelled is an outcome like any other",
        ["AGX-RPC-046", "AGX-CALL-023"], worker_cancelled;
}

async fn call_frame(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let id = fresh_id();
    let arguments = args([Value::Int(1), Value::Int(2)]);
    host.call(&id, "app::add", &arguments).await?;
    let mut worker = case.ready_worker().await?;
    let came = worker.pipe.frame("call").await?;
    let expected = frame::call(&id, "app::add", &arguments, Msg::Nil);
    equal_bytes("AGX-PIPE-020", "call frame", &expected, &came.body)?;
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(3).dump()))
        .await?;
    let (_, terminal) = host.terminal(&id).await?;
    let expected = messages::result(&id, &Value::Int(3).dump());
    equal_bytes("AGX-RPC-031", "call:result", &expected, &terminal.bytes)?;
    case.alive(&mut host, &mut worker).await
}

async fn call_frame_context(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    let context = Value::Dict(vec![(
        crate::pickle::text("agentix_context_baggage"),
        Value::None,
    )])
    .dump();
    let arguments = args([]);
    for over_http in [false, true] {
        for (given, expected) in [
            (Msg::Nil, Msg::Nil),
            (bin(&context), bin(&context)),
            (bin(b"\xff no pickle"), bin(b"\xff no pickle")),
        ] {
            let id = fresh_id();
            let payload = messages::call_with_context(&id, "app::run", &arguments, given);
            if over_http {
                case.runtime
                    .http()
                    .call(&[("prefer", "wait=0")], payload)
                    .await?;
            } else {
                host.emit("/rpc", "call", &payload).await?;
            }
            let came = worker.pipe.frame("call").await?;
            let expected = frame::call(&id, "app::run", &arguments, expected);
            equal_bytes("AGX-PIPE-021", "call frame", &expected, &came.body)?;
        }
    }
    case.alive(&mut host, &mut worker).await
}

async fn opaque(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    let everything: Vec<u8> = (0..=255).collect();
    let large = vec![0xc1; 1 << 20];
    let targets = [
        "",
        "no separator",
        "a::b::c",
        "\u{0}\u{1f600} ::\n",
        "app::<lambda>",
    ];
    for target in targets {
        for bytes in [&[][..], &everything, &large] {
            let id = fresh_id();
            host.call(&id, target, bytes).await?;
            let came = worker.pipe.frame("call").await?;
            let expected = frame::call(&id, target, bytes, Msg::Nil);
            equal_bytes("AGX-RPC-020", "call frame", &expected, &came.body)?;
            worker.pipe.send(&frame::result(&id, bytes)).await?;
            let (_, terminal) = host.terminal(&id).await?;
            equal_bytes(
                "AGX-RPC-031",
                "call:result",
                &messages::result(&id, bytes),
                &terminal.bytes,
            )?;
        }
    }
    Ok(())
}

async fn order_of_calls(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let ids: Vec<_> = (0..50).map(|_| fresh_id()).collect();
    for id in &ids {
        host.call(id, "app::run", &args([])).await?;
    }
    host.fence().await?;
    let mut worker = case.worker().await?;
    worker.pipe.send(&frame::ready()).await?;
    for id in &ids {
        call_arrives(&mut worker, id).await?;
    }
    for id in &ids {
        worker
            .pipe
            .send(&frame::result(id, &Value::None.dump()))
            .await?;
        host.outcome(id).await?.is("AGX-PIPE-032", &Value::None)?;
    }
    Ok(())
}

async fn error_passed_on(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, first) = case.running().await?;
    let errors = [
        error(
            "ValueError",
            "boom",
            Some("Traceback\n  boom\n"),
            false,
            None,
        ),
        error("Some.Class-nobody\u{1f600}", "", None, false, None),
        error("", "\u{0}", Some(""), false, Some(i64::MIN)),
        error("WorkerDied", "so says the worker", None, false, Some(-9)),
    ];
    let mut id = first;
    for error in errors {
        worker.pipe.send(&frame::error(&id, error.clone())).await?;
        let (event, terminal) = host.terminal(&id).await?;
        equal("AGX-RPC-001", "event", &"call:error", &&*event.name)?;
        let expected = map([("call_id", text(&id)), ("error", error)]).bytes();
        equal_bytes("AGX-RPC-046", "call:error", &expected, &terminal.bytes)?;
        id = case.call(&mut host, &mut worker).await?;
    }
    Ok(())
}

async fn error_incomplete(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, first) = case.running().await?;
    let full = |kind, message| error(kind, message, None, false, None);
    let errors = [
        (map([]), full("Unknown", "")),
        (map([("type", text("T"))]), full("T", "")),
        (
            map([("message", text("m")), ("extra", Msg::Int(1))]),
            full("Unknown", "m"),
        ),
        (
            map([("type", text("T")), ("message", text("m"))]),
            full("T", "m"),
        ),
        (
            map([
                ("type", Msg::Int(1)),
                ("message", bin(b"m")),
                ("traceback", Msg::Array(vec![])),
                ("cancelled", text("yes")),
                ("returncode", text("1")),
            ]),
            full("Unknown", ""),
        ),
        (
            map([("cancelled", Msg::Nil), ("type", text("T"))]),
            full("T", ""),
        ),
    ];
    let mut id = first;
    for (sent, expected) in errors {
        worker.pipe.send(&frame::error(&id, sent)).await?;
        let (_, terminal) = host.terminal(&id).await?;
        let expected = map([("call_id", text(&id)), ("error", expected)]).bytes();
        equal_bytes("AGX-RPC-041", "call:error", &expected, &terminal.bytes)?;
        id = case.call(&mut host, &mut worker).await?;
    }
    Ok(())
}

async fn second_outcome(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(1).dump()))
        .await?;
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(2).dump()))
        .await?;
    let late = error("ValueError", "late", None, false, None);
    worker.pipe.send(&frame::error(&id, late)).await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-022", &Value::Int(1))?;
    case.alive(&mut host, &mut worker).await?;
    equal("AGX-CALL-022", "outcomes", &1, &host.outcomes_so_far(&id))?;
    host.resume(&[&id]).await?;
    host.outcome(&id).await?.is("AGX-CALL-022", &Value::Int(1))
}

async fn unknown_outcome(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, running) = case.running().await?;
    let id = fresh_id();
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(1).dump()))
        .await?;
    worker
        .pipe
        .send(&frame::error(&id, error("T", "m", None, false, None)))
        .await?;
    // Without a usable id there is nobody to tell.
    worker
        .pipe
        .send(&map([("type", text("result")), ("value", bin(b"N."))]).bytes())
        .await?;
    worker
        .pipe
        .send(&map([("type", text("error")), ("call_id", Msg::Int(1))]).bytes())
        .await?;
    case.alive(&mut host, &mut worker).await?;
    host.no_outcome("AGX-CALL-023", &id)?;
    host.no_outcome("AGX-CALL-023", &running)?;
    // It has not become a call either: it runs when it is sent.
    host.call(&id, "app::run", &args([])).await?;
    call_arrives(&mut worker, &id).await?;
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(2).dump()))
        .await?;
    host.outcome(&id).await?.is("AGX-CALL-004", &Value::Int(2))
}

async fn unusable_outcome(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, first) = case.running().await?;
    let frames: [fn(&str) -> Msg; 8] = [
        |id| map([("type", text("result")), ("call_id", text(id))]),
        |id| {
            map([
                ("type", text("result")),
                ("call_id", text(id)),
                ("value", Msg::Nil),
            ])
        },
        |id| {
            map([
                ("type", text("result")),
                ("call_id", text(id)),
                ("value", Msg::Int(1)),
            ])
        },
        |id| {
            map([
                ("type", text("result")),
                ("call_id", text(id)),
                ("value", text("a str")),
            ])
        },
        |id| {
            map([
                ("type", text("result")),
                ("call_id", text(id)),
                ("error", map([])),
            ])
        },
        |id| map([("type", text("error")), ("call_id", text(id))]),
        |id| {
            map([
                ("type", text("error")),
                ("call_id", text(id)),
                ("error", Msg::Nil),
            ])
        },
        |id| {
            map([
                ("type", text("error")),
                ("call_id", text(id)),
                ("error", text("boom")),
            ])
        },
    ];
    let mut id = first;
    for frame in frames {
        worker.pipe.send(&frame(&id).bytes()).await?;
        let what = format!("{:?}", frame("ID"));
        let (_, terminal) = host
            .terminal(&id)
            .await
            .map_err(|stop| stop.in_case_of(&what))?;
        exact_payload(&terminal)?;
        let error = terminal
            .outcome
            .plain_error_of("AGX-PIPE-024", "ResultEncodeError");
        error.map_err(|stop| stop.in_case_of(&what))?;
        id = case.call(&mut host, &mut worker).await?;
    }
    worker
        .pipe
        .send(&frame::result(&id, &Value::None.dump()))
        .await?;
    host.outcome(&id).await?.is("AGX-PIPE-024", &Value::None)
}

async fn order_of_outcomes(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, first) = case.running().await?;
    let mut ids = vec![first];
    for _ in 0..49 {
        ids.push(case.call(&mut host, &mut worker).await?);
    }
    fastrand::shuffle(&mut ids);
    for (number, id) in ids.iter().enumerate() {
        // Large and small in turn: nothing overtakes.
        let size = if number % 3 == 0 { 200_000 } else { 10 };
        let value = Value::Bytes(vec![number as u8; size]);
        worker.pipe.send(&frame::result(id, &value.dump())).await?;
    }
    for id in &ids {
        let terminal = host.next_outcome().await?;
        equal(
            "AGX-PIPE-026",
            "call_id of the next outcome",
            id,
            &terminal.call_id,
        )?;
    }
    Ok(())
}

async fn cancel_frame(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    host.cancel(&id).await?;
    let came = worker.pipe.frame("cancel").await?;
    equal_bytes(
        "AGX-CALL-050",
        "cancel frame",
        &frame::cancel(&id),
        &came.body,
    )?;
    // The worker says nothing, and need not.
    let (_, terminal) = host.terminal(&id).await?;
    exact_payload(&terminal)?;
    terminal.outcome.cancelled("AGX-CALL-051")?;
    case.alive(&mut host, &mut worker).await
}

async fn cancel_late_result(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    host.cancel(&id).await?;
    worker.pipe.frame("cancel").await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-051")?;
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(1).dump()))
        .await?;
    let own = error("Cancelled", "remote call cancelled", None, true, None);
    worker.pipe.send(&frame::error(&id, own)).await?;
    case.alive(&mut host, &mut worker).await?;
    equal("AGX-CALL-022", "outcomes", &1, &host.outcomes_so_far(&id))?;
    host.resume(&[&id]).await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-052")
}

async fn cancel_silent(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(1).dump()))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    host.cancel(&id).await?;
    host.cancel(&fresh_id()).await?;
    case.alive(&mut host, &mut worker).await?;
    let cancels = worker
        .pipe
        .history()
        .iter()
        .filter(|frame| frame.kind == "cancel")
        .count();
    equal("AGX-CALL-055", "cancel frames", &0, &cancels)
}

async fn cancel_before_ready(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let (id, kept) = (fresh_id(), fresh_id());
    host.call(&id, "app::run", &args([])).await?;
    host.call(&kept, "app::run", &args([])).await?;
    let mut worker = case.worker().await?;
    host.cancel(&id).await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-051")?;
    worker.pipe.send(&frame::ready()).await?;
    // The first frame is that of the other call.
    call_arrives(&mut worker, &kept).await?;
    worker
        .pipe
        .send(&frame::result(&kept, &Value::None.dump()))
        .await?;
    host.outcome(&kept)
        .await?
        .is("AGX-CALL-056", &Value::None)?;
    case.alive(&mut host, &mut worker).await?;
    equal(
        "AGX-CALL-056",
        "calls sent to the worker",
        &2,
        &calls(&worker),
    )?;
    equal("AGX-PIPE-031", "workers started", &1, &case.board.workers)
}

fn calls(worker: &crate::peer::tunnel::ScriptedWorker) -> usize {
    worker
        .pipe
        .history()
        .iter()
        .filter(|frame| frame.kind == "call")
        .count()
}

async fn repeat(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    host.call(&id, "app::run", &args([])).await?;
    host.call(&id, "app::other", &args([Value::Int(1)])).await?;
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(1).dump()))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    host.call(&id, "app::run", &args([])).await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-012", &Value::Int(1))?;
    case.alive(&mut host, &mut worker).await?;
    // One of them is that of the probe.
    equal(
        "AGX-CALL-003",
        "calls sent to the worker",
        &2,
        &calls(&worker),
    )
}

async fn worker_cancelled(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    let own = error("Cancelled", "remote call cancelled", None, true, None);
    worker.pipe.send(&frame::error(&id, own)).await?;
    let outcome = host.outcome(&id).await?;
    let ended = matches!(&outcome, Outcome::Error(error) if error.kind == "Cancelled");
    check(
        ended,
        "AGX-CALL-023",
        "the error of the worker",
        format_args!("{outcome:?}"),
    )?;
    case.alive(&mut host, &mut worker).await
}
