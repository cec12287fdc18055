//! Role runtime: `POST /call` and its answers.

use crate::case::cases;
use crate::context::{RuntimeCase, fresh_id, fresh_key};
use crate::messages;
use crate::outcome::{Outcome, exact_body};
use crate::peer::http::Response;
use crate::pickle::{Value, args, text};
use crate::verdict::{Verdict, check, equal, equal_bytes};

cases! {
    Runtime "runtime/http/value", "200 with a value, in exact bytes, and nothing on `/rpc`",
        ["AGX-HTTP-020", "AGX-HTTP-017", "AGX-CALL-065", "AGX-COD-001"], value;
    Runtime "runtime/http/error", "an error of the call is a 200 too",
        ["AGX-HTTP-021", "AGX-RPC-040", "AGX-CALL-065"], error;
    Runtime "runtime/http/large", "a result of 1 MiB and arguments of 1 MiB",
        ["AGX-HTTP-020"], large;
    Runtime "runtime/http/accepted", "202 past the wait, then the outcome on the connection named by `agentix-sid` alone",
        ["AGX-CALL-033", "AGX-HTTP-020", "AGX-HTTP-025", "AGX-CALL-031", "AGX-CALL-066"], accepted;
    Runtime "runtime/http/accepted-no-sid", "202 without a usable sid: the outcome goes to every connection on `/rpc`",
        ["AGX-CALL-034"], accepted_no_sid;
    Isolated "runtime/http/freed-by-all", "an outcome sent to every connection is freed when each has acked or left",
        ["AGX-CALL-035"], freed_by_all;
    Runtime "runtime/http/wait", "the wait of the `prefer` header, as it is applied",
        ["AGX-HTTP-013", "AGX-HTTP-014", "AGX-HTTP-017", "AGX-HTTP-015"], wait;
    Runtime "runtime/http/wait-zero", "a wait of 0 is 202 at once",
        ["AGX-HTTP-015", "AGX-HTTP-014"], wait_zero;
    Runtime "runtime/http/repeat-running", "a repeat of a running call is 202 at once, and runs nothing",
        ["AGX-HTTP-040", "AGX-CALL-003"], repeat_running;
    Runtime "runtime/http/repeat-held", "a repeat of an ended call is 200 with its outcome, and runs nothing",
        ["AGX-HTTP-041", "AGX-CALL-003", "AGX-CALL-064"], repeat_held;
    Runtime "runtime/http/repeat-gone", "a repeat after the ack is 200 with ResultUnavailable",
        ["AGX-HTTP-042", "AGX-CALL-003"], repeat_gone;
    Runtime "runtime/http/repeat-of-rpc", "a call of `/rpc` repeated over HTTP, with its sid: that connection is the owner",
        ["AGX-HTTP-043", "AGX-HTTP-040", "AGX-CALL-003"], repeat_of_rpc;
    Runtime "runtime/http/resume-after-200", "an outcome of a 200 is still resumed on `/rpc`, until it is acked",
        ["AGX-CALL-064", "AGX-CALL-042"], resume_after_200;
    Runtime "runtime/http/call-after-200", "a lost 200 asked for again as `call` on `/rpc` does not run twice",
        ["AGX-CALL-012", "AGX-CALL-003", "AGX-CALL-064"], call_after_200;
    Runtime "runtime/http/caller-gone", "a caller that hangs up: the call runs on, its outcome is held",
        ["AGX-HTTP-031"], caller_gone;
    Runtime "runtime/http/cancelled", "a waiting POST whose call is cancelled is 200 with Cancelled, the canceller hears it",
        ["AGX-CALL-054"], cancelled;
    Runtime "runtime/http/resumed-while-waiting", "a resume while a POST waits: the sender and the POST both get the outcome",
        ["AGX-CALL-067", "AGX-CALL-065"], resumed_while_waiting;
    Runtime "runtime/http/repeated-while-waiting", "a repeat over HTTP while a POST waits: 202, and the outcome on `/rpc` too",
        ["AGX-HTTP-044", "AGX-HTTP-040", "AGX-HTTP-043"], repeated_while_waiting;
    Runtime "runtime/http/concurrent", "calls over HTTP run at a time",
        ["AGX-HTTP-020"], concurrent;
}

const LONG: Value = Value::Float(60.0);

