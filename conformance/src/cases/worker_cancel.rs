//! Role worker: cancel.

use crate::case::cases;
use crate::context::{WorkerCase, fresh_id, offered};
use crate::messages::frame;
use crate::msgpack::{Msg, map};
use crate::outcome::exact_frame;
use crate::pickle::{Value, args, text};
use crate::verdict::Verdict;

cases! {
    Worker "worker/cancel/async", "a running async function: one Cancelled error at once, and the function is cancelled",
        ["AGX-WRK-040", "AGX-WRK-041", "AGX-WRK-043"], asynchronous;
    Worker "worker/cancel/sync", "a running sync function: one Cancelled error without waiting for it",
        ["AGX-WRK-040", "AGX-WRK-043"], sync;
    Worker "worker/cancel/sync-interrupted", "an exception is raised in the thread of a cancelled sync function",
        ["AGX-WRK-042"], sync_interrupted;
    Worker "worker/cancel/stubborn", "a function that swallows its cancellation sends no second frame",
        ["AGX-WRK-043", "AGX-WRK-040"], stubborn;
    Worker "worker/cancel/twice", "a second cancel of the same call is ignored",
        ["AGX-WRK-043", "AGX-WRK-044"], twice;
    Worker "worker/cancel/unknown", "a cancel for an id that does not run is ignored",
        ["AGX-WRK-044"], unknown;
    Worker "worker/cancel/finished", "a cancel for a call that has ended is ignored",
        ["AGX-WRK-044", "AGX-WRK-043"], finished;
    Worker "worker/cancel/malformed", "a cancel without a valid id is ignored",
        ["AGX-WRK-044"], malformed;
    Worker "worker/cancel/at-once", "a cancel right behind its call",
        ["AGX-WRK-040", "AGX-WRK-043"], at_once;
}

const LONG: Value = Value::Float(60.0);

async fn asynchronous(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let (id, key) = (fresh_id(), text(&fresh_id()));
    // The function counts on its way out: the witness that it was cancelled.
    worker
        .call(
            &id,
            "conformance::sleep_counted",
            &args([key.clone(), LONG]),
        )
        .await?;
    worker.until_counted(&key, 1).await?;
    worker.pipe.terminals("AGX-WRK-010", &id, 0)?;
    worker.pipe.send(&frame::cancel(&id)).await?;
    let terminal = worker.pipe.terminal(&id).await?;
    exact_frame(&terminal)?;
    terminal.outcome.cancelled("AGX-WRK-040")?;
    worker.until_counted(&key, 2).await?;
    worker.alive().await?;
    worker.pipe.terminals("AGX-WRK-043", &id, 1)
}

async fn sync(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    worker
        .call(&id, "conformance::block", &args([LONG]))
        .await?;
    worker.alive().await?;
    worker.pipe.terminals("AGX-WRK-010", &id, 0)?;
    worker.pipe.send(&frame::cancel(&id)).await?;
    worker.pipe.outcome(&id).await?.cancelled("AGX-WRK-040")?;
    worker.alive().await?;
    worker.pipe.terminals("AGX-WRK-043", &id, 1)
}

async fn sync_interrupted(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let (id, key) = (fresh_id(), text(&fresh_id()));
    // Does the worker have this function at all?
    let probe = fresh_id();
    worker
        .call(
            &probe,
            "conformance::block_counted",
            &args([key.clone(), Value::Int(0)]),
        )
        .await?;
    let outcome = offered("block_counted", worker.pipe.outcome(&probe).await?)?;
    outcome.is("AGX-WRK-014", &Value::Float(0.0))?;

    worker
        .call(
            &id,
            "conformance::block_counted",
            &args([key.clone(), LONG]),
        )
        .await?;
    // The probe has counted once.
    worker.until_counted(&key, 2).await?;
    worker.pipe.send(&frame::cancel(&id)).await?;
    worker.pipe.outcome(&id).await?.cancelled("AGX-WRK-040")?;
    let counted = worker.until_counted(&key, 3).await;
    counted.map_err(|stop| stop.breaks("AGX-WRK-042"))?;
    worker.alive().await?;
    worker.pipe.terminals("AGX-WRK-043", &id, 1)
}

