//! Role runtime, the suite playing its worker: when a worker is started, how it ends, and what that means for calls.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::case::cases;
use crate::context::{RuntimeCase, ScriptedCase, call_arrives, fresh_id, pass};
use crate::messages::{error, frame};
use crate::outcome::exact_payload;
use crate::peer::session::Session;
use crate::pickle::{Value, args};
use crate::verdict::{Stop, Verdict, check, equal, equal_bytes};

cases! {
    Scripted "runtime/life/started-by-call", "connecting, joining, events and `/health` start no worker; a call does",
        ["AGX-PIPE-030", "AGX-SIDE-038", "AGX-CON-043", "AGX-HTTP-002"], started_by_call;
    Scripted "runtime/life/one-worker", "many calls start one worker",
        ["AGX-PIPE-031"], one_worker;
    Scripted "runtime/life/accepted-while-starting", "calls are accepted and `/health` answers while the worker starts",
        ["AGX-HTTP-002", "AGX-HTTP-025", "AGX-RPC-061"], accepted_while_starting;
    Scripted "runtime/life/exit", "a worker that exits: WorkerDied with its status for each running call",
        ["AGX-CALL-070", "AGX-CALL-071", "AGX-PIPE-041"], exit;
    Scripted "runtime/life/killed", "a worker that is killed: WorkerDied with minus the signal",
        ["AGX-CALL-071", "AGX-CALL-070"], killed;
    Scripted "runtime/life/output-closed", "a worker that closes its output is lost, and is killed",
        ["AGX-PIPE-010", "AGX-PIPE-040", "AGX-CALL-070"], output_closed;
    Scripted "runtime/life/last-words", "what a worker sent before it died counts",
        ["AGX-CALL-020", "AGX-PIPE-026"], last_words;
    Scripted "runtime/life/boot-error", "`boot_error`: WorkerUnavailable with the cause, for each waiting call",
        ["AGX-CALL-072", "AGX-CALL-073", "AGX-PIPE-036"], boot_error;
    Scripted "runtime/life/exit-before-ready", "an exit before `ready`: WorkerUnavailable at once",
        ["AGX-CALL-072", "AGX-CALL-071", "AGX-CALL-073", "AGX-PIPE-036"], exit_before_ready;
    Scripted "runtime/life/killed-before-ready", "a worker killed before `ready`: WorkerUnavailable with minus the signal",
        ["AGX-CALL-071", "AGX-CALL-072", "AGX-PIPE-036"], killed_before_ready;
    Scripted "runtime/life/output-closed-before-ready", "a closed output before `ready`: WorkerUnavailable at once",
        ["AGX-CALL-072", "AGX-PIPE-036", "AGX-PIPE-037"], output_closed_before_ready;
    Scripted "runtime/life/never-ready", "no `ready` within 15 s: WorkerUnavailable, and the process is ended",
        ["AGX-PIPE-036", "AGX-CALL-072", "AGX-PIPE-037"], never_ready;
    Scripted "runtime/life/no-such-command", "a worker command that cannot be run: WorkerUnavailable",
        ["AGX-PIPE-036", "AGX-CALL-072", "AGX-CALL-073"], no_such_command;
    Scripted "runtime/life/back-off", "during back-off calls fail at once with the last failure; after it a worker is started",
        ["AGX-CALL-074", "AGX-PIPE-038"], back_off;
    Scripted "runtime/life/no-back-off-after-ready", "the death of a worker that was ready causes no wait",
        ["AGX-PIPE-038", "AGX-PIPE-041"], no_back_off_after_ready;
    Scripted "runtime/life/cancel-while-starting", "a cancel during the start leaves no worker behind",
        ["AGX-CALL-057", "AGX-PIPE-031"], cancel_while_starting;
    Scripted "runtime/life/old-worker-forgotten", "a new worker's outcomes count, and ids stay closed",
        ["AGX-CALL-023", "AGX-CALL-003"], old_worker_forgotten;
    Scripted "runtime/stop/sigterm", "SIGTERM: `shutdown` to the worker, then the runtime ends",
        ["AGX-PIPE-042", "AGX-PIPE-043", "AGX-PIPE-044"], sigterm;
    Scripted "runtime/stop/sigint", "SIGINT does the same",
        ["AGX-PIPE-043", "AGX-PIPE-042"], sigint;
    Scripted "runtime/stop/idle", "a runtime that never had a worker ends on SIGTERM",
        ["AGX-PIPE-043"], idle;
    Scripted "runtime/stop/close-code", "a runtime that stops closes WebSockets with 1012",
        ["AGX-CON-081"], close_code;
    Scripted "runtime/stop/deaf-worker", "a worker that ignores `shutdown` is ended all the same",
        ["AGX-PIPE-044", "AGX-PIPE-042"], deaf_worker;
}

