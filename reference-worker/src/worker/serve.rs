//! The worker process: frames in, functions run, frames out.

use std::collections::HashMap;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use agentix_protocol::error::RemoteError;
use agentix_protocol::framing::{self, FrameDecoder, FrameTooLong};
use agentix_protocol::ident::CallId;
use agentix_protocol::message::Call;
use agentix_protocol::worker::{Dispatcher, EXIT_PIPE_LOST, WorkerOutput};
use bytes::Bytes;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::caught;
use super::descriptors::Pipe;
use super::group;
use super::registry::{Ended, Function, Registry};
use crate::log;
use crate::names::WORKER_THREADS;
use crate::random;

/// Sync functions that run at a time: 32, as in the Python implementation on a large machine.
const DEFAULT_THREADS: usize = 32;
/// How long async functions have to end after they were cancelled at the worker's end.
const ABORT_GRACE: Duration = Duration::from_secs(1);
/// How long frames that are still queued have to be written at the worker's end.
const FLUSH_GRACE: Duration = Duration::from_secs(2);
/// Frames that may wait for the dispatcher.
const FRAMES: usize = 16;
/// Bytes that a read asks for.
const READ_BYTES: usize = 64 * 1024;

/// Serves a runtime over standard input and output until it says `shutdown`, the input ends, or
/// the process is told to stop by SIGTERM or SIGINT.
///
/// Call it first thing in `main` and return what it returns: it takes both descriptors for frames
/// and puts others in their place, so that functions may print and start programs. Async functions
/// run as tasks and are dropped when their call is cancelled; a sync one runs in one of 32 threads
/// (`AGENTIX_WORKER_THREADS`), and when its call is cancelled it runs on and its result is
/// discarded. A panic is an error of its own call, of type `panic`.
///
/// Returns 0 after an orderly end and 1 when the pipe cannot be followed or used. Sync functions
/// that still run are not waited for.
pub fn serve_stdio(registry: Registry) -> ExitCode {
    if std::io::stdin().is_terminal() {
        log::worker(
            "standard input is a terminal; a worker is started by agentix-runtime --worker",
        );
        return ExitCode::from(EXIT_PIPE_LOST);
    }
    match serve(registry) {
        Ok(code) => code.into(),
        Err(error) => {
            log::worker(format_args!("cannot start: {error}"));
            ExitCode::from(EXIT_PIPE_LOST)
        }
    }
}

fn serve(registry: Registry) -> Result<u8, Box<dyn std::error::Error>> {
    let pipe = Pipe::take()?;
    caught::remember_places();
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(threads())
        .enable_all()
        .build()?;
    let code = tokio.block_on(async {
        let worker = Worker::start(registry, pipe)?;
        Ok::<_, Box<dyn std::error::Error>>(worker.run().await)
    });
    // Sync functions that still run are not waited for.
    tokio.shutdown_background();
    group::kill_others();
    code
}

fn threads() -> usize {
    std::env::var(WORKER_THREADS)
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|count| *count > 0)
        .unwrap_or(DEFAULT_THREADS)
}

/// What the reading thread found.
#[derive(Debug)]
enum Read {
    Frame(Bytes),
    Lost(FrameTooLong),
    End,
}

type Joined = Result<(Id, Ended), JoinError>;

/// How to stop a call.
struct Abort {
    handle: AbortHandle,
    is_sync: bool,
}

struct Worker {
    registry: Registry,
    dispatcher: Dispatcher,
    reads: mpsc::Receiver<Read>,
    writes: mpsc::UnboundedSender<Bytes>,
    /// Completes when everything is written, or nothing can be written any more.
    written: oneshot::Receiver<()>,
    async_calls: JoinSet<Ended>,
    sync_calls: JoinSet<Ended>,
    calls: HashMap<Id, CallId>,
    aborts: HashMap<CallId, Abort>,
    exit: Option<u8>,
}

impl Worker {
    fn start(registry: Registry, pipe: Pipe) -> Result<Self, Box<dyn std::error::Error>> {
        let (found, reads) = mpsc::channel(FRAMES);
        let (writes, queue) = mpsc::unbounded_channel();
        let (done, written) = oneshot::channel();
        // Threads and not tasks: whatever the descriptors are, reading them never blocks a task.
        std::thread::Builder::new()
            .name("frames in".to_owned())
            .spawn(move || read(pipe.input, &found))?;
        std::thread::Builder::new()
            .name("frames out".to_owned())
            .spawn(move || {
                write(pipe.output, queue);
                // Nobody waits any more when the worker ends for another reason.
                let _ = done.send(());
            })?;
        Ok(Self {
            registry,
            dispatcher: Dispatcher::new(random::bits()?),
            reads,
            writes,
            written,
            async_calls: JoinSet::new(),
            sync_calls: JoinSet::new(),
            calls: HashMap::new(),
            aborts: HashMap::new(),
            exit: None,
        })
    }

