//! Role runtime, the suite playing its worker: bytes on the pipe that are wrong, or oddly cut.

use crate::case::cases;
use crate::context::{ScriptedCase, fresh_id};
use crate::messages::frame;
use crate::msgpack::{Msg, bin, map, text};
use crate::peer::pipe::framed;
use crate::pickle::{Value, args};
use crate::verdict::{Verdict, equal};

cases! {
    Scripted "runtime/framing/split", "a frame is read wherever its bytes are split",
        ["AGX-PIPE-004"], split;
    Scripted "runtime/framing/joined", "several frames in one write",
        ["AGX-PIPE-004"], joined;
    Scripted "runtime/framing/zero-length", "a length of 0 is ignored",
        ["AGX-PIPE-005"], zero_length;
    Scripted "runtime/framing/garbage", "a body that does not decode loses that frame alone",
        ["AGX-PIPE-006", "AGX-COD-011", "AGX-COD-012", "AGX-COD-013", "AGX-COD-014", "AGX-COD-015"], garbage;
    Scripted "runtime/framing/not-a-map", "a body that is no map loses that frame alone",
        ["AGX-PIPE-006"], not_a_map;
    Scripted "runtime/framing/type", "a frame of unknown, missing or mistyped `type` is ignored",
        ["AGX-PIPE-012"], unknown_type;
    Scripted "runtime/framing/unknown-keys", "unknown keys, any order and any form are read",
        ["AGX-PIPE-013", "AGX-COD-010"], unknown_keys;
    Scripted "runtime/framing/over-long", "a length above the limit is a lost pipe: WorkerDied, and the worker is ended",
        ["AGX-PIPE-007", "AGX-CALL-070", "AGX-PIPE-040", "AGX-PIPE-041"], over_long;
    Scripted "runtime/framing/declared-length", "a length that is allowed holds nothing up before its bytes come",
        ["AGX-PIPE-009", "AGX-LIM-006"], declared_length;
    Scripted "runtime/framing/end-inside-frame", "the end of the output inside a frame is a lost pipe",
        ["AGX-PIPE-010", "AGX-CALL-070"], end_inside_frame;
}

async fn split(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    for byte in framed(&frame::result(&id, &Value::Int(1).dump())) {
        worker.pipe.send_raw(&[byte]).await?;
    }
    host.outcome(&id)
        .await?
        .is("AGX-PIPE-004", &Value::Int(1))?;
    for at in [1, 2, 3, 4, 5, 30] {
        let id = case.call(&mut host, &mut worker).await?;
        let whole = framed(&frame::result(&id, &Value::Int(2).dump()));
        let (head, tail) = whole.split_at(at);
        worker.pipe.send_raw(head).await?;
        // What the runtime answers here it answers with the first piece at hand.
        host.fence().await?;
        worker.pipe.send_raw(tail).await?;
        host.outcome(&id)
            .await?
            .is("AGX-PIPE-004", &Value::Int(2))?;
    }
    Ok(())
}

async fn joined(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, first) = case.running().await?;
    let mut ids = vec![first];
    for _ in 0..9 {
        ids.push(case.call(&mut host, &mut worker).await?);
    }
    let frames = ids
        .iter()
        .flat_map(|id| framed(&frame::result(id, &Value::Int(1).dump())));
    let frames: Vec<u8> = frames.collect();
    worker.pipe.send_raw(&frames).await?;
    for id in &ids {
        host.outcome(id).await?.is("AGX-PIPE-004", &Value::Int(1))?;
    }
    Ok(())
}

async fn zero_length(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    worker.pipe.send_raw(&[0; 4]).await?;
    worker.pipe.send_raw(&[0; 40]).await?;
    case.alive(&mut host, &mut worker).await?;
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(1).dump()))
        .await?;
    host.outcome(&id).await?.is("AGX-PIPE-005", &Value::Int(1))
}

/// Sends bodies that have to be lost alone: the running call is not ended by them, and goes on.
async fn each_lost(
    mut case: ScriptedCase,
    requirement: &'static str,
    bodies: impl Fn(&str) -> Vec<(&'static str, Vec<u8>)>,
) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    for (what, body) in bodies(&id) {
        case.alive(&mut host, &mut worker).await?;
        worker.pipe.send(&body).await?;
        case.alive(&mut host, &mut worker)
            .await
            .map_err(|stop| stop.in_case_of(what))?;
        host.no_outcome(requirement, &id)
            .map_err(|stop| stop.in_case_of(what))?;
    }
    worker
        .pipe
        .send(&frame::result(&id, &Value::Int(1).dump()))
        .await?;
    host.outcome(&id).await?.is(requirement, &Value::Int(1))?;
    equal("AGX-PIPE-031", "workers started", &1, &case.board.workers)
}

