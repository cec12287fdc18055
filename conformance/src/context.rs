//! What a case has at hand: a testee, and the peers that play its other side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::messages::{self, frame};
use crate::msgpack::Msg;
use crate::outcome::{Outcome, RemoteError};
use crate::peer::http::Http;
use crate::peer::pipe::Pipe;
use crate::peer::session::Session;
use crate::peer::tunnel::{ScriptedWorker, Switchboard};
use crate::peer::{Endpoint, Wire};
use crate::pickle::{Value, args, text};
use crate::process::{Process, Program};
use crate::testee::Command;
use crate::verdict::{Stop, Verdict, check, equal_bytes};

/// A fresh call id: 128 random bits in hex.
pub(crate) fn fresh_id() -> String {
    format!("{:032x}", fastrand::u128(..))
}

/// A key that no other case uses, for functions that count.
pub(crate) fn fresh_key() -> Value {
    text(&fresh_id())
}

/// Lets `duration` pass on purpose, where the specification speaks of time.
pub(crate) async fn pass(duration: Duration) {
    sleep(duration).await;
}

/// A case against a runtime whose worker offers the conformance functions.
#[derive(Debug)]
pub(crate) struct RuntimeCase {
    pub(crate) endpoint: Endpoint,
    pub(crate) wire: Wire,
    hosts: AtomicUsize,
}

impl RuntimeCase {
    pub(crate) fn new(endpoint: Endpoint, wire: Wire) -> Self {
        Self {
            endpoint,
            wire,
            hosts: AtomicUsize::new(0),
        }
    }

    /// A client of the HTTP routes.
    pub(crate) fn http(&self) -> Http {
        Http {
            endpoint: self.endpoint.clone(),
            wire: self.wire.clone(),
        }
    }

