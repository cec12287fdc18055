//! What a worker owes its runtime, as far as its dispatcher decides it.

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::frame::{FromWorker, ToWorker};
use agentix_protocol::framing::FrameTooLong;
use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::message::Outcome;
use agentix_protocol::worker::{Dispatcher, EXIT_ORDERLY, EXIT_PIPE_LOST, WorkerOutput};
use bytes::Bytes;

use crate::messages::{call, cancelled, id, value};

fn drain(worker: &mut Dispatcher) -> Vec<WorkerOutput> {
    std::iter::from_fn(|| worker.poll_output()).collect()
}

fn feed(worker: &mut Dispatcher, frame: &ToWorker) -> Vec<WorkerOutput> {
    worker.frame(&frame.encode().into());
    drain(worker)
}

fn write(frame: &FromWorker) -> WorkerOutput {
    WorkerOutput::Write(frame.encode().into())
}

fn started() -> Dispatcher {
    let mut worker = Dispatcher::new(1);
    drain(&mut worker);
    worker
}

#[test]
fn agx_pipe_008_a_length_above_the_limit_ends_the_worker_with_1() {
    let mut worker = started();
    let error = FrameTooLong {
        len: 1 << 30,
        limit: 1 << 28,
    };
    worker.pipe_lost(error);
    assert_eq!(
        drain(&mut worker).last(),
        Some(&WorkerOutput::Exit(EXIT_PIPE_LOST))
    );
    assert_eq!(EXIT_PIPE_LOST, 1);
}

#[test]
fn agx_pipe_011_the_end_of_input_ends_the_worker_with_0() {
    let mut worker = started();
    worker.stop();
    assert_eq!(drain(&mut worker), [WorkerOutput::Exit(EXIT_ORDERLY)]);
    assert_eq!(EXIT_ORDERLY, 0);
}

#[test]
fn agx_pipe_033_ready_is_sent_once() {
    let mut worker = Dispatcher::new(1);
    assert_eq!(drain(&mut worker), [write(&FromWorker::Ready)]);
    assert_eq!(
        feed(&mut worker, &ToWorker::Call(call(1))),
        [WorkerOutput::Start(call(1))]
    );
}

#[test]
fn agx_wrk_010_a_call_gets_one_terminal_frame() {
    let mut worker = started();
    feed(&mut worker, &ToWorker::Call(call(1)));
    worker.finished(&id(1), value(1).result);
    assert_eq!(drain(&mut worker), [write(&FromWorker::Outcome(value(1)))]);
    worker.finished(&id(1), value(1).result);
    assert_eq!(drain(&mut worker), []);
}

#[test]
fn agx_wrk_011_an_id_runs_once() {
    let mut worker = started();
    feed(&mut worker, &ToWorker::Call(call(1)));
    let starts = |outputs: Vec<WorkerOutput>| {
        outputs
            .iter()
            .filter(|output| matches!(output, WorkerOutput::Start(_) | WorkerOutput::Write(_)))
            .count()
    };
    assert_eq!(starts(feed(&mut worker, &ToWorker::Call(call(1)))), 0);
    worker.finished(&id(1), value(1).result);
    drain(&mut worker);
    assert_eq!(starts(feed(&mut worker, &ToWorker::Call(call(1)))), 0);
}

#[test]
fn agx_wrk_012_a_malformed_call_is_answered() {
    let mut worker = started();
    let mut answer = |body: &'static [u8]| {
        worker.frame(&Bytes::from_static(body));
        let outputs = drain(&mut worker);
        let [WorkerOutput::Write(body), WorkerOutput::Notice(_)] = &outputs[..] else {
            panic!("{outputs:?}")
        };
        FromWorker::decode(body).unwrap()
    };
    // {"type": "call", "call_id": "c"}
    let FromWorker::Outcome(outcome) = answer(b"\x82\xa4type\xa4call\xa7call_id\xa1c") else {
        panic!()
    };
    let error = outcome.result.unwrap_err();
    assert_eq!(error.error_type, ErrorType::BadRequest);
    // {"type": "call", "call_id": 7}
    let FromWorker::Rejected(error) = answer(b"\x82\xa4type\xa4call\xa7call_id\x07") else {
        panic!()
    };
    assert_eq!(error.error_type, ErrorType::BadRequest);
}

#[test]
fn agx_wrk_019_a_result_above_the_limit_fails_its_call_alone() {
    let mut worker = started();
    feed(&mut worker, &ToWorker::Call(call(1)));
    feed(&mut worker, &ToWorker::Call(call(2)));
    worker.finished(&id(1), Ok(vec![0; MAX_MESSAGE_BYTES].into()));
    let outputs = drain(&mut worker);
    let [WorkerOutput::Write(body)] = &outputs[..] else {
        panic!("{} outputs", outputs.len())
    };
    let Ok(FromWorker::Outcome(Outcome { call_id, result })) = FromWorker::decode(body) else {
        panic!()
    };
    assert_eq!(call_id, id(1));
    assert_eq!(result.unwrap_err().error_type, ErrorType::FrameTooLarge);
    worker.finished(&id(2), value(2).result);
    assert_eq!(drain(&mut worker), [write(&FromWorker::Outcome(value(2)))]);
}

#[test]
fn agx_wrk_040_a_cancel_is_answered_at_once() {
    let mut worker = started();
    feed(&mut worker, &ToWorker::Call(call(1)));
    assert_eq!(
        feed(&mut worker, &ToWorker::Cancel(id(1))),
        [
            write(&FromWorker::Outcome(cancelled(1))),
            WorkerOutput::Abort(id(1))
        ]
    );
}

#[test]
fn agx_wrk_043_no_second_terminal_frame() {
    let mut worker = started();
    feed(&mut worker, &ToWorker::Call(call(1)));
    feed(&mut worker, &ToWorker::Cancel(id(1)));
    worker.finished(&id(1), Err(RemoteError::cancelled()));
    assert_eq!(drain(&mut worker), []);
    assert_eq!(feed(&mut worker, &ToWorker::Cancel(id(1))), []);
    assert_eq!(worker.running(), 0);
}

#[test]
fn agx_wrk_044_a_cancel_of_what_does_not_run_is_ignored() {
    let mut worker = started();
    assert_eq!(feed(&mut worker, &ToWorker::Cancel(id(9))), []);
    // It does not close the id.
    assert_eq!(
        feed(&mut worker, &ToWorker::Call(call(9))),
        [WorkerOutput::Start(call(9))]
    );
}

#[test]
fn agx_wrk_050_after_shutdown_nothing_is_taken() {
    let mut worker = started();
    feed(&mut worker, &ToWorker::Call(call(1)));
    assert_eq!(
        feed(&mut worker, &ToWorker::Shutdown),
        [WorkerOutput::Exit(EXIT_ORDERLY)]
    );
    assert_eq!(feed(&mut worker, &ToWorker::Call(call(2))), []);
    worker.stop();
    assert_eq!(drain(&mut worker), []);
}
