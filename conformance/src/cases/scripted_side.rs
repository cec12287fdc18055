//! Role runtime, the suite playing its worker: side channels.

use crate::case::cases;
use crate::context::{ScriptedCase, call_arrives, fresh_id};
use crate::messages::frame;
use crate::msgpack::{Msg, map, text};
use crate::peer::session::{Item, Session};
use crate::pickle::{Value, args};
use crate::verdict::{Verdict, check, equal, equal_bytes};

cases! {
    Scripted "runtime/side/emit", "a worker's event reaches every host on the namespace, and nobody else",
        ["AGX-SIDE-031", "AGX-CON-050", "AGX-CON-051"], emit;
    Scripted "runtime/side/emit-raw", "its payload arrives as the bytes that were sent",
        ["AGX-SIDE-034"], emit_raw;
    Scripted "runtime/side/emit-order", "events and outcomes reach a host in the order of the pipe",
        ["AGX-PIPE-026"], emit_order;
    Scripted "runtime/side/emit-before-ready", "events sent before `ready` are relayed",
        ["AGX-PIPE-034", "AGX-SIDE-031"], emit_before_ready;
    Scripted "runtime/side/forged", "events on `/rpc`, `/` and malformed names are refused",
        ["AGX-PIPE-023", "AGX-CON-044"], forged;
    Scripted "runtime/side/emit-malformed", "a frame whose data is not one msgpack value is lost alone",
        ["AGX-SIDE-035", "AGX-PIPE-006"], emit_malformed;
    Scripted "runtime/side/inbound", "a host's event reaches the worker, byte by byte",
        ["AGX-SIDE-032", "AGX-SIDE-034", "AGX-PIPE-020"], inbound;
    Scripted "runtime/side/inbound-json", "an event in JSON reaches the worker as msgpack",
        ["AGX-SIDE-033"], inbound_json;
    Scripted "runtime/side/inbound-ack", "side-channel events are acked, with and without a worker",
        ["AGX-SIDE-039", "AGX-RPC-064"], inbound_ack;
    Scripted "runtime/side/inbound-held", "events for a namespace that is not open are held, in order",
        ["AGX-SIDE-036"], inbound_held;
    Scripted "runtime/side/inbound-bound", "1,024 events are held, the oldest go first",
        ["AGX-SIDE-036"], inbound_bound;
    Scripted "runtime/side/inbound-malformed", "an event whose payload is not msgpack is dropped",
        ["AGX-SIDE-035", "AGX-CON-058"], inbound_malformed;
    Scripted "runtime/side/reopen", "a new worker has opened nothing",
        ["AGX-SIDE-037", "AGX-SIDE-036"], reopen;
}

/// Payloads that no codec may touch.
fn payloads() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("nil", vec![0xc0]),
        ("an int key", vec![0x81, 0x01, 0xa1, b'v']),
        (
            "a nil and an array key",
            vec![0x82, 0xc0, 0x01, 0x91, 0x02, 0x03],
        ),
        ("extension 1", b"\xd7\x01|u1|2\x00\x01\x02".to_vec()),
        ("a malformed extension 1", vec![0xd4, 0x01, 0x00]),
        ("extension 2", vec![0xd4, 0x02, 0x80]),
        ("a free extension", vec![0xc7, 0x03, 0x63, 1, 2, 3]),
        (
            "longest forms",
            vec![
                0xdf, 0, 0, 0, 1, 0xdb, 0, 0, 0, 1, b'a', 0xd3, 0, 0, 0, 0, 0, 0, 0, 5,
            ],
        ),
        ("a float 32", vec![0xca, 0x3f, 0xc0, 0, 0]),
        ("repeated keys", vec![0x82, 0xa1, b'a', 1, 0xa1, b'a', 2]),
        (
            "a bin of every byte",
            [&[0xc5, 1, 0][..], &(0..=255).collect::<Vec<u8>>()].concat(),
        ),
        (
            "1 MiB",
            [&[0xc6, 0, 0x10, 0, 0][..], &vec![0x1e; 1 << 20]].concat(),
        ),
    ]
}