pub(super) fn status(requirement: &'static str, expected: u16, response: &Response) -> Verdict {
    check(
        response.status == expected,
        requirement,
        format_args!("status {expected}"),
        format_args!(
            "{} {}",
            response.status,
            crate::verdict::shorten(&response.body)
        ),
    )
}

/// Ends the case unless the response is a 200; gives the outcome in it, whose bytes are judged.
pub(super) fn done(requirement: &'static str, response: &Response) -> Verdict<Outcome> {
    status(requirement, 200, response)?;
    let kind = response.header("content-type");
    equal(
        "AGX-HTTP-020",
        "content type",
        &"application/msgpack",
        &kind,
    )?;
    let outcome = Outcome::read_http(&response.body)?;
    exact_body(&outcome, &response.body)?;
    Ok(outcome)
}

pub(super) fn waiting(requirement: &'static str, response: &Response, id: &str) -> Verdict {
    status(requirement, 202, response)?;
    let kind = response.header("content-type");
    equal(
        "AGX-HTTP-020",
        "content type",
        &"application/msgpack",
        &kind,
    )?;
    equal_bytes(
        "AGX-HTTP-020",
        "body of 202",
        &messages::only_id(id),
        &response.body,
    )
}

/// A wait that no quick function passes.
pub(super) const PATIENT: (&str, &str) = ("prefer", "respond-async, wait=8");

async fn value(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    let body = messages::call(&id, "conformance::echo", &args([Value::Int(3)]));
    let sid = host.sid.clone();
    let response = case
        .http()
        .call(&[PATIENT, ("agentix-sid", &sid)], body)
        .await?;
    done("AGX-HTTP-020", &response)?.is("AGX-HTTP-020", &Value::Int(3))?;
    let applied = response.header("preference-applied");
    equal("AGX-HTTP-017", "preference-applied", &"wait=8", &applied)?;
    case.alive(&mut host).await?;
    host.no_outcome("AGX-CALL-065", &id)
}

async fn error(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let failing = [
        ("conformance::fail", "ValueError"),
        ("conformance::nothing", "AttributeError"),
        ("nowhere_5f1c::f", "ModuleNotFoundError"),
    ];
    for (target, kind) in failing {
        let id = fresh_id();
        let body = messages::call(&id, target, &args([text("boom")]));
        let response = case.http().call(&[PATIENT], body).await?;
        done("AGX-HTTP-021", &response)?.plain_error_of("AGX-HTTP-021", kind)?;
        case.alive(&mut host).await?;
        host.no_outcome("AGX-CALL-065", &id)?;
    }
    Ok(())
}

async fn large(case: RuntimeCase) -> Verdict {
    let value = Value::Bytes(super::worker_calls::blob(1 << 20));
    let body = messages::call(&fresh_id(), "conformance::echo", &args([value.clone()]));
    let response = case.http().call(&[PATIENT], body).await?;
    let came = done("AGX-HTTP-020", &response)?.value("AGX-HTTP-020")?;
    check(
        came == value,
        "AGX-HTTP-020",
        "the 1 MiB that was sent",
        "something else",
    )
}

async fn accepted(case: RuntimeCase) -> Verdict {
    let (mut owner, mut other) = (case.host().await?, case.host().await?);
    let id = fresh_id();
    let body = messages::call(&id, "conformance::sleep", &args([Value::Float(0.4)]));
    let sid = owner.sid.clone();
    let headers = [
        ("prefer", "respond-async, wait=0.05"),
        ("agentix-sid", &*sid),
    ];
    let response = case.http().call(&headers, body).await?;
    waiting("AGX-HTTP-020", &response, &id)?;
    let applied = response.header("preference-applied");
    equal("AGX-HTTP-017", "preference-applied", &"wait=0.05", &applied)?;
    owner
        .outcome(&id)
        .await?
        .is("AGX-CALL-033", &Value::Float(0.4))?;
    case.alive(&mut other).await?;
    other.no_outcome("AGX-CALL-031", &id)?;
    owner.resume(&[&id]).await?;
    owner
        .outcome(&id)
        .await?
        .is("AGX-CALL-066", &Value::Float(0.4))
}