    /// The name of the next connection in the transcript.
    pub(crate) fn next_name(&self) -> String {
        format!("host{}", self.hosts.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A new session that has joined nothing.
    pub(crate) async fn session(&self) -> Verdict<Session> {
        Session::open(&self.endpoint, &self.next_name(), &self.wire).await
    }

    /// A new session that has joined `/rpc`.
    pub(crate) async fn host(&self) -> Verdict<Session> {
        let mut session = self.session().await?;
        session.join("/rpc").await?;
        Ok(session)
    }

    /// Proves that calls run: an echo of a random number. In front of a negative it shows that the testee worked, behind
    /// it that the testee handled everything before and still works.
    pub(crate) async fn alive(&self, host: &mut Session) -> Verdict {
        let id = fresh_id();
        let number = Value::Int(i64::from(fastrand::u32(..)));
        host.call(&id, "conformance::echo", &args([number.clone()]))
            .await?;
        host.outcome(&id).await?.is("AGX-CALL-020", &number)
    }

    /// Calls a function on a session and waits for its value.
    pub(crate) async fn value_of<const N: usize>(
        &self,
        host: &mut Session,
        function: &str,
        arguments: [Value; N],
    ) -> Verdict<Value> {
        let id = fresh_id();
        host.call(&id, &format!("conformance::{function}"), &args(arguments))
            .await?;
        host.outcome(&id).await?.value("AGX-CALL-020")
    }

    /// Waits until `counted(key)` is `count`: a witness, over the wire, that functions ran.
    pub(crate) async fn until_counted(
        &self,
        host: &mut Session,
        key: &Value,
        count: i64,
    ) -> Verdict {
        let poll = async {
            loop {
                let counted = self.value_of(host, "counted", [key.clone()]).await?;
                if counted == Value::Int(count) {
                    return Ok(());
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        match timeout(self.wire.clock.answer(), poll).await {
            Ok(verdict) => verdict,
            Err(_) => Err(crate::peer::silence(
                format_args!("a function that has counted to {count}"),
                self.wire.clock.answer(),
            )),
        }
    }

    /// Ends the case unless `counted(key)` is `count`.
    pub(crate) async fn counted(
        &self,
        requirement: &'static str,
        host: &mut Session,
        key: &Value,
        count: i64,
    ) -> Verdict {
        let counted = self.value_of(host, "counted", [key.clone()]).await?;
        check(
            counted == Value::Int(count),
            requirement,
            format_args!("{count} execution(s)"),
            format_args!("{counted:?}"),
        )
    }
}

/// A case against a runtime whose worker is played by the suite.
#[derive(Debug)]
pub(crate) struct ScriptedCase {
    pub(crate) runtime: RuntimeCase,
    pub(crate) process: Process,
    pub(crate) board: Switchboard,
    /// What started the process, to start another.
    pub(crate) command: Command,
}

impl ScriptedCase {
    pub(crate) fn wire(&self) -> &Wire {
        &self.runtime.wire
    }

    /// Waits for the runtime to start a worker.
    pub(crate) async fn worker(&mut self) -> Verdict<ScriptedWorker> {
        self.board.worker(&self.runtime.wire).await
    }

    /// A worker that has said `ready`.
    pub(crate) async fn ready_worker(&mut self) -> Verdict<ScriptedWorker> {
        let mut worker = self.worker().await?;
        worker.pipe.send(&frame::ready()).await?;
        Ok(worker)
    }

    /// A host whose call has reached a worker, with the id of that call.
    pub(crate) async fn running(&mut self) -> Verdict<(Session, ScriptedWorker, String)> {
        let mut host = self.runtime.host().await?;
        let id = fresh_id();
        host.call(&id, "app::run", &args([])).await?;
        let mut worker = self.ready_worker().await?;
        call_arrives(&mut worker, &id).await?;
        Ok((host, worker, id))
    }

    /// Sends a call and waits until its frame has reached the worker.
    pub(crate) async fn call(
        &self,
        host: &mut Session,
        worker: &mut ScriptedWorker,
    ) -> Verdict<String> {
        let id = fresh_id();
        host.call(&id, "app::run", &args([])).await?;
        call_arrives(worker, &id).await?;
        Ok(id)
    }

    /// Proves that host, runtime and worker still understand each other, and that everything before was handled.
    pub(crate) async fn alive(&self, host: &mut Session, worker: &mut ScriptedWorker) -> Verdict {
        let id = self.call(host, worker).await?;
        let value = Value::Int(i64::from(fastrand::u32(..)));
        worker.pipe.send(&frame::result(&id, &value.dump())).await?;
        host.outcome(&id).await?.is("AGX-RPC-031", &value)
    }
}

/// Waits for the frame of a call made with [`ScriptedCase::call`], and compares its bytes.
pub(crate) async fn call_arrives(worker: &mut ScriptedWorker, id: &str) -> Verdict {
    let came = worker.pipe.frame("call").await?;
    let expected = frame::call(id, "app::run", &args([]), Msg::Nil);
    equal_bytes("AGX-PIPE-022", "call frame", &expected, &came.body)
}

/// A case against a worker alone.
#[derive(Debug)]
pub(crate) struct WorkerCase {
    pub(crate) program: Program,
    pub(crate) wire: Wire,
}

/// A worker process and the runtime's end of its pipe.
pub(crate) struct RunningWorker {
    pub(crate) pipe: Pipe,
    pub(crate) process: Process,
    wire: Wire,
}

impl WorkerCase {
    /// Starts a worker and waits for `ready`.
    pub(crate) async fn ready(&self) -> Verdict<RunningWorker> {
        let started = self.program.start_piped();
        let (process, stdout, stdin) = started.map_err(|error| {
            Stop::Harness(format!("{:?} cannot be run: {error}", self.program.argv))
        })?;
        let mut worker = RunningWorker {
            pipe: Pipe::new(stdout, stdin, "pipe", &self.wire),
            process,
            wire: self.wire.clone(),
        };
        worker.pipe.frame("ready").await?;
        Ok(worker)
    }
}

impl RunningWorker {
    /// Sends a call without context.
    pub(crate) async fn call(&mut self, id: &str, target: &str, arguments: &[u8]) -> Verdict {
        self.pipe
            .send(&frame::call(id, target, arguments, Msg::Nil))
            .await
    }

    /// Calls a conformance function and waits for its value.
    pub(crate) async fn value_of<const N: usize>(
        &mut self,
        function: &str,
        arguments: [Value; N],
    ) -> Verdict<Value> {
        let id = fresh_id();
        self.call(&id, &format!("conformance::{function}"), &args(arguments))
            .await?;
        self.pipe.outcome(&id).await?.value("AGX-WRK-014")
    }

    /// Proves that the worker runs calls, and that it has handled every frame before.
    pub(crate) async fn alive(&mut self) -> Verdict {
        let number = Value::Int(i64::from(fastrand::u32(..)));
        let came = self.value_of("echo", [number.clone()]).await?;
        check(
            came == number,
            "AGX-WRK-014",
            format_args!("{number:?}"),
            format_args!("{came:?}"),
        )
    }

    /// Waits until `counted(key)` is `count`.
    pub(crate) async fn until_counted(&mut self, key: &Value, count: i64) -> Verdict {
        let wait = self.wire.clock.answer();
        let poll = async {
            while self.value_of("counted", [key.clone()]).await? != Value::Int(count) {
                sleep(Duration::from_millis(5)).await;
            }
            Ok(())
        };
        match timeout(wait, poll).await {
            Ok(verdict) => verdict,
            Err(_) => Err(crate::peer::silence(
                format_args!("a function that has counted to {count}"),
                wait,
            )),
        }
    }

    /// Ends the case unless the process ends with that exit status, after the end of its output.
    pub(crate) async fn exits(&mut self, requirement: &'static str, status: i32) -> Verdict {
        self.pipe
            .end()
            .await
            .map_err(|stop| stop.breaks(requirement))?;
        let wait = self.wire.clock.stop();
        match self.process.exited(wait).await {
            Some(ended) => check(
                ended.code() == Some(status),
                requirement,
                format_args!("exit status {status}"),
                ended,
            ),
            None => {
                let nothing = crate::peer::silence(format_args!("exit status {status}"), wait);
                Err(nothing.breaks(requirement))
            }
        }
    }
}

/// Ends the case as not run if this outcome says that the worker has no such function. Only for functions that
/// spec/prose/functions.md does not ask of every worker.
pub(crate) fn offered(function: &'static str, outcome: Outcome) -> Verdict<Outcome> {
    match &outcome {
        Outcome::Error(error)
            if matches!(&*error.kind, "AttributeError" | "ModuleNotFoundError") =>
        {
            let reason = format!("the worker does not offer conformance::{function}");
            Err(Stop::NotApplicable(reason))
        }
        _ => Ok(outcome),
    }
}

/// Ends the case unless the traceback of an error of `fail` names that function; as not run if there is none, which is
/// for a worker to choose (AGX-RPC-045).
pub(crate) fn traceback_names_fail(error: &RemoteError) -> Verdict {
    match &error.traceback {
        None => Err(Stop::NotApplicable(
            "the worker gives no tracebacks".to_owned(),
        )),
        Some(text) => check(
            text.contains("fail"),
            "AGX-RPC-045",
            "a traceback with the word `fail`",
            format_args!("{text:?}"),
        ),
    }
}

/// Bodies of `call` on `/rpc` that are wrong in one field each, with the requirement and a name.
pub(crate) fn malformed_calls(id: &str) -> Vec<(&'static str, Vec<u8>)> {
    use crate::msgpack::{bin, map, text};
    let arguments = || bin(&args([]));
    let target = || text("conformance::echo");
    vec![
        (
            "no callable",
            map([("call_id", text(id)), ("arguments", arguments())]).bytes(),
        ),
        (
            "callable is an int",
            map([
                ("call_id", text(id)),
                ("callable", Msg::Int(5)),
                ("arguments", arguments()),
            ])
            .bytes(),
        ),
        (
            "callable is nil",
            map([
                ("call_id", text(id)),
                ("callable", Msg::Nil),
                ("arguments", arguments()),
            ])
            .bytes(),
        ),
        (
            "no arguments",
            map([("call_id", text(id)), ("callable", target())]).bytes(),
        ),
        (
            "arguments is a str",
            map([
                ("call_id", text(id)),
                ("callable", target()),
                ("arguments", text("x")),
            ])
            .bytes(),
        ),
        (
            "arguments is a map",
            map([
                ("call_id", text(id)),
                ("callable", target()),
                ("arguments", map([])),
            ])
            .bytes(),
        ),
        (
            "context is an int",
            messages::call_with_context(id, "conformance::echo", &args([]), Msg::Int(1)),
        ),
    ]
}
