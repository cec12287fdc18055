//! Role runtime: connecting, namespaces, packets.

use serde_json::json;

use crate::case::cases;
use crate::context::{RuntimeCase, fresh_id, fresh_key};
use crate::messages;
use crate::outcome::Outcome;
use crate::peer::http::Http;
use crate::peer::polling::{Packet, Polling};
use crate::peer::session::{Item, Session};
use crate::peer::websocket::{Received, Socket};
use crate::pickle::{Value, args};
use crate::verdict::{Verdict, check, equal, fail};

cases! {
    Runtime "runtime/health/body", "`/health` states status, version and protocol 1.0",
        ["AGX-HTTP-001", "AGX-VER-001"], health;
    Runtime "runtime/health/methods", "another method on `/health` or `/call` is 405",
        ["AGX-HTTP-029"], methods;
    Runtime "runtime/health/unknown-path", "an unknown path is 404",
        ["AGX-HTTP-030"], unknown_path;
    Runtime "runtime/connect/websocket", "WebSocket alone: the open packet, then a call",
        ["AGX-CON-003", "AGX-CON-010", "AGX-CON-011", "AGX-CON-012", "AGX-CON-013"], websocket;
    Runtime "runtime/connect/polling", "polling alone: the open packet, then a call with attachments in base64",
        ["AGX-CON-003", "AGX-CON-010", "AGX-CON-011", "AGX-CON-020", "AGX-CON-022"], polling;
    Runtime "runtime/connect/upgrade", "polling upgraded to WebSocket, with packets right behind the `5`",
        ["AGX-CON-030", "AGX-CON-003", "AGX-CON-032"], upgrade;
    Runtime "runtime/connect/path", "Engine.IO is served with and without the trailing slash",
        ["AGX-CON-002"], path;
    Runtime "runtime/connect/unknown-parameters", "unknown query parameters are ignored",
        ["AGX-CON-006"], unknown_parameters;
    Runtime "runtime/connect/bad-query", "another EIO, an unknown transport and an unknown sid are 400",
        ["AGX-CON-005"], bad_query;
    Runtime "runtime/connect/namespaces", "any namespace may be joined, each with a sid of its own",
        ["AGX-CON-042", "AGX-CON-044"], namespaces;
    Runtime "runtime/connect/auth", "any auth object, or none",
        ["AGX-CON-042"], auth;
    Runtime "runtime/connect/leave", "leaving one namespace keeps the others",
        ["AGX-CON-047", "AGX-CON-045"], leave;
    Runtime "runtime/connect/not-joined", "an event on a namespace that was not joined is ignored",
        ["AGX-CON-045"], not_joined;
    Runtime "runtime/connect/websocket-ping", "a WebSocket ping is answered",
        ["AGX-CON-076"], websocket_ping;
    Runtime "runtime/connect/fragments", "WebSocket messages in fragments",
        ["AGX-CON-034"], fragments;
    Runtime "runtime/packet/header-forms", "headers with blanks, and with the placeholder's members swapped",
        ["AGX-CON-053"], header_forms;
    Runtime "runtime/packet/any-byte", "attachments hold any byte, 1e included, on every transport",
        ["AGX-CON-059"], any_byte;
    Runtime "runtime/packet/text-instead-of-attachment", "a text where an attachment is due closes that connection alone",
        ["AGX-CON-054", "AGX-CON-058"], text_instead_of_attachment;
    Runtime "runtime/packet/unannounced-attachment", "an attachment without a header closes that connection alone",
        ["AGX-CON-055", "AGX-CON-058"], unannounced_attachment;
    Isolated "runtime/packet/malformed", "malformed packets harm no other connection",
        ["AGX-CON-058"], malformed;
    Runtime "runtime/packet/order", "events of one connection are handled in order",
        ["AGX-CON-060"], order;
}

