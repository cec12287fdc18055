//! Role runtime, the suite playing its worker: how many outcomes are held.

use crate::case::cases;
use crate::context::{ScriptedCase, fresh_id};
use crate::messages::frame;
use crate::pickle::{Value, args};
use crate::verdict::{Verdict, equal};

cases! {
    Scripted "runtime/hold/count", "4,096 outcomes are held; past that the oldest go first, each a ResultUnavailable later",
        ["AGX-CALL-060", "AGX-CALL-061", "AGX-CALL-062", "AGX-CALL-063", "AGX-CALL-013"], count;
}

const HELD: usize = 4_096;
const EXTRA: usize = 4;

async fn count(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, first) = case.running().await?;
    let mut ids = vec![first];
    ids.extend((1..HELD + EXTRA).map(|_| fresh_id()));
    for id in &ids[1..] {
        host.call(id, "app::run", &args([])).await?;
    }
    for id in &ids[1..] {
        crate::context::call_arrives(&mut worker, id).await?;
    }
    for (number, id) in ids.iter().enumerate() {
        worker
            .pipe
            .send(&frame::result(id, &Value::Int(number as i64).dump()))
            .await?;
    }
    for (number, id) in ids.iter().enumerate() {
        host.outcome(id)
            .await?
            .is("AGX-CALL-020", &Value::Int(number as i64))?;
    }
    // All at once, so that no outcome of a probe comes between.
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    host.resume(&all).await?;
    for (number, id) in ids.iter().enumerate() {
        let terminal = host.next_outcome().await?;
        equal(
            "AGX-RPC-052",
            "call_id of the next answer",
            id,
            &terminal.call_id,
        )?;
        if number < EXTRA {
            terminal
                .outcome
                .plain_error_of("AGX-CALL-062", "ResultUnavailable")?;
        } else {
            terminal
                .outcome
                .is("AGX-CALL-060", &Value::Int(number as i64))?;
        }
    }
    // An evicted id stays closed.
    host.call(&ids[0], "app::run", &args([])).await?;
    host.outcome(&ids[0])
        .await?
        .plain_error_of("AGX-CALL-063", "ResultUnavailable")?;
    // What is acked makes room: the next outcome evicts nothing.
    host.ack(&ids[EXTRA]).await?;
    let id = case.call(&mut host, &mut worker).await?;
    worker
        .pipe
        .send(&frame::result(&id, &Value::None.dump()))
        .await?;
    host.outcome(&id).await?.is("AGX-CALL-020", &Value::None)?;
    host.resume(&[&ids[EXTRA + 1]]).await?;
    host.outcome(&ids[EXTRA + 1])
        .await?
        .is("AGX-CALL-060", &Value::Int(EXTRA as i64 + 1))
}
