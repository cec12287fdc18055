//! Role runtime: cancel on `/rpc`.

use crate::case::cases;
use crate::context::{RuntimeCase, fresh_id, fresh_key};
use crate::messages;
use crate::outcome::exact_payload;
use crate::pickle::{Value, args};
use crate::verdict::{Verdict, equal};

cases! {
    Runtime "runtime/cancel/async", "a running async function: one Cancelled error, and the function is cancelled",
        ["AGX-CALL-051", "AGX-CALL-050", "AGX-CALL-022", "AGX-RPC-040"], asynchronous;
    Runtime "runtime/cancel/sync", "a running sync function: one Cancelled error, without waiting for it",
        ["AGX-CALL-051", "AGX-CALL-022"], sync;
    Runtime "runtime/cancel/held", "the Cancelled outcome is held and sent again like any other",
        ["AGX-CALL-052", "AGX-CALL-042"], held;
    Runtime "runtime/cancel/closes-no-door", "a cancelled id stays closed",
        ["AGX-CALL-003", "AGX-CALL-010", "AGX-CALL-012"], stays_closed;
    Runtime "runtime/cancel/by-another", "a cancel by another connection: owner and canceller hear of it, nobody else",
        ["AGX-CALL-053", "AGX-CALL-036", "AGX-CALL-031"], by_another;
    Runtime "runtime/cancel/finished", "a cancel of a call that has ended changes nothing",
        ["AGX-CALL-055"], finished;
    Runtime "runtime/cancel/unknown", "a cancel of an unknown id is silent and closes nothing",
        ["AGX-RPC-050", "AGX-CALL-004"], unknown;
    Runtime "runtime/cancel/twice", "a second cancel changes nothing",
        ["AGX-CALL-055", "AGX-CALL-020"], twice;
    Runtime "runtime/cancel/at-once", "a cancel right behind its call",
        ["AGX-CALL-051", "AGX-CALL-020"], at_once;
    Runtime "runtime/cancel/not-by-leaving", "a lost connection cancels nothing",
        ["AGX-CON-082", "AGX-CALL-032"], not_by_leaving;
}

const LONG: Value = Value::Float(60.0);

async fn asynchronous(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    host.call(
        &id,
        "conformance::sleep_counted",
        &args([key.clone(), LONG]),
    )
    .await?;
    case.until_counted(&mut host, &key, 1).await?;
    host.no_outcome("AGX-CALL-020", &id)?;
    host.cancel(&id).await?;
    let (_, terminal) = host.terminal(&id).await?;
    exact_payload(&terminal)?;
    terminal.outcome.cancelled("AGX-CALL-051")?;
    // It counts once more on its way out: the witness that the worker cancelled it.
    case.until_counted(&mut host, &key, 2).await?;
    case.alive(&mut host).await?;
    equal("AGX-CALL-022", "outcomes", &1, &host.outcomes_so_far(&id))
}

async fn sync(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.call(&id, "conformance::block", &args([LONG])).await?;
    case.alive(&mut host).await?;
    host.no_outcome("AGX-CALL-020", &id)?;
    host.cancel(&id).await?;
    let (_, terminal) = host.terminal(&id).await?;
    exact_payload(&terminal)?;
    terminal.outcome.cancelled("AGX-CALL-051")?;
    case.alive(&mut host).await?;
    equal("AGX-CALL-022", "outcomes", &1, &host.outcomes_so_far(&id))
}

async fn held(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.call(&id, "conformance::sleep", &args([LONG])).await?;
    host.cancel(&id).await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-051")?;
    for _ in 0..2 {
        host.resume(&[&id]).await?;
        host.outcome(&id).await?.cancelled("AGX-CALL-052")?;
    }
    host.ack(&id).await?;
    host.resume(&[&id]).await?;
    host.outcome(&id)
        .await?
        .error_of("AGX-CALL-042", "ResultUnavailable")?;
    case.alive(&mut host).await
}

async fn stays_closed(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    let arguments = args([key.clone(), LONG]);
    host.call(&id, "conformance::count_slow", &arguments)
        .await?;
    case.until_counted(&mut host, &key, 1).await?;
    host.cancel(&id).await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-051")?;
    host.call(&id, "conformance::count_slow", &arguments)
        .await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-012")?;
    host.ack(&id).await?;
    host.call(&id, "conformance::count_slow", &arguments)
        .await?;
    host.outcome(&id)
        .await?
        .error_of("AGX-CALL-013", "ResultUnavailable")?;
    case.counted("AGX-CALL-003", &mut host, &key, 1).await
}

async fn by_another(case: RuntimeCase) -> Verdict {
    let (mut owner, mut other, mut third) =
        (case.host().await?, case.host().await?, case.host().await?);
    let id = fresh_id();
    owner.call(&id, "conformance::sleep", &args([LONG])).await?;
    case.alive(&mut owner).await?;
    other.cancel(&id).await?;
    other.outcome(&id).await?.cancelled("AGX-CALL-053")?;
    owner.outcome(&id).await?.cancelled("AGX-CALL-053")?;
    for host in [&mut owner, &mut other, &mut third] {
        case.alive(host).await?;
    }
    equal(
        "AGX-CALL-053",
        "outcomes at the owner",
        &1,
        &owner.outcomes_so_far(&id),
    )?;
    equal(
        "AGX-CALL-053",
        "outcomes at the canceller",
        &1,
        &other.outcomes_so_far(&id),
    )?;
    third.no_outcome("AGX-CALL-031", &id)
}

async fn finished(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    host.cancel(&id).await?;
    case.alive(&mut host).await?;
    equal("AGX-CALL-055", "outcomes", &1, &host.outcomes_so_far(&id))?;
    host.resume(&[&id]).await?;
    host.outcome(&id).await?.is("AGX-CALL-055", &Value::Int(1))
}

async fn unknown(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.cancel(&id).await?;
    case.alive(&mut host).await?;
    host.no_outcome("AGX-RPC-050", &id)?;
    host.call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&id).await?.is("AGX-CALL-004", &Value::Int(1))
}

async fn twice(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.call(&id, "conformance::sleep", &args([LONG])).await?;
    for _ in 0..3 {
        host.cancel(&id).await?;
    }
    host.outcome(&id).await?.cancelled("AGX-CALL-051")?;
    case.alive(&mut host).await?;
    equal("AGX-CALL-055", "outcomes", &1, &host.outcomes_so_far(&id))
}

async fn at_once(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    for target in ["conformance::sleep", "conformance::block"] {
        for _ in 0..5 {
            let id = fresh_id();
            let call = messages::call(&id, target, &args([LONG]));
            host.emit("/rpc", "call", &call).await?;
            host.cancel(&id).await?;
            host.outcome(&id).await?.cancelled("AGX-CALL-051")?;
            case.alive(&mut host).await?;
            equal("AGX-CALL-020", "outcomes", &1, &host.outcomes_so_far(&id))?;
        }
    }
    Ok(())
}

async fn not_by_leaving(case: RuntimeCase) -> Verdict {
    let mut gone = case.host().await?;
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    gone.call(
        &id,
        "conformance::count_slow",
        &args([key.clone(), Value::Float(0.3)]),
    )
    .await?;
    case.until_counted(&mut gone, &key, 1).await?;
    gone.leave().await?;
    host.resume(&[&id]).await?;
    host.outcome(&id).await?.is("AGX-CON-082", &Value::Int(1))
}