async fn health(case: RuntimeCase) -> Verdict {
    let response = case.http().get("/health").await?;
    equal("AGX-HTTP-001", "status", &200, &response.status)?;
    let kind = response.header("content-type");
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    equal(
        "AGX-HTTP-001",
        "content type",
        &"application/json".to_owned(),
        &kind,
    )?;
    let body: serde_json::Value = match serde_json::from_slice(&response.body) {
        Ok(body) => body,
        Err(error) => return fail("AGX-HTTP-001", "JSON", error),
    };
    equal("AGX-HTTP-001", "`status`", &json!("ok"), &body["status"])?;
    equal(
        "AGX-VER-001",
        "`protocol`",
        &json!("1.0"),
        &body["protocol"],
    )?;
    check(
        body["version"].is_string(),
        "AGX-HTTP-001",
        "a text as `version`",
        &body["version"],
    )
}

async fn methods(case: RuntimeCase) -> Verdict {
    let http = case.http();
    case.alive(&mut case.host().await?).await?;
    let requests = [
        ("POST", "/health"),
        ("PUT", "/health"),
        ("DELETE", "/health"),
        ("HEAD", "/health"),
        ("GET", "/call"),
        ("PUT", "/call"),
        ("HEAD", "/call"),
    ];
    for (method, path) in requests {
        let response = http.request(method, path, &[], Vec::new()).await?;
        equal(
            "AGX-HTTP-029",
            &format!("status of {method} {path}"),
            &405,
            &response.status,
        )?;
    }
    case.alive(&mut case.host().await?).await
}

async fn unknown_path(case: RuntimeCase) -> Verdict {
    case.alive(&mut case.host().await?).await?;
    for path in ["/", "/nowhere", "/call/abc", "/health/x"] {
        let response = case.http().get(path).await?;
        equal(
            "AGX-HTTP-030",
            &format!("status of GET {path}"),
            &404,
            &response.status,
        )?;
    }
    Ok(())
}

fn open_packet(open: &serde_json::Value, upgrades: serde_json::Value) -> Verdict {
    let sid = open["sid"].as_str().unwrap_or_default();
    check(!sid.is_empty(), "AGX-CON-010", "a text as `sid`", open)?;
    equal("AGX-CON-011", "`upgrades`", &upgrades, &open["upgrades"])?;
    equal(
        "AGX-CON-012",
        "`pingInterval`",
        &json!(25_000),
        &open["pingInterval"],
    )?;
    equal(
        "AGX-CON-012",
        "`pingTimeout`",
        &json!(300_000),
        &open["pingTimeout"],
    )?;
    equal(
        "AGX-CON-013",
        "`maxPayload`",
        &json!(268_435_456),
        &open["maxPayload"],
    )
}

async fn websocket(case: RuntimeCase) -> Verdict {
    let mut host = case.session().await?;
    open_packet(&host.open, json!([]))?;
    host.join("/rpc").await?;
    case.alive(&mut host).await?;
    host.leave().await
}

/// Opens a session on polling and joins `/rpc`.
async fn polling_host(http: &Http) -> Verdict<Polling> {
    let mut host = Polling::open(http).await?;
    host.post(&[Packet::Text("40/rpc,{}".to_owned())]).await?;
    match host.next("a CONNECT reply").await? {
        Packet::Text(text) if text.starts_with("40/rpc,{") => Ok(host),
        other => fail(
            "AGX-CON-042",
            "a CONNECT reply for /rpc",
            format_args!("{other:?}"),
        ),
    }
}

async fn polling_call(host: &mut Polling, value: &Value) -> Verdict {
    let id = fresh_id();
    let header = r#"451-/rpc,["call",{"_placeholder":true,"num":0}]"#;
    let payload = messages::call(&id, "conformance::echo", &args([value.clone()]));
    host.post(&[
        Packet::Text(header.to_owned()),
        Packet::Binary(payload.into()),
    ])
    .await?;
    let header = host.next("the header of the outcome").await?;
    let expected = r#"451-/rpc,["call:result",{"_placeholder":true,"num":0}]"#;
    equal(
        "AGX-CON-051",
        "header",
        &Packet::Text(expected.to_owned()),
        &header,
    )?;
    match host.next("the attachment of the outcome").await? {
        Packet::Binary(payload) => {
            let terminal = crate::outcome::Terminal::read(true, &payload)?;
            equal("AGX-RPC-001", "`call_id`", &id, &terminal.call_id)?;
            terminal.outcome.is("AGX-CON-003", value)
        }
        other => fail(
            "AGX-CON-052",
            "the attachment behind its header",
            format_args!("{other:?}"),
        ),
    }
}