async fn accepted_no_sid(case: RuntimeCase) -> Verdict {
    let mut left = case.host().await?;
    let gone = left.sid.clone();
    case.alive(&mut left).await?;
    left.leave().await?;
    let (mut first, mut second) = (case.host().await?, case.host().await?);
    let sids = [None, Some("nobodyknowsthis00000"), Some(&*gone)];
    for sid in sids {
        let id = fresh_id();
        let body = messages::call(&id, "conformance::sleep", &args([Value::Float(0.3)]));
        let mut headers = vec![("prefer", "wait=0")];
        headers.extend(sid.map(|sid| ("agentix-sid", sid)));
        waiting(
            "AGX-HTTP-020",
            &case.http().call(&headers, body).await?,
            &id,
        )?;
        for host in [&mut first, &mut second] {
            host.outcome(&id)
                .await?
                .is("AGX-CALL-034", &Value::Float(0.3))?;
        }
    }
    Ok(())
}

async fn freed_by_all(case: RuntimeCase) -> Verdict {
    let (mut first, mut second, mut leaver) =
        (case.host().await?, case.host().await?, case.host().await?);
    let mut asker = case.session().await?;
    let (kept, freed) = (fresh_id(), fresh_id());
    for id in [&kept, &freed] {
        let body = messages::call(id, "conformance::sleep", &args([Value::Float(0.3)]));
        let response = case.http().call(&[("prefer", "wait=0")], body).await?;
        waiting("AGX-HTTP-020", &response, id)?;
    }
    for host in [&mut first, &mut second, &mut leaver] {
        for id in [&kept, &freed] {
            host.outcome(id)
                .await?
                .is("AGX-CALL-034", &Value::Float(0.3))?;
        }
    }
    first.ack(&freed).await?;
    first.ack(&kept).await?;
    first.fence().await?;
    leaver.ack(&kept).await?;
    // The reply to the second CONNECT shows that the leaving before it was handled.
    leaver.send_text("41/rpc,").await?;
    leaver.join("/rpc").await?;
    // The second has acked one of the two.
    second.ack(&freed).await?;
    second.fence().await?;
    asker.join("/rpc").await?;
    asker.resume(&[&freed, &kept]).await?;
    let gone = asker.outcome(&freed).await?;
    gone.error_of("AGX-CALL-035", "ResultUnavailable")?;
    asker
        .outcome(&kept)
        .await?
        .is("AGX-CALL-035", &Value::Float(0.3))
}

async fn wait(case: RuntimeCase) -> Verdict {
    let http = case.http();
    let table = [
        (None, "wait=1"),
        (Some("respond-async"), "wait=1"),
        (Some("wait=abc"), "wait=1"),
        (Some("wait=-1"), "wait=1"),
        (Some("await=5"), "wait=1"),
        (Some("wait=2"), "wait=2"),
        (Some("wait=2.0"), "wait=2"),
        (Some("wait=0.25"), "wait=0.25"),
        (Some("wait=\"3\""), "wait=3"),
        (Some("WAIT = 4"), "wait=4"),
        (Some("respond-async;wait=1.50"), "wait=1.5"),
        (Some("respond-async, wait=9"), "wait=9"),
        (Some("wait=1e3"), "wait=1"),
        (Some("wait=00.5"), "wait=0.5"),
        (Some("foo, wait=7, wait=8"), "wait=7"),
    ];
    for (header, expected) in table {
        let headers: Vec<_> = header
            .map(|header| ("prefer", header))
            .into_iter()
            .collect();
        let body = messages::call(&fresh_id(), "conformance::echo", &args([Value::Int(1)]));
        let response = http.call(&headers, body).await?;
        let requirement = if header.is_none() {
            "AGX-HTTP-014"
        } else {
            "AGX-HTTP-013"
        };
        let applied = response.header("preference-applied");
        equal(
            requirement,
            &format!("preference-applied for {header:?}"),
            &expected,
            &applied,
        )?;
        done("AGX-HTTP-020", &response)?.is("AGX-HTTP-020", &Value::Int(1))?;
    }
    Ok(())
}

async fn wait_zero(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let sid = host.sid.clone();
    let id = fresh_id();
    let body = messages::call(&id, "conformance::sleep", &args([LONG]));
    let headers = [("prefer", "wait=0"), ("agentix-sid", &*sid)];
    let response = case.http().call(&headers, body).await?;
    waiting("AGX-HTTP-015", &response, &id)?;
    let applied = response.header("preference-applied");
    equal("AGX-HTTP-017", "preference-applied", &"wait=0", &applied)?;
    host.cancel(&id).await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-051")
}

