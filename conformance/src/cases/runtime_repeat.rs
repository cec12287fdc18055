//! Role runtime: repeated ids, `resume`, `ack`, owners.

use crate::case::cases;
use crate::context::{RuntimeCase, fresh_id, fresh_key};
use crate::outcome::Outcome;
use crate::pickle::{Value, args, text};
use crate::verdict::{Verdict, equal, fail};

cases! {
    Runtime "runtime/repeat/running", "a repeat of a running call: no event, no second execution",
        ["AGX-CALL-011", "AGX-CALL-003", "AGX-CALL-010"], running;
    Runtime "runtime/repeat/held", "a repeat of an ended call is answered with its outcome",
        ["AGX-CALL-012", "AGX-CALL-003", "AGX-CALL-010"], held;
    Runtime "runtime/repeat/gone", "a repeat after the ack is ResultUnavailable, and runs nothing",
        ["AGX-CALL-013", "AGX-CALL-003", "AGX-CALL-010"], gone;
    Runtime "runtime/repeat/other-fields", "another function under a closed id runs nothing",
        ["AGX-CALL-010", "AGX-CALL-012"], other_fields;
    Runtime "runtime/repeat/makes-owner", "a repeat makes its sender the owner of a running call",
        ["AGX-CALL-014", "AGX-CALL-030", "AGX-CALL-031"], makes_owner;
    Runtime "runtime/repeat/to-sender", "the answer to a repeat goes to its sender alone",
        ["AGX-CALL-012", "AGX-CALL-031"], to_sender;
    Runtime "runtime/repeat/error", "an error is held and sent again like a value",
        ["AGX-CALL-012", "AGX-CALL-040"], error;
    Runtime "runtime/id/not-closed", "cancel, ack and resume of an unknown id do not close it",
        ["AGX-CALL-004"], not_closed;
    Runtime "runtime/resume/running", "a call resumed while it runs is delivered to the new connection",
        ["AGX-CALL-041", "AGX-CALL-040", "AGX-CALL-030", "AGX-CON-082"], resume_running;
    Runtime "runtime/resume/finished", "an outcome that came while nobody was there is held",
        ["AGX-CALL-032", "AGX-CALL-040", "AGX-CON-082"], resume_finished;
    Runtime "runtime/resume/owner-left", "an outcome that was delivered and not acked outlives its owner's connection",
        ["AGX-CALL-032", "AGX-CON-082", "AGX-CALL-042"], resume_owner_left;
    Runtime "runtime/resume/unknown", "an unknown id is ResultUnavailable",
        ["AGX-CALL-040", "AGX-RPC-043"], resume_unknown;
    Runtime "runtime/resume/mixed", "held, running and unknown ids in one list, answered in its order",
        ["AGX-RPC-052", "AGX-CALL-040"], resume_mixed;
    Runtime "runtime/resume/again", "a held outcome is sent each time it is asked for",
        ["AGX-CALL-040", "AGX-RPC-052"], resume_again;
    Runtime "runtime/resume/takes-over", "the last one to resume is the owner, the former gets nothing",
        ["AGX-CALL-030", "AGX-CALL-041", "AGX-CALL-031"], takes_over;
    Runtime "runtime/ack/frees", "an ack frees the outcome, the id stays closed",
        ["AGX-CALL-042", "AGX-CALL-013"], ack_frees;
    Runtime "runtime/ack/by-another", "an ack is taken from any connection",
        ["AGX-CALL-036", "AGX-CALL-042"], ack_by_another;
    Runtime "runtime/ack/while-running", "an ack of a running call changes nothing",
        ["AGX-CALL-043"], ack_while_running;
}

const LONG: Value = Value::Float(60.0);

async fn running(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    let arguments = args([key.clone(), Value::Float(0.4)]);
    host.call(&id, "conformance::count_slow", &arguments)
        .await?;
    case.until_counted(&mut host, &key, 1).await?;
    for _ in 0..3 {
        host.call(&id, "conformance::count_slow", &arguments)
            .await?;
    }
    case.alive(&mut host).await?;
    host.no_outcome("AGX-CALL-011", &id)?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-003", &Value::Int(1))?;
    case.counted("AGX-CALL-003", &mut host, &key, 1).await?;
    equal("AGX-CALL-011", "outcomes", &1, &host.outcomes_so_far(&id))
}

async fn held(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    for _ in 0..3 {
        host.call(&id, "conformance::count", &args([key.clone()]))
            .await?;
        host.outcome(&id)
            .await?
            .is("AGX-CALL-012", &Value::Int(1))?;
    }
    case.counted("AGX-CALL-003", &mut host, &key, 1).await?;
    equal("AGX-CALL-012", "outcomes", &3, &host.outcomes_so_far(&id))
}