async fn started_by_call(mut case: ScriptedCase) -> Verdict {
    // How long a start takes here: from a call to the first sign of its worker.
    let mut host = case.runtime.host().await?;
    let asked = Instant::now();
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut worker = case.ready_worker().await?;
    let start = asked.elapsed();
    call_arrives(&mut worker, &id).await?;
    worker.exit(0).await?;
    host.outcome(&id)
        .await?
        .error_of("AGX-CALL-070", "WorkerDied")?;

    let mut quiet = case.runtime.session().await?;
    for namespace in ["/rpc", "/log", "/trace", "/app"] {
        quiet.join(namespace).await?;
    }
    for (namespace, event, payload) in [
        ("/app", "hello", &[0xc0][..]),
        ("/log", "_resume", b"\x81\xa9since_seq\x00"),
        ("/trace", "_ack", b"\x81\xa3seq\x01"),
        ("/rpc", "resume", b"\x81\xa8call_ids\x91\xa1x"),
    ] {
        let ack = quiet.emit_for_ack(namespace, event, payload).await?;
        quiet.acked(namespace, ack).await?;
    }
    case.runtime.http().get("/health").await?;
    let wait = case.wire().clock.scaled(Duration::from_millis(300)) + start * 4;
    let wire = case.wire().clone();
    let early = case.board.worker_within(wait, &wire).await?;
    check(
        early.is_none(),
        "AGX-PIPE-030",
        "no worker",
        "a worker was started",
    )?;
    // The silence was not that of a dead runtime.
    let id = fresh_id();
    quiet.call(&id, "app::run", &args([])).await?;
    let mut worker = case.ready_worker().await?;
    call_arrives(&mut worker, &id).await
}

async fn one_worker(mut case: ScriptedCase) -> Verdict {
    let (mut first, mut second) = (case.runtime.host().await?, case.runtime.host().await?);
    let ids: Vec<_> = (0..20).map(|_| fresh_id()).collect();
    for pair in ids.chunks(2) {
        first.call(&pair[0], "app::run", &args([])).await?;
        second.call(&pair[1], "app::run", &args([])).await?;
    }
    let mut worker = case.ready_worker().await?;
    for _ in &ids {
        worker.pipe.frame("call").await?;
    }
    case.alive(&mut first, &mut worker).await?;
    let wire = case.wire().clone();
    let another = case.board.worker_within(Duration::ZERO, &wire).await?;
    check(another.is_none(), "AGX-PIPE-031", "one worker", "two")
}

async fn accepted_while_starting(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let (id, posted) = (fresh_id(), fresh_id());
    let payload = crate::messages::call(&id, "app::run", &args([]));
    let ack = host.emit_for_ack("/rpc", "call", &payload).await?;
    let mut worker = case.worker().await?;
    host.acked("/rpc", ack).await?;
    equal(
        "AGX-HTTP-002",
        "status",
        &200,
        &case.runtime.http().get("/health").await?.status,
    )?;
    let body = crate::messages::call(&posted, "app::run", &args([]));
    let response = case
        .runtime
        .http()
        .call(&[("prefer", "wait=0.05")], body)
        .await?;
    equal("AGX-HTTP-025", "status", &202, &response.status)?;
    worker.pipe.send(&frame::ready()).await?;
    for id in [&id, &posted] {
        call_arrives(&mut worker, id).await?;
        worker
            .pipe
            .send(&frame::result(id, &Value::None.dump()))
            .await?;
        host.outcome(id).await?.is("AGX-CALL-020", &Value::None)?;
    }
    Ok(())
}