async fn emit(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    let mut second = case.runtime.host().await?;
    let mut elsewhere = case.runtime.host().await?;
    host.join("/app").await?;
    second.join("/app").await?;
    elsewhere.join("/other").await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    let data = map([("n", Msg::Int(1))]).bytes();
    worker
        .pipe
        .send(&frame::sio_emit("/app", "hello", &data))
        .await?;
    for host in [&mut host, &mut second] {
        let event = host.event("/app").await?;
        let header = r#"451-/app,["hello",{"_placeholder":true,"num":0}]"#;
        equal("AGX-CON-051", "header", &header, &&*event.header)?;
        equal_bytes("AGX-SIDE-031", "payload", &data, &event.payload)?;
    }
    case.alive(&mut elsewhere, &mut worker).await?;
    case.alive(&mut host, &mut worker).await?;
    equal(
        "AGX-SIDE-031",
        "events at a host elsewhere",
        &0,
        &elsewhere.events_so_far("/app").len(),
    )?;
    equal(
        "AGX-SIDE-031",
        "events at a host there",
        &1,
        &host.events_so_far("/app").len(),
    )
}

async fn emit_raw(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    host.join("/app").await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    for (what, data) in payloads() {
        worker
            .pipe
            .send(&frame::sio_emit("/app", "e", &data))
            .await?;
        let event = host
            .event("/app")
            .await
            .map_err(|stop| stop.in_case_of(what))?;
        equal_bytes("AGX-SIDE-034", what, &data, &event.payload)?;
    }
    // A name that needs escaping in JSON arrives as it is.
    let name = "q\"\\\u{1f600}\n";
    worker
        .pipe
        .send(&frame::sio_emit("/app", name, &[0xc0]))
        .await?;
    let event = host.event("/app").await?;
    equal("AGX-SIDE-034", "name", &name, &&*event.name)?;
    case.alive(&mut host, &mut worker).await
}

async fn emit_order(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, first) = case.running().await?;
    host.join("/app").await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    let mut ids = vec![first];
    for _ in 0..19 {
        ids.push(case.call(&mut host, &mut worker).await?);
    }
    for (number, id) in ids.iter().enumerate() {
        let size = if number % 4 == 0 { 100_000 } else { 1 };
        let data = crate::msgpack::bin(&vec![number as u8; size]).bytes();
        worker
            .pipe
            .send(&frame::sio_emit("/app", "before", &data))
            .await?;
        worker
            .pipe
            .send(&frame::result(id, &Value::None.dump()))
            .await?;
    }
    for id in &ids {
        let any = |item: &Item| match item {
            Item::Event(event) => Some(event.clone()),
            _ => None,
        };
        let before = host.wait("an event", any).await?;
        equal(
            "AGX-PIPE-026",
            "namespace of the next event",
            &"/app",
            &&*before.namespace,
        )?;
        let after = host.wait("an event", any).await?;
        equal(
            "AGX-PIPE-026",
            "namespace of the next event",
            &"/rpc",
            &&*after.namespace,
        )?;
        let terminal = crate::outcome::Terminal::read(true, &after.payload)?;
        equal(
            "AGX-PIPE-026",
            "call_id of the next outcome",
            id,
            &terminal.call_id,
        )?;
    }
    Ok(())
}

async fn emit_before_ready(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    host.join("/app").await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut worker = case.worker().await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    worker
        .pipe
        .send(&frame::sio_emit("/app", "early", &[0x05]))
        .await?;
    let event = host.event("/app").await?;
    equal_bytes("AGX-PIPE-034", "payload", &[0x05], &event.payload)?;
    worker.pipe.send(&frame::ready()).await?;
    call_arrives(&mut worker, &id).await
}

async fn forged(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    let long = format!("/{}", "n".repeat(256));
    host.join("/").await?;
    let result = crate::messages::result(&id, &Value::Int(9).dump());
    let before = host.events_so_far("/rpc").len();
    for name in [
        "/rpc", "/", "", "rpc", "app", "/a,b", "/a?b", "/a b", "/a\n", &long,
    ] {
        worker.pipe.send(&frame::sio_open(name)).await?;
        worker
            .pipe
            .send(&frame::sio_emit(name, "call:result", &result))
            .await?;
    }
    case.alive(&mut host, &mut worker).await?;
    host.no_outcome("AGX-PIPE-023", &id)?;
    equal(
        "AGX-PIPE-023",
        "events on /rpc",
        &(before + 1),
        &host.events_so_far("/rpc").len(),
    )?;
    equal(
        "AGX-PIPE-023",
        "events on /",
        &0,
        &host.events_so_far("/").len(),
    )?;
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(1).dump()))
        .await?;
    host.outcome(&id).await?.is("AGX-PIPE-023", &Value::Int(1))
}