async fn garbage(case: ScriptedCase) -> Verdict {
    each_lost(case, "AGX-PIPE-006", |id| {
        let result = frame::result(id, &Value::Int(9).dump());
        let with_key = |key: &[u8]| {
            let mut body = result.clone();
            body[0] += 1;
            body.extend_from_slice(key);
            body.push(0xc0);
            body
        };
        vec![
            ("the byte c1", vec![0xc1]),
            ("a result cut short", result[..result.len() - 1].to_vec()),
            (
                "a result and one byte more",
                [&result[..], &[0xc0]].concat(),
            ),
            (
                "two results in one frame",
                [&result[..], &result[..]].concat(),
            ),
            ("an int key", with_key(&[0x01])),
            ("a nil key", with_key(&[0xc0])),
            ("an array key", with_key(&[0x90])),
            ("a str that is not UTF-8", with_key(&[0xa1, 0xff])),
            ("an overlong encoding", with_key(&[0xa2, 0xc0, 0x80])),
            (
                "an array of 4 G",
                vec![0x81, 0xa1, b'x', 0xdd, 0xff, 0xff, 0xff, 0xff],
            ),
            (
                "a bin of 4 GB",
                vec![0x81, 0xa1, b'x', 0xc6, 0xff, 0xff, 0xff, 0xff],
            ),
            (
                "a million arrays in each other",
                [&[0x81, 0xa1, b'x'][..], &vec![0x91; 1_000_000], &[0xc0]].concat(),
            ),
        ]
    })
    .await
}

async fn not_a_map(case: ScriptedCase) -> Verdict {
    each_lost(case, "AGX-PIPE-006", |_| {
        vec![
            ("nil", Msg::Nil.bytes()),
            ("an int", Msg::Int(1).bytes()),
            ("a str", text("result").bytes()),
            (
                "an array",
                Msg::Array(vec![text("type"), text("result")]).bytes(),
            ),
            ("an extension", vec![0xd4, 0x05, 0x00]),
        ]
    })
    .await
}

async fn unknown_type(case: ScriptedCase) -> Verdict {
    each_lost(case, "AGX-PIPE-012", |id| {
        let with = |kind: Option<Msg>| {
            let mut entries: Vec<_> = kind.map(|kind| (text("type"), kind)).into_iter().collect();
            entries.push((text("call_id"), text(id)));
            entries.push((text("value"), bin(&Value::Int(9).dump())));
            Msg::Map(entries).bytes()
        };
        vec![
            ("no type", with(None)),
            ("a nil type", with(Some(Msg::Nil))),
            ("an int type", with(Some(Msg::Int(0)))),
            ("a bin type", with(Some(bin(b"result")))),
            ("an unknown type", with(Some(text("result2")))),
            ("a type of another case", with(Some(text("Result")))),
            ("a frame for the worker", with(Some(text("call")))),
            ("shutdown", with(Some(text("shutdown")))),
            ("a second ready", frame::ready()),
        ]
    })
    .await
}

async fn unknown_keys(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, first) = case.running().await?;
    let body = map([
        ("later", Msg::Array(vec![Msg::Nil])),
        ("value", bin(&Value::Int(1).dump())),
        ("call_id", text(&first)),
        ("type", text("result")),
        ("v", Msg::Int(2)),
    ]);
    worker.pipe.send(&body.bytes()).await?;
    host.outcome(&first)
        .await?
        .is("AGX-PIPE-013", &Value::Int(1))?;
    let id = case.call(&mut host, &mut worker).await?;
    // map 32, str 8, bin 32.
    let value = Value::Int(2).dump();
    let mut body = vec![0xdf, 0, 0, 0, 3];
    body.extend(b"\xd9\x04type\xd9\x06result\xd9\x07call_id\xd9\x20");
    body.extend_from_slice(id.as_bytes());
    body.extend(b"\xd9\x05value\xc6\x00\x00\x00");
    body.push(value.len() as u8);
    body.extend_from_slice(&value);
    worker.pipe.send(&body).await?;
    host.outcome(&id).await?.is("AGX-COD-010", &Value::Int(2))
}

async fn over_long(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    let (mut other, two) = (case.runtime.host().await?, fresh_id());
    other.call(&two, "app::run", &args([])).await?;
    worker.pipe.frame("call").await?;
    worker.pipe.send_raw(&268_435_457_u32.to_le_bytes()).await?;
    host.outcome(&id)
        .await?
        .plain_error_of("AGX-PIPE-007", "WorkerDied")?;
    other
        .outcome(&two)
        .await?
        .plain_error_of("AGX-PIPE-007", "WorkerDied")?;
    // The process is ended by the runtime: the suite loses its end of the pipe.
    worker.pipe.end().await?;
    let id = fresh_id();
    host.call(&id, "app::run", &args([])).await?;
    let mut second = case.ready_worker().await?;
    crate::context::call_arrives(&mut second, &id).await?;
    second
        .pipe
        .send(&frame::result(&id, &Value::Int(2).dump()))
        .await?;
    host.outcome(&id).await?.is("AGX-PIPE-041", &Value::Int(2))
}

async fn declared_length(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    worker.pipe.send_raw(&268_435_456_u32.to_le_bytes()).await?;
    worker.pipe.send_raw(&[0x83, 0xa4]).await?;
    host.fence().await?;
    host.no_outcome("AGX-PIPE-009", &id)?;
    host.cancel(&id).await?;
    host.outcome(&id).await?.cancelled("AGX-PIPE-009")?;
    worker.pipe.frame("cancel").await.map(|_| ())
}

async fn end_inside_frame(mut case: ScriptedCase) -> Verdict {
    let (mut host, mut worker, id) = case.running().await?;
    worker.pipe.send_raw(&[100, 0, 0, 0, 0x83, 0xa4]).await?;
    worker.exit(6).await?;
    let error = host
        .outcome(&id)
        .await?
        .plain_error_of("AGX-PIPE-010", "WorkerDied")?;
    equal("AGX-CALL-071", "returncode", &Some(6), &error.returncode)
}