async fn stubborn(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let probe = fresh_id();
    worker
        .call(&probe, "conformance::stubborn", &args([Value::Int(0)]))
        .await?;
    offered("stubborn", worker.pipe.outcome(&probe).await?)?.is("AGX-WRK-014", &text("slept"))?;

    let id = fresh_id();
    worker
        .call(&id, "conformance::stubborn", &args([LONG]))
        .await?;
    worker.alive().await?;
    worker.pipe.send(&frame::cancel(&id)).await?;
    worker.pipe.outcome(&id).await?.cancelled("AGX-WRK-040")?;
    // Its late value would have been sent before the answers to these.
    for _ in 0..3 {
        worker.value_of("echo_async", [Value::None]).await?;
        worker.alive().await?;
    }
    worker.pipe.terminals("AGX-WRK-043", &id, 1)
}

async fn twice(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    worker
        .call(&id, "conformance::sleep", &args([LONG]))
        .await?;
    for _ in 0..3 {
        worker.pipe.send(&frame::cancel(&id)).await?;
    }
    worker.pipe.outcome(&id).await?.cancelled("AGX-WRK-040")?;
    worker.alive().await?;
    worker.pipe.terminals("AGX-WRK-043", &id, 1)
}

async fn unknown(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    worker.alive().await?;
    let id = fresh_id();
    worker.pipe.send(&frame::cancel(&id)).await?;
    worker.alive().await?;
    worker.pipe.terminals("AGX-WRK-044", &id, 0)?;
    // A cancel closes no id: the call still runs.
    worker
        .call(&id, "conformance::echo", &args([Value::Int(4)]))
        .await?;
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-WRK-010", &Value::Int(4))
}

async fn finished(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    for target in ["conformance::echo", "conformance::echo_async"] {
        let id = fresh_id();
        worker.call(&id, target, &args([Value::Int(1)])).await?;
        worker
            .pipe
            .outcome(&id)
            .await?
            .is("AGX-WRK-010", &Value::Int(1))?;
        worker.pipe.send(&frame::cancel(&id)).await?;
        worker.alive().await?;
        worker.pipe.terminals("AGX-WRK-043", &id, 1)?;
    }
    Ok(())
}

async fn malformed(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let running = fresh_id();
    worker
        .call(&running, "conformance::sleep", &args([LONG]))
        .await?;
    for id in [
        None,
        Some(Msg::Nil),
        Some(Msg::Int(1)),
        Some(crate::msgpack::text("")),
    ] {
        worker.alive().await?;
        let mut entries = vec![(crate::msgpack::text("type"), crate::msgpack::text("cancel"))];
        entries.extend(id.map(|id| (crate::msgpack::text("call_id"), id)));
        worker.pipe.send(&Msg::Map(entries).bytes()).await?;
        worker.alive().await?;
        worker.pipe.terminals("AGX-WRK-044", &running, 0)?;
    }
    let extra = map([
        ("type", crate::msgpack::text("cancel")),
        ("call_id", crate::msgpack::text(&running)),
        ("reason", crate::msgpack::text("an unknown key")),
    ]);
    worker.pipe.send(&extra.bytes()).await?;
    worker
        .pipe
        .outcome(&running)
        .await?
        .cancelled("AGX-PIPE-013")
}

async fn at_once(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    for target in ["conformance::sleep", "conformance::block"] {
        let id = fresh_id();
        worker.call(&id, target, &args([LONG])).await?;
        worker.pipe.send(&frame::cancel(&id)).await?;
        worker.pipe.outcome(&id).await?.cancelled("AGX-WRK-040")?;
        worker.alive().await?;
        worker.pipe.terminals("AGX-WRK-043", &id, 1)?;
    }
    Ok(())
}
