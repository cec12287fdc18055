//! Role runtime: what is wrong or odd about the request of a `POST /call`.

use crate::case::cases;
use crate::context::{RuntimeCase, fresh_id, malformed_calls};
use crate::messages;
use crate::msgpack::{Msg, bin, map};
use crate::outcome::{Outcome, exact_body};
use crate::peer::http::Response;
use crate::pickle::{Value, args};
use crate::verdict::{Verdict, check};

use super::runtime_http::{PATIENT, done, status, waiting};

cases! {
    Runtime "runtime/http/too-large", "a body over 256 MiB is 413; others are served meanwhile",
        ["AGX-HTTP-026", "AGX-HTTP-027", "AGX-HTTP-024", "AGX-LIM-003"], too_large;
    Runtime "runtime/http/largest", "a body of exactly 256 MiB is taken; its pipe frame is over the limit, and fails that call alone",
        ["AGX-CALL-075", "AGX-LIM-004", "AGX-LIM-002", "AGX-LIM-003"], largest;
    Runtime "runtime/http/bad-body", "a body that is not msgpack or no map is 400",
        ["AGX-HTTP-022", "AGX-HTTP-020", "AGX-RPC-040"], bad_body;
    Runtime "runtime/http/bad-id", "a body without a valid id is 400",
        ["AGX-HTTP-023"], bad_id;
    Runtime "runtime/http/bad-fields", "a body with a wrong field is 400, and the id stays open",
        ["AGX-HTTP-023", "AGX-HTTP-024"], bad_fields;
    Runtime "runtime/http/content-type", "the content type is not checked",
        ["AGX-HTTP-010"], content_type;
    Runtime "runtime/http/location", "an id with line breaks stays out of the header block",
        ["AGX-HTTP-028", "AGX-HTTP-020"], location;
}

fn refused(requirement: &'static str, response: &Response) -> Verdict {
    status(requirement, 400, response)?;
    let outcome = Outcome::read_http(&response.body)?;
    exact_body(&outcome, &response.body)?;
    outcome
        .plain_error_of(requirement, "BadRequest")
        .map(|_| ())
}

/// Largest message (AGX-LIM-001).
const LARGEST: usize = 268_435_456;

/// A call without the bytes of its arguments, which are that many.
fn large_call(id: &str, arguments: usize) -> Vec<u8> {
    let mut head = messages::call(id, "conformance::echo", b"");
    // In the place of the empty bin.
    let _ = head.split_off(head.len() - 2);
    head.push(0xc6);
    head.extend((arguments as u32).to_be_bytes());
    head
}

async fn largest(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    case.alive(&mut host).await?;
    let (id, running) = (fresh_id(), fresh_id());
    host.call(&running, "conformance::sleep", &args([Value::Float(60.0)]))
        .await?;
    // With `type` and `context` the frame is longer than the body.
    let arguments = LARGEST - large_call(&id, 0).len();
    let head = large_call(&id, arguments);
    let response = case.http().call_of_zeros(&head, arguments).await?;
    let outcome = done("AGX-LIM-004", &response)?;
    outcome.plain_error_of("AGX-CALL-075", "FrameTooLarge")?;
    case.alive(&mut host).await?;
    host.no_outcome("AGX-LIM-003", &running)?;
    host.cancel(&running).await?;
    host.outcome(&running).await?.cancelled("AGX-LIM-003")
}

async fn too_large(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    case.alive(&mut host).await?;
    let id = fresh_id();
    let head = large_call(&id, LARGEST);
    let http = case.http();
    let upload = http.call_of_zeros(&head, LARGEST);
    let meanwhile = async {
        for _ in 0..20 {
            case.alive(&mut host).await?;
        }
        Ok::<_, crate::verdict::Stop>(())
    };
    let (response, served) = tokio::join!(upload, meanwhile);
    served?;
    let response = response?;
    status("AGX-HTTP-026", 413, &response)?;
    let outcome = Outcome::read_http(&response.body)?;
    exact_body(&outcome, &response.body)?;
    outcome.plain_error_of("AGX-HTTP-026", "PayloadTooLarge")?;
    case.alive(&mut host).await?;
    let body = messages::call(&id, "conformance::echo", &args([Value::Int(1)]));
    let response = case.http().call(&[PATIENT], body).await?;
    done("AGX-HTTP-024", &response)?.is("AGX-HTTP-024", &Value::Int(1))
}

