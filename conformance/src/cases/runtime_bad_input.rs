//! Role runtime: input on `/rpc` that is wrong. A liveness probe stands before and behind each piece of it.

use crate::case::cases;
use crate::context::{RuntimeCase, fresh_id, fresh_key, malformed_calls};
use crate::messages;
use crate::msgpack::{Msg, bin, map, text};
use crate::outcome::{Terminal, exact_payload};
use crate::peer::session::{Event, Item, Session};
use crate::pickle::{Value, args};
use crate::verdict::{Verdict, check, equal};

cases! {
    Runtime "runtime/bad-input/not-msgpack", "an attachment that is not msgpack: silence, no ack",
        ["AGX-RPC-005", "AGX-COD-011", "AGX-COD-012", "AGX-COD-013", "AGX-COD-014", "AGX-COD-015"], not_msgpack;
    Runtime "runtime/bad-input/not-a-map", "an attachment that is no map: silence, no ack",
        ["AGX-RPC-005"], not_a_map;
    Runtime "runtime/bad-input/hostile-counts", "counts that the bytes do not hold, and depth",
        ["AGX-COD-020", "AGX-COD-017", "AGX-COD-021", "AGX-LIM-006"], hostile_counts;
    Runtime "runtime/bad-input/call-id", "a call without a valid id: BadRequest with the empty id, acked",
        ["AGX-RPC-015", "AGX-RPC-014", "AGX-RPC-061", "AGX-RPC-040"], call_id;
    Runtime "runtime/bad-input/call-fields", "a call with a wrong field: BadRequest with its id, which stays open",
        ["AGX-RPC-016", "AGX-RPC-017", "AGX-RPC-061", "AGX-CALL-004"], call_fields;
    Runtime "runtime/bad-input/closed-id", "a wrong field does not make BadRequest of a repeat",
        ["AGX-RPC-018", "AGX-CALL-010"], closed_id;
    Runtime "runtime/bad-input/json", "JSON instead of an attachment on `/rpc` is dropped",
        ["AGX-RPC-008"], json;
    Runtime "runtime/bad-input/unknown-event", "an event of another name on `/rpc`: no event, no ack",
        ["AGX-RPC-002"], unknown_event;
    Runtime "runtime/bad-input/cancel-and-ack", "`cancel` and `ack` without a known id change nothing",
        ["AGX-RPC-050"], cancel_and_ack;
    Runtime "runtime/bad-input/resume", "`resume` without an array, and with entries that are not str",
        ["AGX-RPC-051", "AGX-RPC-052"], resume;
    Runtime "runtime/bad-input/forms", "any valid msgpack form, any order of keys, the last of repeated keys",
        ["AGX-COD-010", "AGX-COD-016"], forms;
}

