//! Role runtime: the death of its worker, seen by hosts.

use crate::case::cases;
use crate::context::{RuntimeCase, fresh_id, fresh_key};
use crate::messages;
use crate::outcome::{Outcome, exact_payload};
use crate::pickle::{Value, args};
use crate::verdict::{Verdict, check, equal, fail};

cases! {
    Runtime "runtime/death/exit", "a function that ends the worker: WorkerDied with its exit status, and a new worker",
        ["AGX-CALL-070", "AGX-CALL-071", "AGX-PIPE-041", "AGX-RPC-040"], exit;
    Runtime "runtime/death/signal", "a worker killed by signal 9: WorkerDied with -9",
        ["AGX-CALL-071", "AGX-CALL-070", "AGX-PIPE-041"], signal;
    Runtime "runtime/death/all-calls", "every running call ends with WorkerDied, each at its owner",
        ["AGX-CALL-070", "AGX-CALL-020", "AGX-CALL-031"], all_calls;
    Runtime "runtime/death/http", "a waiting POST is 200 with WorkerDied",
        ["AGX-CALL-070", "AGX-HTTP-021"], http;
    Runtime "runtime/death/held", "outcomes outlive the worker that made them, and ids stay closed",
        ["AGX-CALL-012", "AGX-CALL-003"], held;
}

async fn dies(case: &RuntimeCase, function: &str, argument: i64, returncode: i64) -> Verdict {
    let mut host = case.host().await?;
    let pid = case.value_of(&mut host, "pid", []).await?;
    let id = fresh_id();
    host.call(
        &id,
        &format!("conformance::{function}"),
        &args([Value::Int(argument)]),
    )
    .await?;
    let (_, terminal) = host.terminal(&id).await?;
    exact_payload(&terminal)?;
    let error = terminal
        .outcome
        .plain_error_of("AGX-CALL-070", "WorkerDied")?;
    equal(
        "AGX-CALL-071",
        "returncode",
        &Some(returncode),
        &error.returncode,
    )?;
    let new = case.value_of(&mut host, "pid", []).await?;
    check(
        new != pid,
        "AGX-PIPE-041",
        "another process",
        format_args!("{new:?}"),
    )?;
    case.alive(&mut host).await?;
    equal("AGX-CALL-020", "outcomes", &1, &host.outcomes_so_far(&id))
}

async fn exit(case: RuntimeCase) -> Verdict {
    for status in [3, 0, 255] {
        dies(&case, "exit", status, status).await?;
    }
    Ok(())
}

async fn signal(case: RuntimeCase) -> Verdict {
    dies(&case, "signal", 9, -9).await
}

async fn all_calls(case: RuntimeCase) -> Verdict {
    let (mut first, mut second) = (case.host().await?, case.host().await?);
    let (one, two, key) = (fresh_id(), fresh_id(), fresh_key());
    let arguments = args([key.clone(), Value::Float(60.0)]);
    first
        .call(&one, "conformance::count_slow", &arguments)
        .await?;
    second
        .call(&two, "conformance::count_slow", &arguments)
        .await?;
    case.until_counted(&mut first, &key, 2).await?;
    let killer = fresh_id();
    first
        .call(&killer, "conformance::exit", &args([Value::Int(7)]))
        .await?;
    for id in [&one, &killer] {
        let error = first
            .outcome(id)
            .await?
            .plain_error_of("AGX-CALL-070", "WorkerDied")?;
        equal("AGX-CALL-071", "returncode", &Some(7), &error.returncode)?;
    }
    let error = second
        .outcome(&two)
        .await?
        .plain_error_of("AGX-CALL-070", "WorkerDied")?;
    equal("AGX-CALL-071", "returncode", &Some(7), &error.returncode)?;
    case.alive(&mut first).await?;
    case.alive(&mut second).await?;
    first.no_outcome("AGX-CALL-031", &two)?;
    second.no_outcome("AGX-CALL-031", &one)?;
    // Counters begin anew: it is another process.
    case.counted("AGX-PIPE-041", &mut first, &key, 0).await
}

async fn http(case: RuntimeCase) -> Verdict {
    let body = messages::call(&fresh_id(), "conformance::exit", &args([Value::Int(4)]));
    let response = case.http().call(&[("prefer", "wait=8")], body).await?;
    equal("AGX-HTTP-021", "status", &200, &response.status)?;
    let error = Outcome::read_http(&response.body)?.plain_error_of("AGX-CALL-070", "WorkerDied")?;
    equal("AGX-CALL-071", "returncode", &Some(4), &error.returncode)?;
    case.alive(&mut case.host().await?).await
}

async fn held(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, dead, key) = (fresh_id(), fresh_id(), fresh_key());
    host.call(&id, "conformance::count", &args([key.clone()]))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    host.call(&dead, "conformance::exit", &args([Value::Int(5)]))
        .await?;
    host.outcome(&dead)
        .await?
        .plain_error_of("AGX-CALL-070", "WorkerDied")?;
    host.call(&id, "conformance::count", &args([key.clone()]))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-012", &Value::Int(1))?;
    host.call(&dead, "conformance::exit", &args([Value::Int(5)]))
        .await?;
    match host.outcome(&dead).await? {
        Outcome::Error(error) if error.kind == "WorkerDied" => {}
        other => {
            return fail(
                "AGX-CALL-012",
                "the held WorkerDied",
                format_args!("{other:?}"),
            );
        }
    }
    case.counted("AGX-CALL-003", &mut host, &key, 0).await
}