    /// Runs until the dispatcher says how to exit.
    async fn run(mut self) -> u8 {
        let (Ok(mut terminate), Ok(mut interrupt)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::interrupt()),
        ) else {
            log::worker("cannot watch for signals");
            return EXIT_PIPE_LOST;
        };
        self.drain();
        let mut broken = false;
        while self.exit.is_none() {
            tokio::select! {
                read = self.reads.recv() => match read {
                    Some(Read::Frame(body)) => self.dispatcher.frame(&body),
                    Some(Read::Lost(error)) => self.dispatcher.pipe_lost(error),
                    Some(Read::End) | None => self.dispatcher.stop(),
                },
                Some(joined) = self.async_calls.join_next_with_id() => self.joined(joined),
                Some(joined) = self.sync_calls.join_next_with_id() => self.joined(joined),
                _ = &mut self.written => {
                    // The runtime reads no more: it is gone.
                    broken = true;
                    self.dispatcher.stop();
                }
                _ = terminate.recv() => self.dispatcher.stop(),
                _ = interrupt.recv() => self.dispatcher.stop(),
            }
            self.drain();
        }
        let code = self.exit.unwrap_or(EXIT_PIPE_LOST);
        self.finish(broken).await;
        code
    }

    /// Ends the functions, and writes what there is to write.
    async fn finish(mut self, broken: bool) {
        self.async_calls.abort_all();
        let aborted = async {
            while let Some(joined) = self.async_calls.join_next_with_id().await {
                // One that was dropped has no outcome: nobody cancelled its call.
                if joined.is_ok() {
                    self.joined(joined);
                }
            }
        };
        let _ = tokio::time::timeout(ABORT_GRACE, aborted).await;
        while let Some(joined) = self.sync_calls.try_join_next_with_id() {
            self.joined(joined);
        }
        self.drain();
        let Self {
            writes, written, ..
        } = self;
        drop(writes);
        if !broken {
            let _ = tokio::time::timeout(FLUSH_GRACE, written).await;
        }
    }

    fn joined(&mut self, joined: Joined) {
        let (task, ended) = match joined {
            Ok((task, ended)) => (task, ended),
            // Dropped: its call was cancelled, which the dispatcher has answered.
            Err(error) => (error.id(), Err(RemoteError::cancelled())),
        };
        if let Some(id) = self.calls.remove(&task) {
            self.aborts.remove(&id);
            self.dispatcher.finished(&id, ended);
        }
    }

    /// Does what the dispatcher says, until it has nothing more to say.
    fn drain(&mut self) {
        while let Some(output) = self.dispatcher.poll_output() {
            match output {
                WorkerOutput::Start(call) => self.call(call),
                WorkerOutput::Abort(id) => self.abort(&id),
                WorkerOutput::Write(body) => {
                    // Without a writing thread the runtime is gone, which `run` is told.
                    let _ = self.writes.send(body);
                }
                // This worker opens no namespace.
                WorkerOutput::Inbound(_) => {}
                WorkerOutput::Notice(notice) => log::worker(notice),
                WorkerOutput::Exit(code) => self.exit = Some(code),
            }
        }
    }

    fn call(&mut self, call: Call) {
        let arguments = call.arguments;
        let (handle, is_sync) = match self.registry.resolve(&call.callable) {
            Ok(Function::Async(function)) => {
                // Called in the task, so that decoding takes place there, and a panic too.
                let task = caught::run_async(async move { function(arguments).await });
                (self.async_calls.spawn(task), false)
            }
            Ok(Function::Sync(function)) => {
                let task = move || caught::run(|| function(&arguments));
                (self.sync_calls.spawn_blocking(task), true)
            }
            Err(error) => {
                self.dispatcher.finished(&call.call_id, Err(error));
                return;
            }
        };
        self.calls.insert(handle.id(), call.call_id.clone());
        self.aborts.insert(call.call_id, Abort { handle, is_sync });
    }

    fn abort(&mut self, id: &CallId) {
        let Some(abort) = self.aborts.get(id) else {
            return;
        };
        // A sync function that waits for a thread is dropped as well; one that runs takes no notice.
        abort.handle.abort();
        if abort.is_sync {
            log::worker(format_args!(
                "call {id} was cancelled; if its function runs already it runs on, and its result is discarded"
            ));
        }
    }
}

fn read(mut input: File, found: &mpsc::Sender<Read>) {
    use std::io::Read as _;

    let mut decoder = FrameDecoder::default();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let next = match decoder.next_frame() {
            Ok(Some(body)) => Read::Frame(body),
            Err(error) => Read::Lost(error),
            Ok(None) => match input.read(&mut buffer) {
                Ok(count @ 1..) => {
                    decoder.push(&buffer[..count]);
                    continue;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => Read::End,
            },
        };
        let last = !matches!(next, Read::Frame(_));
        if found.blocking_send(next).is_err() || last {
            return;
        }
    }
}

fn write(mut output: File, mut queue: mpsc::UnboundedReceiver<Bytes>) {
    while let Some(body) = queue.blocking_recv() {
        // The dispatcher makes no longer frames.
        let Ok(header) = framing::header(body.len()) else {
            continue;
        };
        let written = output
            .write_all(&header)
            .and_then(|()| output.write_all(&body));
        if written.is_err() {
            return;
        }
    }
}