/// Ends the case unless that call ended with `WorkerDied` and that return code.
async fn died(host: &mut Session, id: &str, returncode: Option<i64>) -> Verdict {
    let (_, terminal) = host.terminal(id).await?;
    exact_payload(&terminal)?;
    let error = terminal
        .outcome
        .plain_error_of("AGX-CALL-070", "WorkerDied")?;
    equal("AGX-CALL-071", "returncode", &returncode, &error.returncode)
}

async fn exit(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, first) = case.running().await?;
    let second = case.call(&mut host, &mut worker).await?;
    worker.exit(3).await?;
    died(&mut host, &first, Some(3)).await?;
    died(&mut host, &second, Some(3)).await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut next = case.ready_worker().await?;
    call_arrives(&mut next, &id).await?;
    next.exit(0).await?;
    died(&mut host, &id, Some(0)).await
}

async fn killed(mut case: ScriptedCase) -> Verdict {
    let (mut host, worker, id) = case.running().await?;
    worker.kill()?;
    died(&mut host, &id, Some(-9)).await?;
    let mut host = case.runtime.host().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut next = case.ready_worker().await?;
    call_arrives(&mut next, &id).await?;
    case.alive(&mut host, &mut next).await
}

async fn output_closed(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    worker.close_output().await?;
    let (_, terminal) = host.terminal(&id).await?;
    exact_payload(&terminal)?;
    terminal
        .outcome
        .plain_error_of("AGX-PIPE-010", "WorkerDied")?;
    worker.pipe.end().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut next = case.ready_worker().await?;
    call_arrives(&mut next, &id).await?;
    case.alive(&mut host, &mut next).await
}

async fn last_words(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, answered) = case.running().await?;
    let open = case.call(&mut host, &mut worker).await?;
    let value = Value::Bytes(vec![7; 300_000]);
    worker
        .pipe
        .send(&frame::result(&answered, &value.dump()))
        .await?;
    worker.exit(5).await?;
    host.outcome(&answered).await?.is("AGX-CALL-020", &value)?;
    died(&mut host, &open, Some(5)).await
}

/// Ends the case unless that call ended with `WorkerUnavailable` whose message holds `cause`; gives the return code.
async fn unavailable(host: &mut Session, id: &str, cause: &str) -> Verdict<Option<i64>> {
    let (_, terminal) = host.terminal(id).await?;
    exact_payload(&terminal)?;
    let error = terminal
        .outcome
        .plain_error_of("AGX-CALL-072", "WorkerUnavailable")?;
    check(
        !error.message.is_empty() && error.message.contains(cause),
        "AGX-CALL-073",
        format_args!("a message with the cause {cause:?}"),
        format_args!("{error:?}"),
    )?;
    Ok(error.returncode)
}

async fn boot_error(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let (first, second) = (fresh_id(), fresh_id());
    host.call(&first, "app::run", &args([])).await?;
    host.call(&second, "app::run", &args([])).await?;
    let mut worker = case.worker().await?;
    let cause = error(
        "ImportError",
        "no module named nowhere-5f1c",
        None,
        false,
        None,
    );
    worker.pipe.send(&frame::boot_error(cause)).await?;
    for id in [&first, &second] {
        unavailable(&mut host, id, "nowhere-5f1c").await?;
    }
    // The process does not leave by itself; the runtime ends it.
    worker.pipe.end().await?;
    equal("AGX-PIPE-031", "workers started", &1, &case.board.workers)
}

async fn exit_before_ready(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut worker = case.worker().await?;
    worker.exit(3).await?;
    let returncode = unavailable(&mut host, &id, "3").await?;
    equal("AGX-CALL-071", "returncode", &Some(3), &returncode)
}