async fn gone(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    host.call(&id, "conformance::count", &args([key.clone()]))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    host.ack(&id).await?;
    for _ in 0..2 {
        host.call(&id, "conformance::count", &args([key.clone()]))
            .await?;
        let error = host.outcome(&id).await?;
        error.plain_error_of("AGX-CALL-013", "ResultUnavailable")?;
    }
    case.counted("AGX-CALL-003", &mut host, &key, 1).await
}

async fn other_fields(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    host.call(&id, "conformance::echo", &args([text("first")]))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &text("first"))?;
    host.call(&id, "conformance::count", &args([key.clone()]))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-012", &text("first"))?;
    case.counted("AGX-CALL-010", &mut host, &key, 0).await
}

async fn makes_owner(case: RuntimeCase) -> Verdict {
    let (mut first, mut second) = (case.host().await?, case.host().await?);
    let (id, key) = (fresh_id(), fresh_key());
    let arguments = args([key.clone(), Value::Float(0.4)]);
    first
        .call(&id, "conformance::count_slow", &arguments)
        .await?;
    case.until_counted(&mut first, &key, 1).await?;
    second
        .call(&id, "conformance::count_slow", &arguments)
        .await?;
    second
        .outcome(&id)
        .await?
        .is("AGX-CALL-014", &Value::Int(1))?;
    case.alive(&mut first).await?;
    first.no_outcome("AGX-CALL-031", &id)?;
    case.counted("AGX-CALL-003", &mut first, &key, 1).await
}

async fn to_sender(case: RuntimeCase) -> Verdict {
    let (mut first, mut second) = (case.host().await?, case.host().await?);
    let id = fresh_id();
    first
        .call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    first
        .outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    second
        .call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    second
        .outcome(&id)
        .await?
        .is("AGX-CALL-012", &Value::Int(1))?;
    case.alive(&mut first).await?;
    equal(
        "AGX-CALL-031",
        "outcomes at the first",
        &1,
        &first.outcomes_so_far(&id),
    )
}

async fn error(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.call(&id, "conformance::fail", &args([text("x")]))
        .await?;
    let first = host.terminal(&id).await?.1;
    host.call(&id, "conformance::fail", &args([text("x")]))
        .await?;
    let second = host.terminal(&id).await?.1;
    host.resume(&[&id]).await?;
    let third = host.terminal(&id).await?.1;
    equal(
        "AGX-CALL-012",
        "bytes of the repeated outcome",
        &first.bytes,
        &second.bytes,
    )?;
    equal(
        "AGX-CALL-040",
        "bytes of the resumed outcome",
        &first.bytes,
        &third.bytes,
    )?;
    first
        .outcome
        .plain_error_of("AGX-CALL-012", "ValueError")
        .map(|_| ())
}

async fn not_closed(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.cancel(&id).await?;
    host.ack(&id).await?;
    host.resume(&[&id]).await?;
    host.outcome(&id)
        .await?
        .error_of("AGX-CALL-040", "ResultUnavailable")?;
    host.call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&id).await?.is("AGX-CALL-004", &Value::Int(1))
}

async fn resume_running(case: RuntimeCase) -> Verdict {
    let mut first = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    first
        .call(
            &id,
            "conformance::count_slow",
            &args([key.clone(), Value::Float(0.4)]),
        )
        .await?;
    case.until_counted(&mut first, &key, 1).await?;
    first.leave().await?;
    let mut second = case.host().await?;
    second.resume(&[&id]).await?;
    second.fence().await?;
    second.no_outcome("AGX-CALL-040", &id)?;
    second
        .outcome(&id)
        .await?
        .is("AGX-CALL-041", &Value::Int(1))?;
    case.counted("AGX-CALL-003", &mut second, &key, 1).await?;
    equal("AGX-CALL-041", "outcomes", &1, &second.outcomes_so_far(&id))
}

async fn resume_finished(case: RuntimeCase) -> Verdict {
    let (mut first, mut second) = (case.host().await?, case.host().await?);
    let (id, key) = (fresh_id(), fresh_key());
    first
        .call(
            &id,
            "conformance::sleep_counted",
            &args([key.clone(), Value::Float(0.2)]),
        )
        .await?;
    case.until_counted(&mut first, &key, 1).await?;
    first.leave().await?;
    // It ends meanwhile: a sleep of the same length that began later has ended.
    case.value_of(&mut second, "sleep", [Value::Float(0.25)])
        .await?;
    second.no_outcome("AGX-CALL-032", &id)?;
    second.resume(&[&id]).await?;
    second
        .outcome(&id)
        .await?
        .is("AGX-CALL-032", &Value::Float(0.2))
}

async fn resume_owner_left(case: RuntimeCase) -> Verdict {
    let (mut first, mut second) = (case.host().await?, case.host().await?);
    let id = fresh_id();
    first
        .call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    first
        .outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    // The reply to the second CONNECT shows that the leaving before it was handled.
    first.send_text("41/rpc,").await?;
    first.join("/rpc").await?;
    second.resume(&[&id]).await?;
    second
        .outcome(&id)
        .await?
        .is("AGX-CALL-032", &Value::Int(1))?;
    first.leave().await?;
    case.alive(&mut second).await?;
    second.resume(&[&id]).await?;
    second
        .outcome(&id)
        .await?
        .is("AGX-CALL-032", &Value::Int(1))
}