async fn emit_malformed(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    host.join("/app").await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    for data in [
        &[0xc1][..],
        &[0x92, 0x01],
        &[0x01, 0x02],
        &[0xdd, 0xff, 0xff, 0xff, 0xff],
    ] {
        worker
            .pipe
            .send(&frame::sio_emit("/app", "bad", data))
            .await?;
        case.alive(&mut host, &mut worker).await?;
    }
    // Missing and mistyped fields, which leave nothing to relay.
    for body in [
        map([
            ("type", text("sio_emit")),
            ("namespace", text("/app")),
            ("data", Msg::Nil),
        ]),
        map([
            ("type", text("sio_emit")),
            ("event", text("x")),
            ("data", Msg::Nil),
        ]),
        map([
            ("type", text("sio_emit")),
            ("namespace", Msg::Int(1)),
            ("event", text("x")),
            ("data", Msg::Nil),
        ]),
        map([("type", text("sio_open"))]),
    ] {
        worker.pipe.send(&body.bytes()).await?;
        case.alive(&mut host, &mut worker).await?;
    }
    equal(
        "AGX-SIDE-035",
        "events on /app",
        &0,
        &host.events_so_far("/app").len(),
    )?;
    worker
        .pipe
        .send(&frame::sio_emit("/app", "good", &[0x01]))
        .await?;
    let event = host.event("/app").await?;
    equal("AGX-SIDE-035", "the next event", &"good", &&*event.name)
}

async fn inbound(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    host.join("/app").await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    for (what, data) in payloads() {
        host.emit("/app", "hello", &data).await?;
        let came = worker
            .pipe
            .frame("sio_inbound")
            .await
            .map_err(|stop| stop.in_case_of(what))?;
        equal_bytes(
            "AGX-SIDE-034",
            what,
            &frame::sio_inbound("/app", "hello", &data),
            &came.body,
        )?;
    }
    case.alive(&mut host, &mut worker).await
}

