//! Role worker: framing, unknown frames, standard streams and the end of the process.

use rustix::process::Signal;

use crate::case::cases;
use crate::context::{RunningWorker, WorkerCase, fresh_id};
use crate::messages::frame;
use crate::msgpack::{Msg, map};
use crate::peer::pipe::framed;
use crate::pickle::{Value, args, text};
use crate::verdict::{Verdict, check, equal, equal_bytes};

cases! {
    Worker "worker/start/ready", "`ready` is sent once, in exact bytes",
        ["AGX-PIPE-033", "AGX-PIPE-020"], ready;
    Worker "worker/framing/split", "a frame is read wherever its bytes are split",
        ["AGX-PIPE-004"], split;
    Worker "worker/framing/joined", "several frames in one write",
        ["AGX-PIPE-004"], joined;
    Worker "worker/framing/zero-length", "a length of 0 is ignored",
        ["AGX-PIPE-005"], zero_length;
    Worker "worker/framing/garbage", "a body that does not decode loses that frame alone",
        ["AGX-PIPE-006", "AGX-COD-011", "AGX-COD-012", "AGX-COD-013", "AGX-COD-014", "AGX-COD-015"], garbage;
    Worker "worker/framing/not-a-map", "a body that is no map loses that frame alone",
        ["AGX-PIPE-006"], not_a_map;
    Worker "worker/framing/type", "a frame of unknown, missing or mistyped `type` is ignored",
        ["AGX-PIPE-012", "AGX-VER-008"], unknown_type;
    Worker "worker/framing/over-long", "a length above the limit ends the worker with status 1",
        ["AGX-PIPE-008"], over_long;
    Worker "worker/framing/declared-length", "a length that is allowed takes no answer and no life before its bytes come",
        ["AGX-PIPE-009", "AGX-PIPE-011"], declared_length;
    Worker "worker/framing/hostile-counts", "counts that the bytes do not hold lose the frame alone",
        ["AGX-COD-020", "AGX-PIPE-006", "AGX-LIM-006"], hostile_counts;
    Worker "worker/framing/deep", "nesting above 1,024 loses the frame alone, 1,024 and less are read",
        ["AGX-COD-017", "AGX-COD-021"], deep;
    Worker "worker/streams/print", "what functions print is kept off the pipe",
        ["AGX-WRK-001"], print;
    Worker "worker/streams/child", "what child processes print is kept off the pipe",
        ["AGX-WRK-001"], child;
    Worker "worker/inbound/unopened", "an event for a namespace that is not open is no reason to fail",
        ["AGX-PIPE-020", "AGX-WRK-002"], inbound;
    Worker "worker/stop/shutdown", "`shutdown` ends an idle worker with status 0",
        ["AGX-WRK-050"], shutdown;
    Worker "worker/stop/shutdown-answers-first", "what was answered before `shutdown` is sent, and later frames are not taken",
        ["AGX-WRK-050"], shutdown_answers_first;
    Worker "worker/stop/shutdown-busy", "`shutdown` does not wait for functions, and answers no call as cancelled",
        ["AGX-WRK-054", "AGX-WRK-051", "AGX-WRK-050"], shutdown_busy;
    Worker "worker/stop/end-of-input", "the end of input between two frames ends the worker with status 0",
        ["AGX-PIPE-011", "AGX-WRK-055"], end_of_input;
    Worker "worker/stop/end-inside-frame", "the end of input inside a frame ends the worker",
        ["AGX-WRK-055"], end_inside_frame;
    Worker "worker/stop/broken-output", "a runtime that reads no more ends the worker",
        ["AGX-WRK-055"], broken_output;
    Worker "worker/stop/exit", "a function that ends the process takes its exit status along",
        ["AGX-WRK-032"], exit;
    Worker "worker/stop/signal", "a worker dies of SIGKILL sent by a function, and answers nothing",
        ["AGX-WRK-032"], killed;
}

async fn ready(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    worker.alive().await?;
    let sent = worker
        .pipe
        .history()
        .iter()
        .filter(|frame| frame.kind == "ready");
    let sent: Vec<_> = sent.cloned().collect();
    equal("AGX-PIPE-033", "how many `ready`", &1, &sent.len())?;
    equal_bytes("AGX-PIPE-020", "frame", &frame::ready(), &sent[0].body)
}