async fn polling(case: RuntimeCase) -> Verdict {
    let http = case.http();
    let mut host = polling_host(&http).await?;
    open_packet(&host.open, json!(["websocket"]))?;
    for number in 0..3 {
        polling_call(&mut host, &Value::Int(number)).await?;
    }
    // Nonsense is taken all the same, and does no harm to others.
    host.post(&[Packet::Text("42/nowhere,[\"hello\"]".to_owned())])
        .await?;
    polling_call(&mut host, &Value::None).await?;
    host.leave().await
}

async fn upgrade(case: RuntimeCase) -> Verdict {
    let polling = Polling::open(&case.http()).await?;
    let path = format!("/socket.io/?EIO=4&transport=websocket&sid={}", polling.sid);
    let name = case.next_name();
    let mut socket = Socket::connect(&case.endpoint, &path, &name, &case.wire, None).await?;
    socket.send_text("2probe").await?;
    let answer = socket.next(case.wire.clock.answer()).await;
    equal(
        "AGX-CON-030",
        "answer to the probe",
        &Some(Received::Text("3probe".to_owned())),
        &answer,
    )?;
    socket.send_text("5").await?;
    let mut host = Session::over(socket, polling.open, &case.wire);
    host.join("/rpc").await?;
    case.alive(&mut host).await
}

async fn path(case: RuntimeCase) -> Verdict {
    for path in ["/socket.io/", "/socket.io"] {
        let response = case
            .http()
            .get(&format!("{path}?EIO=4&transport=polling"))
            .await?;
        let text = String::from_utf8_lossy(&response.body);
        let opened = response.status == 200 && text.starts_with("0{");
        check(
            opened,
            "AGX-CON-002",
            format_args!("an open packet at {path}"),
            format_args!("{} {text}", response.status),
        )?;
    }
    Ok(())
}

async fn unknown_parameters(case: RuntimeCase) -> Verdict {
    let path = "/socket.io/?t=1735689600.123&EIO=4&x=%26&transport=polling&b64";
    let response = case.http().get(path).await?;
    let text = String::from_utf8_lossy(&response.body);
    let opened = response.status == 200 && text.starts_with("0{");
    check(
        opened,
        "AGX-CON-006",
        "an open packet",
        format_args!("{} {text}", response.status),
    )
}

async fn bad_query(case: RuntimeCase) -> Verdict {
    let http = case.http();
    let mut host = case.host().await?;
    case.alive(&mut host).await?;
    let queries = [
        "EIO=3&transport=polling",
        "EIO=5&transport=polling",
        "EIO=four&transport=polling",
        "transport=polling",
        "EIO=4&transport=carrier-pigeon",
        "EIO=4&transport=polling&sid=nobodyknowsthis00000",
    ];
    for query in queries {
        let response = http.get(&format!("/socket.io/?{query}")).await?;
        equal(
            "AGX-CON-005",
            &format!("status of {query}"),
            &400,
            &response.status,
        )?;
    }
    case.alive(&mut host).await
}

async fn namespaces(case: RuntimeCase) -> Verdict {
    let mut host = case.session().await?;
    let engine = host.open["sid"].as_str().unwrap_or_default().to_owned();
    let long = format!("/{}", "n".repeat(255));
    let mut sids = vec![engine];
    for name in [
        "/rpc", "/log", "/trace", "/app", "/app/sub", "/App", "/é-1", &long,
    ] {
        let sid = host.join(name).await?;
        check(
            !sids.contains(&sid),
            "AGX-CON-042",
            format_args!("a sid of its own for {name}"),
            format_args!("{sid}, after {sids:?}"),
        )?;
        sids.push(sid);
    }
    case.alive(&mut host).await
}