async fn resume_unknown(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.resume(&[&id]).await?;
    let (_, terminal) = host.terminal(&id).await?;
    crate::outcome::exact_payload(&terminal)?;
    terminal
        .outcome
        .plain_error_of("AGX-CALL-040", "ResultUnavailable")?;
    case.alive(&mut host).await
}

async fn resume_mixed(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (held, unknown, running, failed) = (fresh_id(), fresh_id(), fresh_id(), fresh_id());
    host.call(&running, "conformance::sleep", &args([LONG]))
        .await?;
    host.call(&held, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&held)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    host.call(&failed, "conformance::fail", &args([text("x")]))
        .await?;
    host.outcome(&failed)
        .await?
        .plain_error_of("AGX-CALL-020", "ValueError")?;
    host.resume(&[&unknown, &running, &held, &failed, &held])
        .await?;
    for (id, kind) in [
        (&unknown, Some("ResultUnavailable")),
        (&held, None),
        (&failed, Some("ValueError")),
        (&held, None),
    ] {
        let terminal = host.next_outcome().await?;
        equal(
            "AGX-RPC-052",
            "call_id of the next answer",
            id,
            &terminal.call_id,
        )?;
        match (kind, &terminal.outcome) {
            (None, Outcome::Value(_)) => {}
            (Some(kind), Outcome::Error(error)) if error.kind == kind => {}
            (_, other) => {
                return fail(
                    "AGX-CALL-040",
                    format_args!("{kind:?}"),
                    format_args!("{other:?}"),
                );
            }
        }
    }
    host.fence().await?;
    host.no_outcome("AGX-CALL-040", &running)?;
    host.cancel(&running).await?;
    host.outcome(&running).await?.cancelled("AGX-CALL-051")
}

async fn resume_again(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    host.resume(&[&id, &id]).await?;
    host.resume(&[&id]).await?;
    for _ in 0..3 {
        host.outcome(&id)
            .await?
            .is("AGX-CALL-040", &Value::Int(1))?;
    }
    case.alive(&mut host).await?;
    equal("AGX-CALL-040", "outcomes", &4, &host.outcomes_so_far(&id))
}

async fn takes_over(case: RuntimeCase) -> Verdict {
    let (mut first, mut second) = (case.host().await?, case.host().await?);
    let (id, key) = (fresh_id(), fresh_key());
    first
        .call(
            &id,
            "conformance::count_slow",
            &args([key.clone(), Value::Float(0.4)]),
        )
        .await?;
    case.until_counted(&mut first, &key, 1).await?;
    second.resume(&[&id]).await?;
    second
        .outcome(&id)
        .await?
        .is("AGX-CALL-041", &Value::Int(1))?;
    case.alive(&mut first).await?;
    first.no_outcome("AGX-CALL-031", &id)
}

async fn ack_frees(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, other) = (fresh_id(), fresh_id());
    for id in [&id, &other] {
        host.call(id, "conformance::echo", &args([Value::Int(1)]))
            .await?;
        host.outcome(id).await?.is("AGX-CALL-020", &Value::Int(1))?;
    }
    host.ack(&id).await?;
    host.ack(&id).await?;
    host.resume(&[&id, &other]).await?;
    host.outcome(&id)
        .await?
        .plain_error_of("AGX-CALL-042", "ResultUnavailable")?;
    host.outcome(&other)
        .await?
        .is("AGX-CALL-042", &Value::Int(1))?;
    host.call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&id)
        .await?
        .plain_error_of("AGX-CALL-013", "ResultUnavailable")
        .map(|_| ())
}

async fn ack_by_another(case: RuntimeCase) -> Verdict {
    let (mut owner, mut other) = (case.host().await?, case.host().await?);
    let id = fresh_id();
    owner
        .call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    owner
        .outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    other.ack(&id).await?;
    other.fence().await?;
    owner.resume(&[&id]).await?;
    owner
        .outcome(&id)
        .await?
        .plain_error_of("AGX-CALL-036", "ResultUnavailable")
        .map(|_| ())
}

async fn ack_while_running(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    host.call(
        &id,
        "conformance::count_slow",
        &args([key.clone(), Value::Float(0.3)]),
    )
    .await?;
    case.until_counted(&mut host, &key, 1).await?;
    host.ack(&id).await?;
    host.fence().await?;
    host.no_outcome("AGX-CALL-043", &id)?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-043", &Value::Int(1))?;
    host.resume(&[&id]).await?;
    host.outcome(&id).await?.is("AGX-CALL-043", &Value::Int(1))
}