async fn killed_before_ready(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let worker = case.worker().await?;
    worker.kill()?;
    let returncode = unavailable(&mut host, &id, "").await?;
    equal("AGX-CALL-071", "returncode", &Some(-9), &returncode)
}

async fn output_closed_before_ready(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut worker = case.worker().await?;
    worker.close_output().await?;
    unavailable(&mut host, &id, "").await?;
    worker.pipe.end().await
}

async fn never_ready(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut worker = case.worker().await?;
    let started = Instant::now();
    // 15 s are the specification's: they pass whatever the scale of this suite's own waits.
    pass(Duration::from_secs(14)).await;
    host.fence().await?;
    host.no_outcome("AGX-PIPE-036", &id)?;
    pass(Duration::from_secs(1)).await;
    unavailable(&mut host, &id, "").await?;
    let took = started.elapsed();
    let limit = Duration::from_secs(15) + case.wire().clock.answer();
    check(
        took < limit,
        "AGX-PIPE-036",
        "an answer after 15 s",
        format_args!("after {took:?}"),
    )?;
    worker.pipe.end().await
}

async fn no_such_command(case: ScriptedCase) -> Verdict {
    // It is there while the runtime starts, so that one which looks for it then does not give up, and gone afterwards.
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("worker");
    std::fs::write(&program, "#!/bin/sh\n")?;
    std::fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )?;
    let command = program
        .to_str()
        .ok_or_else(|| Stop::Harness(format!("{program:?}")))?;
    let started = case
        .command
        .start_runtime(Some(command), case.wire().clock)
        .await;
    let (_process, endpoint) = started.map_err(|error| {
        crate::peer::missed(
            "a runtime that starts; its worker is started by a call",
            error.0,
        )
    })?;
    std::fs::remove_file(&program)?;
    let runtime = RuntimeCase::new(endpoint, case.wire().clone());
    let mut host = runtime.host().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    unavailable(&mut host, &id, "").await?;
    let body = crate::messages::call(&fresh_id(), "app::run", &args([]));
    let response = runtime.http().call(&[("prefer", "wait=8")], body).await?;
    equal("AGX-HTTP-021", "status", &200, &response.status)?;
    crate::outcome::Outcome::read_http(&response.body)?
        .plain_error_of("AGX-CALL-072", "WorkerUnavailable")
        .map(|_| ())
}

async fn back_off(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut worker = case.worker().await?;
    let cause = error("ImportError", "cause-5f1c", None, false, None);
    worker.pipe.send(&frame::boot_error(cause)).await?;
    unavailable(&mut host, &id, "cause-5f1c").await?;
    let failed = Instant::now();
    // Half a second of back-off: these come well within it, unless the machine stalls.
    let (early, kind) = (fresh_id(), "AGX-CALL-074");
    host.call(&early, "app::run", &args([])).await?;
    let (_, terminal) = host.terminal(&early).await?;
    let stalled = failed.elapsed() > Duration::from_millis(400);
    if !stalled {
        let error = terminal.outcome.plain_error_of(kind, "WorkerUnavailable")?;
        check(
            error.message.contains("cause-5f1c"),
            kind,
            "the last failure, with its cause",
            format_args!("{error:?}"),
        )?;
        equal(kind, "workers started", &1, &case.board.workers)?;
        let wire = case.wire().clone();
        let another = case
            .board
            .worker_within(Duration::from_millis(50), &wire)
            .await?;
        check(
            another.is_none(),
            "AGX-PIPE-038",
            "no second start yet",
            "a second worker",
        )?;
    }
    pass(Duration::from_millis(550)).await;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut next = case.ready_worker().await?;
    call_arrives(&mut next, &id).await?;
    case.alive(&mut host, &mut next).await
}

async fn no_back_off_after_ready(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, first) = case.running().await?;
    worker.exit(1).await?;
    died(&mut host, &first, Some(1)).await?;
    for _ in 0..3 {
        let id = fresh_id();
        host.call(&id, "app::run", &args([])).await?;
        let mut next = case.ready_worker().await?;
        call_arrives(&mut next, &id).await?;
        next.exit(1).await?;
        died(&mut host, &id, Some(1)).await?;
    }
    Ok(())
}