async fn auth(case: RuntimeCase) -> Verdict {
    for auth in ["", "{}", r#"{"token":"x","n":[1,null]}"#] {
        let mut host = case.session().await?;
        host.send_text(&format!("40/rpc,{auth}")).await?;
        let joined = |item: &Item| match item {
            Item::Packet(_, text) if text.starts_with("40/rpc,{") => Some(()),
            _ => None,
        };
        host.wait("a CONNECT reply", joined).await?;
        case.alive(&mut host).await?;
    }
    Ok(())
}

async fn leave(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let first = host.sid.clone();
    host.join("/app").await?;
    host.send_text("41/app,").await?;
    case.alive(&mut host).await?;

    // Leaving /rpc: the call behind it is not run, and the session lives on.
    host.join("/app").await?;
    let (id, key) = (fresh_id(), fresh_key());
    host.send_text("41/rpc,").await?;
    host.call(&id, "conformance::count", &args([key.clone()]))
        .await?;
    let again = host.join("/rpc").await?;
    check(again != first, "AGX-CON-042", "a new sid", &again)?;
    case.counted("AGX-CON-045", &mut host, &key, 0).await?;
    host.no_outcome("AGX-CON-045", &id)
}

async fn not_joined(case: RuntimeCase) -> Verdict {
    let mut host = case.session().await?;
    host.join("/app").await?;
    let (id, key) = (fresh_id(), fresh_key());
    host.call(&id, "conformance::count", &args([key.clone()]))
        .await?;
    host.join("/rpc").await?;
    case.counted("AGX-CON-045", &mut host, &key, 0).await?;
    host.no_outcome("AGX-CON-045", &id)?;
    // The id was not accepted: the call runs when it is sent again.
    host.call(&id, "conformance::count", &args([key])).await?;
    host.outcome(&id).await?.is("AGX-CALL-004", &Value::Int(1))
}

async fn websocket_ping(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    host.send_ping(b"are you there").await?;
    let pong = |item: &Item| match item {
        Item::Pong(payload) => Some(payload.clone()),
        _ => None,
    };
    let payload = host.wait("a WebSocket pong", pong).await?;
    equal(
        "AGX-CON-076",
        "payload of the pong",
        &&b"are you there"[..],
        &&payload[..],
    )?;
    case.alive(&mut host).await
}

async fn fragments(case: RuntimeCase) -> Verdict {
    let name = case.next_name();
    let mut host = Session::open_fragmented(&case.endpoint, &name, &case.wire, Some(7)).await?;
    host.join("/rpc").await?;
    let value = Value::Bytes((0..=255).collect());
    let came = case.value_of(&mut host, "echo", [value.clone()]).await?;
    equal("AGX-CON-034", "the value sent", &value, &came)
}

async fn header_forms(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let headers = [
        r#"451-/rpc,["call",{"num":0,"_placeholder":true}]"#,
        r#"451-/rpc,[ "call" , { "_placeholder" : true , "num" : 0 } ]"#,
        r#"451-/rpc,["\u0063all",{"_placeholder":true,"num":0}]"#,
    ];
    for header in headers {
        let id = fresh_id();
        host.send_text(header).await?;
        host.send_binary(&messages::call(
            &id,
            "conformance::echo",
            &args([Value::Int(1)]),
        ))
        .await?;
        host.outcome(&id).await?.is("AGX-CON-053", &Value::Int(1))?;
    }
    Ok(())
}

