//! Role worker: calls and their outcomes.

use crate::case::cases;
use crate::context::{WorkerCase, fresh_id};
use crate::outcome::exact_frame;
use crate::pickle::{Value, args};
use crate::verdict::Verdict;

cases! {
    Worker "worker/call/sync", "a sync function returns its value",
        ["AGX-WRK-014", "AGX-WRK-010", "AGX-PIPE-033"], sync;
}

async fn sync(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    worker
        .call(
            &id,
            "conformance::total",
            &args([Value::List(vec![Value::Int(1), Value::Int(2)])]),
        )
        .await?;
    let terminal = worker.pipe.terminal(&id).await?;
    exact_frame(&terminal)?;
    terminal.outcome.is("AGX-WRK-014", &Value::Int(3))?;
    worker.alive().await?;
    worker.pipe.terminals("AGX-WRK-010", &id, 1)
}