async fn cancel_while_starting(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    host.cancel(&id).await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-051")?;
    // Whether the start goes on or is given up is its choice; the next call finds one worker, and the runtime takes
    // whatever it has started along when it ends.
    let next = fresh_id();
    host.call(&next, "app::run", &args([])).await?;
    let wire = case.wire().clone();
    let mut workers = Vec::new();
    let mut served = false;
    for _ in 0..2 {
        let wait = if served {
            Duration::from_millis(200)
        } else {
            wire.clock.answer()
        };
        let Some(mut worker) = case.board.worker_within(wait, &wire).await? else {
            break;
        };
        if worker.pipe.send(&frame::ready()).await.is_ok()
            && worker
                .pipe
                .frame("call")
                .await
                .is_ok_and(|call| call.body.ends_with(&[0xc0]))
        {
            worker
                .pipe
                .send(&frame::result(&next, &Value::None.dump()))
                .await?;
            served = true;
        }
        workers.push(worker);
    }
    host.outcome(&next)
        .await?
        .is("AGX-CALL-057", &Value::None)?;
    case.process.signal(Signal::TERM);
    for worker in &mut workers {
        // A worker that left while a frame is on its way would see half of it.
        let _ = worker.pipe.frame("shutdown").await;
        let _ = worker.exit(0).await;
        worker.pipe.end().await?;
    }
    ends(&mut case, "AGX-PIPE-044").await
}

async fn old_worker_forgotten(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    worker.exit(2).await?;
    died(&mut host, &id, Some(2)).await?;
    let next = fresh_id();
    host.call(&next, "app::run", &args([])).await?;
    let mut worker = case.ready_worker().await?;
    call_arrives(&mut worker, &next).await?;
    // The successor speaks of a call that was never its own.
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(1).dump()))
        .await?;
    case.alive(&mut host, &mut worker).await?;
    equal("AGX-CALL-023", "outcomes", &1, &host.outcomes_so_far(&id))?;
    host.call(&id, "app::run", &args([])).await?;
    died(&mut host, &id, Some(2)).await
}

async fn ends(case: &mut ScriptedCase, requirement: &'static str) -> Verdict {
    let wait = case.runtime.wire.clock.stop();
    match case.process.exited(wait).await {
        Some(_) => Ok(()),
        None => Err(Stop::Failure(crate::verdict::Failure {
            requirement: Some(requirement),
            expected: "the end of the runtime".to_owned(),
            observed: format!("it runs on after {wait:?}"),
        })),
    }
}

async fn stops(mut case: ScriptedCase, signal: Signal) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    case.process.signal(signal);
    let came = worker.pipe.frame("shutdown").await?;
    equal_bytes(
        "AGX-PIPE-042",
        "shutdown frame",
        &frame::shutdown(),
        &came.body,
    )?;
    worker.exit(0).await?;
    host.closed().await?;
    ends(&mut case, "AGX-PIPE-043").await
}

async fn sigterm(case: ScriptedCase) -> Verdict {
    stops(case, Signal::TERM).await
}

async fn sigint(case: ScriptedCase) -> Verdict {
    stops(case, Signal::INT).await
}

async fn idle(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    host.fence().await?;
    case.process.signal(Signal::TERM);
    host.closed().await?;
    ends(&mut case, "AGX-PIPE-043").await
}

async fn close_code(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    host.fence().await?;
    case.process.signal(Signal::TERM);
    let code = host.closed().await?;
    equal("AGX-CON-081", "close code", &Some(1012), &code)
}

async fn deaf_worker(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    case.process.signal(Signal::TERM);
    worker.pipe.frame("shutdown").await?;
    // It stays; 5 s later it gets SIGTERM, which it obeys.
    worker.pipe.end().await?;
    host.closed().await?;
    ends(&mut case, "AGX-PIPE-044").await
}
