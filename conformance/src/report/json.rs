//! One JSON object a line: `start`, one `case` each, `summary`.

use serde_json::{Value, json};

use crate::runner::{Record, Run, Status};
use crate::testee::Testee;

pub(crate) fn start(testees: &[Testee], cases: usize) -> Value {
    let names: Vec<_> = testees.iter().map(|testee| testee.name.as_str()).collect();
    json!({
        "kind": "start",
        "suite": env!("CARGO_PKG_VERSION"),
        "protocol": agentix_protocol::names::PROTOCOL_VERSION,
        "testees": names,
        "cases": cases,
    })
}

pub(crate) fn case(record: &Record) -> Value {
    let mut line = json!({
        "kind": "case",
        "testee": record.testee,
        "case": record.case.id,
        "title": record.case.title,
        "requirements": record.case.requirements,
        "ms": record.elapsed.as_millis() as u64,
    });
    match &record.status {
        Status::Passed => line["status"] = json!("passed"),
        Status::NotRun { reason, required } => {
            line["status"] = json!("not_run");
            line["reason"] = json!(reason);
            line["required"] = json!(required);
        }
        Status::Fault(reason) => {
            line["status"] = json!("fault");
            line["reason"] = json!(reason);
        }
        Status::Failed {
            requirement,
            expected,
            observed,
        }
        | Status::Advised {
            requirement,
            expected,
            observed,
        } => {
            let failed = matches!(record.status, Status::Failed { .. });
            line["status"] = json!(if failed { "failed" } else { "advised" });
            line["requirement"] = json!(requirement);
            line["expected"] = json!(expected);
            line["observed"] = json!(observed);
            line["repeat"] = json!(record.repeat);
        }
    }
    line
}

pub(crate) fn summary(run: &Run) -> Value {
    let testees = run.tallies().into_iter().map(|(name, tally)| {
        json!({
            "testee": name,
            "passed": tally.passed,
            "failed": tally.failed,
            "advised": tally.advised,
            "not_run": tally.not_run,
            "ms": tally.elapsed.as_millis() as u64,
        })
    });
    let testees: Vec<_> = testees.collect();
    let unstartable = run.unstartable.iter();
    let unstartable: Vec<_> = unstartable
        .map(|(testee, reason)| json!({ "testee": testee, "reason": reason }))
        .collect();
    json!({
        "kind": "summary",
        "testees": testees,
        "unstartable": unstartable,
        "exit_status": run.exit_status(),
    })
}