async fn repeat_running(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let http = case.http();
    let sid = host.sid.clone();
    let (id, key) = (fresh_id(), fresh_key());
    let body = messages::call(&id, "conformance::count_slow", &args([key.clone(), LONG]));
    let first = http
        .call(
            &[("prefer", "wait=0.02"), ("agentix-sid", &sid)],
            body.clone(),
        )
        .await?;
    waiting("AGX-HTTP-025", &first, &id)?;
    case.until_counted(&mut host, &key, 1).await?;
    // Its wait of 60 s would pass every limit of this suite.
    let second = http.call(&[("prefer", "wait=60")], body).await?;
    waiting("AGX-HTTP-040", &second, &id)?;
    case.counted("AGX-CALL-003", &mut host, &key, 1).await?;
    host.cancel(&id).await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-051")
}

async fn repeat_held(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    let body = messages::call(&id, "conformance::count", &args([key.clone()]));
    for _ in 0..3 {
        let response = case.http().call(&[PATIENT], body.clone()).await?;
        done("AGX-HTTP-041", &response)?.is("AGX-HTTP-041", &Value::Int(1))?;
    }
    case.counted("AGX-CALL-003", &mut host, &key, 1).await?;
    host.no_outcome("AGX-CALL-065", &id)
}

async fn repeat_gone(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    let body = messages::call(&id, "conformance::count", &args([key.clone()]));
    let response = case.http().call(&[PATIENT], body.clone()).await?;
    done("AGX-HTTP-020", &response)?.is("AGX-HTTP-020", &Value::Int(1))?;
    host.ack(&id).await?;
    host.fence().await?;
    let response = case.http().call(&[PATIENT], body).await?;
    done("AGX-HTTP-042", &response)?.plain_error_of("AGX-HTTP-042", "ResultUnavailable")?;
    case.counted("AGX-CALL-003", &mut host, &key, 1).await
}

async fn repeat_of_rpc(case: RuntimeCase) -> Verdict {
    let (mut first, mut second) = (case.host().await?, case.host().await?);
    let (id, key) = (fresh_id(), fresh_key());
    let arguments = args([key.clone(), Value::Float(0.5)]);
    first
        .call(&id, "conformance::count_slow", &arguments)
        .await?;
    case.until_counted(&mut first, &key, 1).await?;
    let body = messages::call(&id, "conformance::count_slow", &arguments);
    // Without a sid the owner stays.
    waiting(
        "AGX-HTTP-040",
        &case.http().call(&[PATIENT], body.clone()).await?,
        &id,
    )?;
    let sid = second.sid.clone();
    let response = case
        .http()
        .call(&[PATIENT, ("agentix-sid", &sid)], body)
        .await?;
    waiting("AGX-HTTP-040", &response, &id)?;
    second
        .outcome(&id)
        .await?
        .is("AGX-HTTP-043", &Value::Int(1))?;
    case.alive(&mut first).await?;
    first.no_outcome("AGX-CALL-031", &id)?;
    case.counted("AGX-CALL-003", &mut first, &key, 1).await
}

async fn resume_after_200(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    let body = messages::call(&id, "conformance::echo", &args([Value::Int(1)]));
    let response = case.http().call(&[PATIENT], body).await?;
    done("AGX-HTTP-020", &response)?.is("AGX-HTTP-020", &Value::Int(1))?;
    for _ in 0..2 {
        host.resume(&[&id]).await?;
        host.outcome(&id)
            .await?
            .is("AGX-CALL-064", &Value::Int(1))?;
    }
    host.ack(&id).await?;
    host.resume(&[&id]).await?;
    host.outcome(&id)
        .await?
        .plain_error_of("AGX-CALL-042", "ResultUnavailable")
        .map(|_| ())
}

async fn call_after_200(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    let body = messages::call(&id, "conformance::count", &args([key.clone()]));
    let response = case.http().call(&[PATIENT], body.clone()).await?;
    done("AGX-HTTP-020", &response)?.is("AGX-HTTP-020", &Value::Int(1))?;
    host.emit("/rpc", "call", &body).await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-012", &Value::Int(1))?;
    case.counted("AGX-CALL-003", &mut host, &key, 1).await
}