/// Bodies that are no msgpack, each a well-formed call with one fault.
fn faulty_calls(id: &str, key: &Value) -> Vec<(&'static str, Vec<u8>)> {
    let call = messages::call(id, "conformance::count", &args([key.clone()]));
    let with_key = |key: &[u8]| {
        let mut body = call.clone();
        body[0] += 1;
        body.extend_from_slice(key);
        body.push(0xc0);
        body
    };
    vec![
        ("the byte c1", vec![0xc1]),
        ("a call cut short", call[..call.len() - 1].to_vec()),
        ("a call and one byte more", [&call[..], &[0xc0]].concat()),
        ("two calls", [&call[..], &call[..]].concat()),
        ("an int key", with_key(&[0x01])),
        ("a nil key", with_key(&[0xc0])),
        ("a map key", with_key(&[0x80])),
        ("a str that is not UTF-8", with_key(&[0xa1, 0xff])),
        ("an overlong encoding", with_key(&[0xa2, 0xc0, 0x80])),
        (
            "a timestamp of 3 bytes",
            [
                &with_key(b"\xa1x")[..call.len() + 2],
                &[0xc7, 3, 0xff, 1, 2, 3],
            ]
            .concat(),
        ),
        ("JSON", br#"{"call_id":"x"}"#.to_vec()),
    ]
}

/// Sends a payload that has to be met with silence, and proves with a fence behind it that it was handled.
async fn silence(
    case: &RuntimeCase,
    host: &mut Session,
    requirement: &'static str,
    event: &str,
    what: &str,
    payload: &[u8],
) -> Verdict {
    case.alive(host).await?;
    let before = host.events_so_far("/rpc").len();
    let ack = host.emit_for_ack("/rpc", event, payload).await?;
    case.alive(host)
        .await
        .map_err(|stop| stop.in_case_of(what))?;
    // One event more: the outcome of the probe.
    let events = host.events_so_far("/rpc").len();
    equal(
        requirement,
        &format!("events after {what}"),
        &(before + 1),
        &events,
    )?;
    check(
        !host.acks_so_far().contains(&ack),
        requirement,
        format_args!("no ack after {what}"),
        format_args!("ack {ack}"),
    )
}

async fn not_msgpack(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (id, key) = (fresh_id(), fresh_key());
    for (what, payload) in faulty_calls(&id, &key) {
        silence(&case, &mut host, "AGX-RPC-005", "call", what, &payload).await?;
    }
    for event in ["cancel", "ack", "resume"] {
        silence(&case, &mut host, "AGX-RPC-005", event, event, &[0x81, 0xa7]).await?;
    }
    case.counted("AGX-RPC-005", &mut host, &key, 0).await
}

async fn not_a_map(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let bodies = [
        ("an int", Msg::Int(1).bytes()),
        ("a str", text("call").bytes()),
        ("a bool", Msg::Bool(true).bytes()),
        (
            "an array",
            Msg::Array(vec![text("call_id"), text("x")]).bytes(),
        ),
        ("an extension", vec![0xd4, 0x05, 0x00]),
    ];
    for (what, payload) in bodies {
        for event in ["call", "resume"] {
            silence(&case, &mut host, "AGX-RPC-005", event, what, &payload).await?;
        }
    }
    Ok(())
}

async fn hostile_counts(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let deep = [&[0x81, 0xa1, b'x'][..], &vec![0x91; 1_000_000], &[0xc0]].concat();
    let bodies: [(&str, &[u8]); 6] = [
        (
            "an array of 4 G",
            &[0x81, 0xa1, b'x', 0xdd, 0xff, 0xff, 0xff, 0xff],
        ),
        ("a map of 4 G", &[0xdf, 0xff, 0xff, 0xff, 0xff, 0xa1, b'x']),
        (
            "a bin of 4 GB",
            &[0x81, 0xa1, b'x', 0xc6, 0xff, 0xff, 0xff, 0xff, 1, 2],
        ),
        (
            "a str of 4 GB",
            &[0x81, 0xa1, b'x', 0xdb, 0xff, 0xff, 0xff, 0xff, 1, 2],
        ),
        (
            "an extension of 4 GB",
            &[0x81, 0xa1, b'x', 0xc9, 0xff, 0xff, 0xff, 0xff, 5, 2],
        ),
        ("a million arrays in each other", &deep),
    ];
    for (what, payload) in bodies {
        silence(&case, &mut host, "AGX-COD-020", "call", what, payload).await?;
    }
    Ok(())
}

fn rejection(item: &Item) -> Option<Event> {
    match item {
        Item::Event(event) if event.name == "call:error" => Some(event.clone()),
        _ => None,
    }
}

async fn call_id(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let key = fresh_key();
    let with = |id: Option<Msg>| {
        let mut entries: Vec<_> = id.map(|id| (text("call_id"), id)).into_iter().collect();
        entries.push((text("callable"), text("conformance::count")));
        entries.push((text("arguments"), bin(&args([key.clone()]))));
        Msg::Map(entries).bytes()
    };
    let long = "x".repeat(129);
    // 43 characters of three bytes.
    let wide = "\u{6a21}".repeat(43);
    let payloads = [
        ("no call_id", with(None)),
        ("an empty call_id", with(Some(text("")))),
        ("a call_id of 129 bytes", with(Some(text(&long)))),
        (
            "a call_id of 43 characters and 129 bytes",
            with(Some(text(&wide))),
        ),
        ("an int call_id", with(Some(Msg::Int(7)))),
        ("a bin call_id", with(Some(bin(b"abc")))),
        ("a nil call_id", with(Some(Msg::Nil))),
        ("an array call_id", with(Some(Msg::Array(vec![text("a")])))),
        ("an empty map", map([]).bytes()),
    ];
    for (what, payload) in payloads {
        case.alive(&mut host).await?;
        let ack = host.emit_for_ack("/rpc", "call", &payload).await?;
        let event = host
            .wait("a call:error", rejection)
            .await
            .map_err(|stop| stop.in_case_of(what))?;
        let terminal = Terminal::read(false, &event.payload)?;
        equal(
            "AGX-RPC-015",
            &format!("call_id after {what}"),
            &"",
            &&*terminal.call_id,
        )?;
        exact_payload(&terminal)?;
        terminal
            .outcome
            .plain_error_of("AGX-RPC-015", "BadRequest")?;
        host.acked("/rpc", ack)
            .await
            .map_err(|stop| stop.in_case_of(what))?;
    }
    case.counted("AGX-RPC-015", &mut host, &key, 0).await
}

async fn call_fields(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    for (what, payload) in malformed_calls(&id) {
        case.alive(&mut host).await?;
        let ack = host.emit_for_ack("/rpc", "call", &payload).await?;
        let (_, terminal) = host
            .terminal(&id)
            .await
            .map_err(|stop| stop.in_case_of(what))?;
        exact_payload(&terminal)?;
        let error = terminal.outcome.plain_error_of("AGX-RPC-016", "BadRequest");
        error.map_err(|stop| stop.in_case_of(what))?;
        host.acked("/rpc", ack)
            .await
            .map_err(|stop| stop.in_case_of(what))?;
    }
    // The id is still unused: the corrected call runs.
    host.call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&id).await?.is("AGX-RPC-017", &Value::Int(1))
}