async fn any_byte(case: RuntimeCase) -> Verdict {
    let value = Value::Bytes((0..=255).chain([0x1e, 0x1e, b'4', 0x1e, b'b']).collect());
    let mut host = case.host().await?;
    let came = case.value_of(&mut host, "echo", [value.clone()]).await?;
    equal("AGX-CON-059", "the value sent", &value, &came)?;
    let mut host = polling_host(&case.http()).await?;
    polling_call(&mut host, &value).await?;
    host.leave().await
}

async fn text_instead_of_attachment(case: RuntimeCase) -> Verdict {
    let mut other = case.host().await?;
    case.alive(&mut other).await?;
    let mut host = case.host().await?;
    host.send_text(r#"451-/rpc,["call",{"_placeholder":true,"num":0}]"#)
        .await?;
    host.send_text(r#"451-/rpc,["cancel",{"_placeholder":true,"num":0}]"#)
        .await?;
    host.closed().await?;
    case.alive(&mut other).await?;
    case.alive(&mut case.host().await?).await
}

async fn unannounced_attachment(case: RuntimeCase) -> Verdict {
    let mut other = case.host().await?;
    case.alive(&mut other).await?;
    let mut host = case.host().await?;
    host.send_binary(&messages::call(
        &fresh_id(),
        "conformance::echo",
        &args([Value::None]),
    ))
    .await?;
    host.closed().await?;
    case.alive(&mut other).await?;
    case.alive(&mut case.host().await?).await
}

async fn malformed(case: RuntimeCase) -> Verdict {
    let mut other = case.host().await?;
    case.alive(&mut other).await?;
    let deep = format!("42/app,{}", "[".repeat(200_000));
    let texts = [
        "",
        "4",
        "9",
        "x",
        "\u{1f600}",
        "45",
        "451-",
        "451-/rpc",
        "451-/rpc,",
        "451-/rpc,[",
        "451-/rpc,[]",
        "451-/rpc,{}",
        "451-/rpc,[1]",
        r#"451-/rpc,["call"]"#,
        r#"451-/rpc,["call",{"_placeholder":true,"num":7}]"#,
        r#"451-/rpc,["call",{"_placeholder":true,"num":-1}]"#,
        r#"459999999999999999999-/rpc,["call",{"_placeholder":true,"num":0}]"#,
        r#"4599-/rpc,["call",{"_placeholder":true,"num":0}]"#,
        r#"451-/rpc,99999999999999999999999["call",{"_placeholder":true,"num":0}]"#,
        r#"42/rpc,["#,
        r#"42/rpc,[]"#,
        r#"42/rpc,"call""#,
        r#"43/rpc,1[]"#,
        r#"461-/rpc,1[{"_placeholder":true,"num":0}]"#,
        r#"44/rpc,{"message":"x"}"#,
        "40no-slash,{}",
        "40/rpc,{",
        "41/never-joined,",
        &deep,
    ];
    for text in texts {
        let mut host = case.host().await?;
        host.send_text(text).await?;
        // Whether it closes this connection or ignores the packet is its choice.
        case.alive(&mut other)
            .await
            .map_err(|stop| stop.in_case_of(text.get(..60).unwrap_or(text)))?;
    }
    case.alive(&mut case.host().await?).await
}

async fn order(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    // Each ack frees what the call before it left behind, and each resume asks whether it is gone: handled out of order,
    // one of them would find another answer.
    for _ in 0..20 {
        let id = fresh_id();
        host.call(&id, "conformance::echo", &args([Value::Int(1)]))
            .await?;
        host.outcome(&id)
            .await?
            .is("AGX-CALL-020", &Value::Int(1))?;
        host.resume(&[&id]).await?;
        host.ack(&id).await?;
        host.resume(&[&id]).await?;
        host.outcome(&id).await?.is("AGX-CON-060", &Value::Int(1))?;
        let gone = host.outcome(&id).await?;
        match &gone {
            Outcome::Error(error) if error.kind == "ResultUnavailable" => {}
            _ => {
                return fail(
                    "AGX-CON-060",
                    "ResultUnavailable behind the ack",
                    format_args!("{gone:?}"),
                );
            }
        }
    }
    Ok(())
}