async fn bad_body(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let call = messages::call(&fresh_id(), "conformance::echo", &args([Value::Int(1)]));
    let mut int_key = call.clone();
    int_key[0] += 1;
    int_key.extend([0x01, 0xc0]);
    let bodies = [
        ("an empty body", vec![]),
        ("the byte c1", vec![0xc1]),
        ("a call cut short", call[..call.len() - 1].to_vec()),
        ("a call and one byte more", [&call[..], &[0xc0]].concat()),
        ("an int key", int_key),
        ("JSON", br#"{"call_id":"x"}"#.to_vec()),
        (
            "a bin of 4 GB",
            vec![0x81, 0xa1, b'x', 0xc6, 0xff, 0xff, 0xff, 0xff],
        ),
        ("nil", vec![0xc0]),
        ("an array", Msg::Array(vec![]).bytes()),
        ("a str", crate::msgpack::text("x").bytes()),
    ];
    for (what, body) in bodies {
        case.alive(&mut host).await?;
        let response = case.http().call(&[PATIENT], body).await?;
        refused("AGX-HTTP-022", &response).map_err(|stop| stop.in_case_of(what))?;
        case.alive(&mut host).await?;
    }
    Ok(())
}

async fn bad_id(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let long = "x".repeat(129);
    let ids = [
        ("no call_id", None),
        ("an empty call_id", Some(crate::msgpack::text(""))),
        ("a call_id of 129 bytes", Some(crate::msgpack::text(&long))),
        ("an int call_id", Some(Msg::Int(1))),
        ("a bin call_id", Some(bin(b"x"))),
        ("a nil call_id", Some(Msg::Nil)),
    ];
    for (what, id) in ids {
        case.alive(&mut host).await?;
        let mut entries: Vec<_> = id
            .map(|id| (crate::msgpack::text("call_id"), id))
            .into_iter()
            .collect();
        entries.push((
            crate::msgpack::text("callable"),
            crate::msgpack::text("conformance::echo"),
        ));
        entries.push((
            crate::msgpack::text("arguments"),
            bin(&args([Value::Int(1)])),
        ));
        let response = case
            .http()
            .call(&[PATIENT], Msg::Map(entries).bytes())
            .await?;
        refused("AGX-HTTP-023", &response).map_err(|stop| stop.in_case_of(what))?;
        case.alive(&mut host).await?;
    }
    let response = case.http().call(&[PATIENT], map([]).bytes()).await?;
    refused("AGX-HTTP-023", &response)
}

async fn bad_fields(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    for (what, body) in malformed_calls(&id) {
        case.alive(&mut host).await?;
        let response = case.http().call(&[PATIENT], body).await?;
        refused("AGX-HTTP-023", &response).map_err(|stop| stop.in_case_of(what))?;
    }
    let body = messages::call(&id, "conformance::echo", &args([Value::Int(1)]));
    let response = case.http().call(&[PATIENT], body).await?;
    done("AGX-HTTP-024", &response)?.is("AGX-HTTP-024", &Value::Int(1))
}

async fn content_type(case: RuntimeCase) -> Verdict {
    let types = [
        "application/json",
        "text/plain",
        "application/x-www-form-urlencoded",
        "nonsense",
    ];
    for kind in types {
        let body = messages::call(&fresh_id(), "conformance::echo", &args([Value::Int(1)]));
        let headers = [("content-type", kind), PATIENT];
        let response = case.http().request("POST", "/call", &headers, body).await?;
        done("AGX-HTTP-010", &response)?.is("AGX-HTTP-010", &Value::Int(1))?;
    }
    let body = messages::call(&fresh_id(), "conformance::echo", &args([Value::Int(1)]));
    let response = case
        .http()
        .request("POST", "/call", &[PATIENT], body)
        .await?;
    done("AGX-HTTP-010", &response)?.is("AGX-HTTP-010", &Value::Int(1))
}

async fn location(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let sid = host.sid.clone();
    let id = format!("{} \r\nx-injected: 1\r\n/é%?#", fresh_id());
    let body = messages::call(&id, "conformance::sleep", &args([Value::Float(60.0)]));
    let headers = [("prefer", "wait=0"), ("agentix-sid", &*sid)];
    let response = case.http().call(&headers, body).await?;
    waiting("AGX-HTTP-020", &response, &id)?;
    let injected = response.headers.contains_key("x-injected");
    check(
        !injected,
        "AGX-HTTP-028",
        "no header made of an id",
        format_args!("{:?}", response.headers),
    )?;
    if let Some(location) = response.headers.get("location") {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%/".contains(byte);
        let encoded = location.as_bytes().starts_with(b"/call/")
            && location.as_bytes().iter().all(plain)
            && !location.as_bytes()[6..].contains(&b'/');
        check(
            encoded,
            "AGX-HTTP-028",
            "/call/ and the id, percent-encoded",
            format_args!("{location:?}"),
        )?;
    }
    host.cancel(&id).await?;
    host.outcome(&id).await?.cancelled("AGX-CALL-051")
}