async fn split(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    let body = frame::call(&id, "conformance::echo", &args([Value::Int(1)]), Msg::Nil);
    for byte in framed(&body) {
        worker.pipe.send_raw(&[byte]).await?;
    }
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-PIPE-004", &Value::Int(1))?;
    for at in [1, 2, 3, 4, 5, 40] {
        let id = fresh_id();
        let body = frame::call(&id, "conformance::echo", &args([Value::Int(at)]), Msg::Nil);
        let whole = framed(&body);
        let (head, tail) = whole.split_at(at as usize);
        worker.pipe.send_raw(head).await?;
        // Lets the worker read the first piece alone; either way the frame is one.
        tokio::task::yield_now().await;
        worker.pipe.send_raw(tail).await?;
        worker
            .pipe
            .outcome(&id)
            .await?
            .is("AGX-PIPE-004", &Value::Int(at))?;
    }
    Ok(())
}

async fn joined(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let ids: Vec<_> = (0..20).map(|_| fresh_id()).collect();
    let frames = ids.iter().enumerate().flat_map(|(number, id)| {
        let arguments = args([Value::Int(number as i64)]);
        framed(&frame::call(id, "conformance::echo", &arguments, Msg::Nil))
    });
    let frames: Vec<u8> = frames.collect();
    worker.pipe.send_raw(&frames).await?;
    for (number, id) in ids.iter().enumerate() {
        worker
            .pipe
            .outcome(id)
            .await?
            .is("AGX-PIPE-004", &Value::Int(number as i64))?;
    }
    Ok(())
}

async fn zero_length(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    worker.alive().await?;
    worker.pipe.send_raw(&[0; 4]).await?;
    worker.alive().await?;
    worker.pipe.send_raw(&[0; 40]).await?;
    worker.alive().await
}

/// Sends a body in which a well-formed call is hidden behind a fault, and checks that nothing ran.
async fn lost(
    worker: &mut RunningWorker,
    requirement: &'static str,
    what: &str,
    body: &[u8],
) -> Verdict {
    worker.alive().await?;
    let before = answers(worker);
    worker.pipe.send(body).await?;
    worker.alive().await.map_err(|stop| stop.in_case_of(what))?;
    // One answer more: that to the probe.
    equal(
        requirement,
        &format!("answers after {what}"),
        &(before + 1),
        &answers(worker),
    )
}

fn answers(worker: &RunningWorker) -> usize {
    let frames = worker.pipe.history().iter();
    frames
        .filter(|frame| matches!(&*frame.kind, "result" | "error"))
        .count()
}

async fn garbage(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let call = frame::call(
        &fresh_id(),
        "conformance::echo",
        &args([Value::Int(1)]),
        Msg::Nil,
    );
    let with_key = |key: &[u8]| {
        // A sixth entry whose key is wrong.
        let mut body = call.clone();
        body[0] += 1;
        body.extend_from_slice(key);
        body.push(0xc0);
        body
    };
    let bodies = [
        ("the byte c1", vec![0xc1]),
        ("a call cut short", call[..call.len() - 1].to_vec()),
        ("a call and one byte more", [&call[..], &[0xc0]].concat()),
        ("two calls in one frame", [&call[..], &call[..]].concat()),
        ("an int key", with_key(&[0x01])),
        ("a nil key", with_key(&[0xc0])),
        ("an array key", with_key(&[0x90])),
        ("a str that is not UTF-8", with_key(&[0xa1, 0xff])),
        ("an overlong encoding", with_key(&[0xa2, 0xc0, 0x80])),
        ("a surrogate", with_key(&[0xa3, 0xed, 0xa0, 0x80])),
        ("c1 as a value", [&[0x81, 0xa1, b'x', 0xc1][..]].concat()),
        (
            "random bytes",
            (0..200).map(|_| fastrand::u8(0xc1..0xca)).collect(),
        ),
    ];
    for (what, body) in bodies {
        lost(&mut worker, "AGX-PIPE-006", what, &body).await?;
    }
    Ok(())
}