async fn caller_gone(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    let arguments = args([key.clone(), Value::Float(0.3)]);
    let body = messages::call(&id, "conformance::count_slow", &arguments);
    let caller = case.http().send_call_only(&[PATIENT], &body).await?;
    case.until_counted(&mut host, &key, 1).await?;
    drop(caller);
    // A call of the same length that began later has ended.
    case.value_of(&mut host, "sleep", [Value::Float(0.4)])
        .await?;
    host.resume(&[&id]).await?;
    host.outcome(&id)
        .await?
        .is("AGX-HTTP-031", &Value::Int(1))?;
    case.counted("AGX-CALL-003", &mut host, &key, 1).await
}

async fn cancelled(case: RuntimeCase) -> Verdict {
    let (mut host, mut other) = (case.host().await?, case.host().await?);
    let (id, key) = (fresh_id(), fresh_key());
    let body = messages::call(
        &id,
        "conformance::sleep_counted",
        &args([key.clone(), LONG]),
    );
    let http = case.http();
    let post = http.call(&[PATIENT], body);
    let cancel = async {
        case.until_counted(&mut host, &key, 1).await?;
        host.cancel(&id).await?;
        host.outcome(&id).await
    };
    let (response, heard) = tokio::join!(post, cancel);
    heard?.cancelled("AGX-CALL-054")?;
    done("AGX-CALL-054", &response?)?.cancelled("AGX-CALL-054")?;
    case.until_counted(&mut host, &key, 2).await?;
    case.alive(&mut other).await?;
    other.no_outcome("AGX-CALL-054", &id)?;
    equal(
        "AGX-CALL-054",
        "outcomes at the canceller",
        &1,
        &host.outcomes_so_far(&id),
    )
}

async fn resumed_while_waiting(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    let arguments = args([key.clone(), Value::Float(0.4)]);
    let http = case.http();
    let post = http.call(
        &[PATIENT],
        messages::call(&id, "conformance::count_slow", &arguments),
    );
    let resume = async {
        case.until_counted(&mut host, &key, 1).await?;
        host.resume(&[&id]).await?;
        host.outcome(&id).await
    };
    let (response, heard) = tokio::join!(post, resume);
    heard?.is("AGX-CALL-067", &Value::Int(1))?;
    done("AGX-CALL-067", &response?)?.is("AGX-CALL-067", &Value::Int(1))?;
    case.alive(&mut host).await?;
    equal("AGX-CALL-067", "outcomes", &1, &host.outcomes_so_far(&id))
}

async fn repeated_while_waiting(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let sid = host.sid.clone();
    let (id, key) = (fresh_id(), fresh_key());
    let arguments = args([key.clone(), Value::Float(0.5)]);
    let body = messages::call(&id, "conformance::count_slow", &arguments);
    let http = case.http();
    let post = http.call(&[PATIENT], body.clone());
    let repeat = async {
        case.until_counted(&mut host, &key, 1).await?;
        let response = http.call(&[PATIENT, ("agentix-sid", &sid)], body).await?;
        waiting("AGX-HTTP-040", &response, &id)?;
        host.outcome(&id).await
    };
    let (response, heard) = tokio::join!(post, repeat);
    heard?.is("AGX-HTTP-044", &Value::Int(1))?;
    done("AGX-HTTP-044", &response?)?.is("AGX-HTTP-044", &Value::Int(1))?;
    case.counted("AGX-CALL-003", &mut host, &key, 1).await?;
    equal("AGX-HTTP-044", "outcomes", &1, &host.outcomes_so_far(&id))
}

async fn concurrent(case: RuntimeCase) -> Verdict {
    let http = case.http();
    let call = |seconds: f64| {
        let body = messages::call(
            &fresh_id(),
            "conformance::sleep",
            &args([Value::Float(seconds)]),
        );
        let http = http.clone();
        async move {
            let response = http.call(&[PATIENT], body).await?;
            done("AGX-HTTP-020", &response)?.is("AGX-HTTP-020", &Value::Float(seconds))
        }
    };
    // One after the other they would take longer than the wait of one.
    let calls = (0..30).map(|number| call(0.5 + f64::from(number) / 1000.0));
    futures_util::future::try_join_all(calls).await.map(|_| ())
}