async fn inbound_json(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    host.join("/app").await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    let events: [(&str, &[u8]); 8] = [
        (r#"["hello",{"a":1}]"#, &[0x81, 0xa1, b'a', 0x01]),
        (r#"["hello"]"#, &[0xc0]),
        (r#"["hello",null,2]"#, &[0xc0]),
        (
            r#"["hello",[true,-1,"x"],"ignored"]"#,
            &[0x93, 0xc3, 0xff, 0xa1, b'x'],
        ),
        (r#"["hello",1.5]"#, &[0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]),
        (r#"["hello",128]"#, &[0xcc, 0x80]),
        (
            r#"["hello",18446744073709551615]"#,
            &[0xcf, 255, 255, 255, 255, 255, 255, 255, 255],
        ),
        (r#"["hello","\u00e9"]"#, &[0xa2, 0xc3, 0xa9]),
    ];
    for (json, data) in events {
        host.send_text(&format!("42/app,{json}")).await?;
        let came = worker
            .pipe
            .frame("sio_inbound")
            .await
            .map_err(|stop| stop.in_case_of(json))?;
        equal_bytes(
            "AGX-SIDE-033",
            json,
            &frame::sio_inbound("/app", "hello", data),
            &came.body,
        )?;
    }
    case.alive(&mut host, &mut worker).await
}

async fn inbound_ack(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    let acked = async |host: &mut Session| {
        for namespace in ["/app", "/log", "/trace"] {
            let ack = host.emit_for_ack(namespace, "hello", &[0xc0]).await?;
            let text = host.acked(namespace, ack).await?;
            equal(
                "AGX-RPC-064",
                "ack",
                &format!("43{namespace},{ack}[]"),
                &text,
            )?;
        }
        host.send_text(r#"42/app,77["hello",{"a":1}]"#).await?;
        host.acked("/app", 77).await
    };
    for namespace in ["/app", "/log", "/trace"] {
        host.join(namespace).await?;
    }
    acked(&mut host).await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut worker = case.ready_worker().await?;
    call_arrives(&mut worker, &id).await?;
    acked(&mut host).await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    acked(&mut host).await?;
    case.alive(&mut host, &mut worker).await
}

/// The bytes of the event with that number.
fn numbered(number: i64) -> Vec<u8> {
    frame::sio_inbound("/app", "e", &Msg::Int(number).bytes())
}

async fn inbound_held(mut case: ScriptedCase) -> Verdict {
    let mut host = case.runtime.host().await?;
    host.join("/app").await?;
    let emit =
        async |host: &mut Session, number| host.emit("/app", "e", &Msg::Int(number).bytes()).await;
    // Before there is a worker, before it is ready, before it opens the namespace, and after.
    emit(&mut host, 1).await?;
    host.fence().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut worker = case.worker().await?;
    emit(&mut host, 2).await?;
    host.fence().await?;
    worker.pipe.send(&frame::ready()).await?;
    call_arrives(&mut worker, &id).await?;
    emit(&mut host, 3).await?;
    case.alive(&mut host, &mut worker).await?;
    let early = worker
        .pipe
        .history()
        .iter()
        .filter(|frame| frame.kind == "sio_inbound")
        .count();
    equal("AGX-SIDE-036", "events before sio_open", &0, &early)?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    for number in 1..=3 {
        let came = worker.pipe.frame("sio_inbound").await?;
        equal_bytes(
            "AGX-SIDE-036",
            "the next event",
            &numbered(number),
            &came.body,
        )?;
    }
    emit(&mut host, 4).await?;
    let came = worker.pipe.frame("sio_inbound").await?;
    equal_bytes("AGX-SIDE-032", "the next event", &numbered(4), &came.body)
}

async fn inbound_bound(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    host.join("/app").await?;
    for number in 1..=1030 {
        host.emit("/app", "e", &Msg::Int(number).bytes()).await?;
    }
    host.fence().await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    for number in 7..=1030 {
        let came = worker.pipe.frame("sio_inbound").await?;
        equal_bytes(
            "AGX-SIDE-036",
            "the next event",
            &numbered(number),
            &came.body,
        )?;
    }
    case.alive(&mut host, &mut worker).await
}

async fn inbound_malformed(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, _) = case.running().await?;
    host.join("/app").await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    for data in [
        &[][..],
        &[0xc1],
        &[0x92, 0x01],
        &[0x01, 0x02],
        &[0xdd, 0xff, 0xff, 0xff, 0xff],
    ] {
        host.emit("/app", "bad", data).await?;
        case.alive(&mut host, &mut worker).await?;
    }
    host.emit("/app", "good", &[0x01]).await?;
    let came = worker.pipe.frame("sio_inbound").await?;
    let good = frame::sio_inbound("/app", "good", &[0x01]);
    equal_bytes("AGX-SIDE-035", "the next event", &good, &came.body)
}

async fn reopen(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    host.join("/app").await?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    case.alive(&mut host, &mut worker).await?;
    worker.exit(0).await?;
    host.outcome(&id)
        .await?
        .error_of("AGX-CALL-070", "WorkerDied")?;
    let next = fresh_id();
    host.call(&next, "app::run", &args([])).await?;
    let mut worker = case.ready_worker().await?;
    call_arrives(&mut worker, &next).await?;
    host.emit("/app", "e", &Msg::Int(1).bytes()).await?;
    case.alive(&mut host, &mut worker).await?;
    let early = worker
        .pipe
        .history()
        .iter()
        .any(|frame| frame.kind == "sio_inbound");
    check(
        !early,
        "AGX-SIDE-037",
        "no event before sio_open",
        "an event",
    )?;
    worker.pipe.send(&frame::sio_open("/app")).await?;
    let came = worker.pipe.frame("sio_inbound").await?;
    equal_bytes("AGX-SIDE-036", "the next event", &numbered(1), &came.body)
}