async fn not_a_map(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let array = Msg::Array(vec![
        crate::msgpack::text("type"),
        crate::msgpack::text("call"),
    ]);
    let bodies = [
        ("nil", Msg::Nil.bytes()),
        ("an int", Msg::Int(1).bytes()),
        ("a str", crate::msgpack::text("call").bytes()),
        ("an array", array.bytes()),
        ("an extension", vec![0xd4, 0x05, 0x00]),
    ];
    for (what, body) in bodies {
        lost(&mut worker, "AGX-PIPE-006", what, &body).await?;
    }
    Ok(())
}

async fn unknown_type(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    let Msg::Map(fields) = map([
        ("call_id", crate::msgpack::text(&id)),
        ("callable", crate::msgpack::text("conformance::echo")),
        ("arguments", crate::msgpack::bin(&args([Value::Int(1)]))),
        ("context", Msg::Nil),
    ]) else {
        unreachable!()
    };
    let kinds = [
        ("no type", None),
        ("a nil type", Some(Msg::Nil)),
        ("an int type", Some(Msg::Int(0))),
        ("a bin type", Some(crate::msgpack::bin(b"call"))),
        ("an unknown type", Some(crate::msgpack::text("call2"))),
        ("a type of another case", Some(crate::msgpack::text("Call"))),
        (
            "a frame for the runtime",
            Some(crate::msgpack::text("ready")),
        ),
    ];
    for (what, kind) in kinds {
        let mut entries: Vec<_> = kind
            .map(|kind| (crate::msgpack::text("type"), kind))
            .into_iter()
            .collect();
        entries.extend(fields.iter().cloned());
        lost(
            &mut worker,
            "AGX-PIPE-012",
            what,
            &Msg::Map(entries).bytes(),
        )
        .await?;
    }
    Ok(())
}

async fn over_long(case: WorkerCase) -> Verdict {
    for length in [268_435_457_u32, u32::MAX] {
        let mut worker = case.ready().await?;
        worker.alive().await?;
        worker.pipe.send_raw(&length.to_le_bytes()).await?;
        worker.exits("AGX-PIPE-008", 1).await?;
    }
    Ok(())
}

async fn declared_length(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    worker
        .call(&id, "conformance::sleep", &args([Value::Float(0.1)]))
        .await?;
    // 256 MiB are announced; what runs already ends all the same.
    worker.pipe.send_raw(&268_435_456_u32.to_le_bytes()).await?;
    worker.pipe.send_raw(&[0x85]).await?;
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-PIPE-009", &Value::Float(0.1))
}

async fn hostile_counts(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
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
        (
            "an array of 64 k",
            &[0x81, 0xa1, b'x', 0xdc, 0xff, 0xff, 0x90],
        ),
    ];
    for (what, body) in bodies {
        lost(&mut worker, "AGX-COD-020", what, body).await?;
    }
    Ok(())
}

async fn deep(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    // The frame's map is one level; its entry `x` holds the rest.
    let nested = |levels: usize| {
        let id = fresh_id();
        let mut body = frame::call(&id, "conformance::echo", &args([Value::Int(9)]), Msg::Nil);
        body[0] += 1;
        body.extend(b"\xa1x");
        body.extend(std::iter::repeat_n(0x91, levels - 1));
        body.push(0xc0);
        (id, body)
    };
    let (id, body) = nested(1024);
    worker.pipe.send(&body).await?;
    worker
        .pipe
        .outcome(&id)
        .await?
        .is("AGX-COD-017", &Value::Int(9))?;
    for levels in [1025, 100_000] {
        let what = format!("nesting {levels} deep");
        lost(&mut worker, "AGX-COD-017", &what, &nested(levels).1).await?;
    }
    Ok(())
}

async fn print(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    // As the bytes of a frame it would be one; as text on the pipe it would break the framing.
    let hostile = text("\u{c}\u{0}\u{0}\u{0}\u{81}\u{a4}type\u{a5}ready");
    for stream in ["stdout", "stderr"] {
        for line in [hostile.clone(), text("plain"), text(&"x".repeat(70_000))] {
            let came = worker.value_of("print_text", [line, text(stream)]).await?;
            equal(
                "AGX-WRK-001",
                "the value of print_text",
                &Value::None,
                &came,
            )?;
            worker.alive().await?;
        }
    }
    Ok(())
}

async fn child(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    for _ in 0..2 {
        let came = worker
            .value_of("print_child", [text("from a child")])
            .await?;
        equal(
            "AGX-WRK-001",
            "the exit status of the child",
            &Value::Int(0),
            &came,
        )?;
        worker.alive().await?;
    }
    Ok(())
}