async fn closed_id(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    for (what, payload) in malformed_calls(&id) {
        host.emit("/rpc", "call", &payload).await?;
        let outcome = host
            .outcome(&id)
            .await
            .map_err(|stop| stop.in_case_of(what))?;
        outcome
            .is("AGX-RPC-018", &Value::Int(1))
            .map_err(|stop| stop.in_case_of(what))?;
    }
    host.ack(&id).await?;
    for (what, payload) in malformed_calls(&id) {
        host.emit("/rpc", "call", &payload).await?;
        let outcome = host
            .outcome(&id)
            .await
            .map_err(|stop| stop.in_case_of(what))?;
        outcome
            .error_of("AGX-RPC-018", "ResultUnavailable")
            .map_err(|stop| stop.in_case_of(what))?;
    }
    Ok(())
}

async fn json(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    let running = fresh_id();
    host.call(&running, "conformance::sleep", &args([Value::Float(60.0)]))
        .await?;
    let texts = [
        format!(
            r#"42/rpc,["call",{{"call_id":"{id}","callable":"conformance::echo","arguments":"x"}}]"#
        ),
        format!(r#"42/rpc,["cancel",{{"call_id":"{running}"}}]"#),
        r#"42/rpc,["call"]"#.to_owned(),
        r#"42/rpc,["resume",{"call_ids":["x"]}]"#.to_owned(),
    ];
    for text in texts {
        case.alive(&mut host).await?;
        let before = host.events_so_far("/rpc").len();
        host.send_text(&text).await?;
        case.alive(&mut host)
            .await
            .map_err(|stop| stop.in_case_of(&text))?;
        let events = host.events_so_far("/rpc").len();
        equal(
            "AGX-RPC-008",
            &format!("events after {text}"),
            &(before + 1),
            &events,
        )?;
    }
    host.no_outcome("AGX-RPC-008", &id)?;
    host.cancel(&running).await?;
    host.outcome(&running).await?.cancelled("AGX-CALL-051")
}

async fn unknown_event(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let payload = messages::call(&fresh_id(), "conformance::echo", &args([Value::Int(1)]));
    for event in ["Call", "call2", "call:result", "call:error", "ping"] {
        silence(&case, &mut host, "AGX-RPC-002", event, event, &payload).await?;
    }
    Ok(())
}

async fn cancel_and_ack(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let (running, held) = (fresh_id(), fresh_id());
    host.call(&held, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&held)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    host.call(&running, "conformance::sleep", &args([Value::Float(60.0)]))
        .await?;
    let payloads = [
        map([]),
        map([("call_id", Msg::Nil)]),
        map([("call_id", Msg::Int(1))]),
        map([("call_id", text(""))]),
        map([("call_id", bin(held.as_bytes()))]),
        map([("call_id", Msg::Array(vec![text(&held), text(&running)]))]),
        map([("call_id", text(&fresh_id()))]),
    ];
    for payload in payloads {
        for event in ["cancel", "ack"] {
            case.alive(&mut host).await?;
            let before = host.events_so_far("/rpc").len();
            host.emit("/rpc", event, &payload.bytes()).await?;
            case.alive(&mut host).await?;
            equal(
                "AGX-RPC-050",
                "events",
                &(before + 1),
                &host.events_so_far("/rpc").len(),
            )?;
        }
    }
    host.resume(&[&held]).await?;
    host.outcome(&held)
        .await?
        .is("AGX-RPC-050", &Value::Int(1))?;
    host.no_outcome("AGX-RPC-050", &running)?;
    host.cancel(&running).await?;
    host.outcome(&running).await?.cancelled("AGX-CALL-051")
}

async fn resume(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    host.call(&id, "conformance::echo", &args([Value::Int(1)]))
        .await?;
    host.outcome(&id)
        .await?
        .is("AGX-CALL-020", &Value::Int(1))?;
    let ignored = [
        map([]),
        map([("call_ids", Msg::Nil)]),
        map([("call_ids", text(&id))]),
        map([("call_ids", map([(&id, Msg::Nil)]))]),
        map([("call_ids", Msg::Array(vec![]))]),
        map([(
            "call_ids",
            Msg::Array(vec![Msg::Nil, Msg::Int(1), bin(id.as_bytes())]),
        )]),
        map([("call_id", text(&id))]),
    ];
    for payload in ignored {
        case.alive(&mut host).await?;
        let before = host.events_so_far("/rpc").len();
        host.emit("/rpc", "resume", &payload.bytes()).await?;
        case.alive(&mut host).await?;
        equal(
            "AGX-RPC-051",
            "events",
            &(before + 1),
            &host.events_so_far("/rpc").len(),
        )?;
    }
    let unknown = fresh_id();
    let mixed = [
        Msg::Int(1),
        text(&unknown),
        Msg::Nil,
        text(&id),
        Msg::Array(vec![text(&id)]),
        text(&unknown),
    ];
    host.emit(
        "/rpc",
        "resume",
        &map([("call_ids", Msg::Array(mixed.into()))]).bytes(),
    )
    .await?;
    for expected in [&unknown, &id, &unknown] {
        let terminal = host.next_outcome().await?;
        equal(
            "AGX-RPC-052",
            "call_id of the next answer",
            expected,
            &terminal.call_id,
        )?;
    }
    case.alive(&mut host).await
}

async fn forms(case: RuntimeCase) -> Verdict {
    let mut host = case.host().await?;
    let id = fresh_id();
    let pickle = args([Value::Int(6)]);
    // map 32, str 8 and str 16, bin 32, keys backwards, and a `call_id` before the one that counts.
    let mut body = vec![0xdf, 0, 0, 0, 4];
    body.extend(b"\xda\x00\x07call_id\xa5first");
    body.extend(b"\xd9\x09arguments\xc6");
    body.extend((pickle.len() as u32).to_be_bytes());
    body.extend_from_slice(&pickle);
    body.extend(b"\xd9\x08callable\xda\x00\x11conformance::echo");
    body.extend(b"\xa7call_id\xd9\x20");
    body.extend_from_slice(id.as_bytes());
    host.emit("/rpc", "call", &body).await?;
    host.outcome(&id).await?.is("AGX-COD-010", &Value::Int(6))?;
    case.alive(&mut host).await?;
    host.no_outcome("AGX-COD-016", "first")
}