async fn inbound(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    worker.alive().await?;
    let integer_key = [0x81, 0x01, 0xd4, 0x05, 0x00];
    for data in [&[0xc0][..], &integer_key] {
        worker
            .pipe
            .send(&frame::sio_inbound("/nobody", "hello", data))
            .await?;
        worker.alive().await?;
    }
    // Streams answer to older peers, which state no `_sid`.
    for namespace in ["/log", "/trace"] {
        let resume = map([("since_seq", Msg::Int(0))]).bytes();
        worker
            .pipe
            .send(&frame::sio_inbound(namespace, "_resume", &resume))
            .await?;
        worker
            .pipe
            .send(&frame::sio_inbound(
                namespace,
                "_ack",
                &map([("seq", Msg::Int(1))]).bytes(),
            ))
            .await?;
        worker.alive().await?;
    }
    Ok(())
}

async fn shutdown(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    worker.alive().await?;
    worker.pipe.send(&frame::shutdown()).await?;
    worker.exits("AGX-WRK-050", 0).await
}

async fn shutdown_answers_first(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let (id, late) = (fresh_id(), fresh_id());
    let size = Value::Int(1 << 20);
    worker.call(&id, "conformance::blob", &args([size])).await?;
    worker.pipe.outcome(&id).await?.value("AGX-WRK-050")?;
    let call = framed(&frame::call(
        &late,
        "conformance::echo",
        &args([Value::None]),
        Msg::Nil,
    ));
    // In one write, so that the call is there before the worker can have exited.
    worker
        .pipe
        .send_raw(&[framed(&frame::shutdown()), call].concat())
        .await?;
    worker.exits("AGX-WRK-050", 0).await?;
    worker.pipe.terminals("AGX-WRK-050", &late, 0)
}

async fn shutdown_busy(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let (asleep, blocked) = (fresh_id(), fresh_id());
    let long = Value::Float(600.0);
    worker
        .call(&asleep, "conformance::sleep", &args([long.clone()]))
        .await?;
    worker
        .call(&blocked, "conformance::block", &args([long]))
        .await?;
    worker.alive().await?;
    worker.pipe.send(&frame::shutdown()).await?;
    worker.exits("AGX-WRK-054", 0).await?;
    worker.pipe.terminals("AGX-WRK-051", &asleep, 0)?;
    worker.pipe.terminals("AGX-WRK-051", &blocked, 0)
}

async fn end_of_input(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    worker.alive().await?;
    worker.pipe.close().await;
    worker.exits("AGX-PIPE-011", 0).await
}

async fn end_inside_frame(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    worker.alive().await?;
    worker.pipe.send_raw(&[100, 0, 0, 0, 0x85]).await?;
    worker.pipe.close().await;
    worker.pipe.end().await?;
    ended(&mut worker, &case).await
}

async fn broken_output(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    worker.alive().await?;
    worker.pipe.stop_reading();
    // It notices when it writes.
    worker
        .call(
            &fresh_id(),
            "conformance::blob",
            &args([Value::Int(1 << 20)]),
        )
        .await?;
    ended(&mut worker, &case).await
}

async fn ended(worker: &mut RunningWorker, case: &WorkerCase) -> Verdict {
    let wait = case.wire.clock.stop();
    let ended = worker.process.exited(wait).await;
    check(
        ended.is_some(),
        "AGX-WRK-055",
        "the end of the process",
        "it runs on",
    )
}

async fn exit(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let id = fresh_id();
    worker
        .call(&id, "conformance::exit", &args([Value::Int(3)]))
        .await?;
    worker.exits("AGX-WRK-032", 3).await?;
    worker.pipe.terminals("AGX-WRK-032", &id, 0)
}

async fn killed(case: WorkerCase) -> Verdict {
    let mut worker = case.ready().await?;
    let number = i64::from(Signal::KILL.as_raw());
    worker
        .call(
            &fresh_id(),
            "conformance::signal",
            &args([Value::Int(number)]),
        )
        .await?;
    worker.pipe.end().await?;
    let ended = worker.process.exited(case.wire.clock.stop()).await;
    let signal = ended.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status));
    equal(
        "AGX-WRK-032",
        "the signal that ended the process",
        &Some(9),
        &signal,
    )
}
