//! The conformance functions (`spec/prose/functions.md`), twin of `python/conformance.py`.

use std::collections::HashMap;
use std::io::Write as _;
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::limits::MAX_MESSAGE_BYTES;
use agentix_protocol::remote::Binder;
use agentix_protocol::safepickle::{self, BuildError, Builder, Protocol, Value};
use rustix::process::{Signal, getpid, kill_process, test_kill_process};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::registry::{RegisterError, Registry};

static COUNTERS: LazyLock<Mutex<HashMap<String, i64>>> = LazyLock::new(Mutex::default);

fn raise(class: &str, message: impl Into<String>) -> RemoteError {
    RemoteError::new(ErrorType::Other(class.into()), message)
}

fn count_up(key: &str) -> i64 {
    let mut counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    let counter = counters.entry(key.to_owned()).or_default();
    *counter += 1;
    *counter
}

fn duration(seconds: f64) -> Result<Duration, RemoteError> {
    Duration::try_from_secs_f64(seconds).map_err(|error| raise("ValueError", error.to_string()))
}

fn pickling(error: impl std::fmt::Display) -> RemoteError {
    let message = format!("failed to pickle return value: {error}");
    RemoteError::new(ErrorType::ResultEncodeError, message)
}

/// A value whose encoding fails.
#[derive(Debug, Deserialize)]
pub(super) struct Unpicklable;

impl Serialize for Unpicklable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("this value has no pickle"))
    }
}

/// `None` inside of lists.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Nested(Option<Vec<Nested>>);

/// Counts a key on its way out: a future that is cancelled is dropped.
struct CountOnDrop(Option<String>);

impl Drop for CountOnDrop {
    fn drop(&mut self) {
        if let Some(key) = &self.0 {
            count_up(key);
        }
    }
}

agentix_protocol::remote! {
    fn total(numbers: Vec<i64>) -> Result<i64, RemoteError> = "conformance::total" {
        numbers
            .iter()
            .try_fold(0_i64, |sum, n| sum.checked_add(*n))
            .ok_or_else(|| raise("OverflowError", "the sum takes more than 64 bits"))
    }

    fn fail(message: String) -> Result<(), RemoteError> = "conformance::fail" {
        Err(raise("ValueError", message))
    }

    async fn fail_async(message: String) -> Result<(), RemoteError> = "conformance::fail_async" {
        tokio::task::yield_now().await;
        Err(raise("ValueError", message))
    }

    async fn sleep(seconds: f64) -> Result<f64, RemoteError> = "conformance::sleep" {
        tokio::time::sleep(duration(seconds)?).await;
        Ok(seconds)
    }

    fn block(seconds: f64) -> Result<f64, RemoteError> = "conformance::block" {
        std::thread::sleep(duration(seconds)?);
        Ok(seconds)
    }

    async fn stubborn(seconds: f64) -> Result<String, RemoteError> = "conformance::stubborn" {
        // A future that is dropped cannot go on: what it would return nobody gets to see.
        tokio::time::sleep(duration(seconds)?).await;
        Ok("slept".to_owned())
    }

    fn count(key: String) -> i64 = "conformance::count" { count_up(&key) }

    async fn count_slow(key: String, seconds: f64) -> Result<i64, RemoteError>
    = "conformance::count_slow" {
        let counted = count_up(&key);
        tokio::time::sleep(duration(seconds)?).await;
        Ok(counted)
    }

    async fn sleep_counted(key: String, seconds: f64) -> Result<f64, RemoteError>
    = "conformance::sleep_counted" {
        let mut on_cancel = CountOnDrop(Some(key));
        if let Some(key) = &on_cancel.0 {
            count_up(key);
        }
        tokio::time::sleep(duration(seconds)?).await;
        on_cancel.0 = None;
        Ok(seconds)
    }

    fn counted(key: String) -> i64 = "conformance::counted" {
        let counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
        counters.get(&key).copied().unwrap_or_default()
    }

    fn exit(code: u8) = "conformance::exit" { std::process::exit(code.into()) }

    fn signal(number: i32) -> Result<(), RemoteError> = "conformance::signal" {
        let sent = match (number, Signal::from_named_raw(number)) {
            (0, _) => test_kill_process(getpid()),
            (_, Some(signal)) => kill_process(getpid(), signal),
            (_, None) => return Err(raise("ValueError", format!("no signal {number}"))),
        };
        sent.map_err(|error| raise("OSError", error.to_string()))
    }

    fn pid() -> u32 = "conformance::pid" { std::process::id() }

    fn blob(size: usize) -> Result<ByteBuf, RemoteError> = "conformance::blob" {
        // No larger one can be sent, and the worker has to live on.
        if size > 4 * MAX_MESSAGE_BYTES {
            return Err(raise("MemoryError", format!("{size} bytes")));
        }
        Ok((0..251).cycle().take(size).collect::<Vec<u8>>().into())
    }

    fn unpicklable() -> Unpicklable = "conformance::unpicklable" { Unpicklable }

    fn print_text(text: String, stream: String) -> Result<(), RemoteError>
    = "conformance::print_text" {
        let printed = match stream.as_str() {
            "stdout" => writeln!(std::io::stdout(), "{text}").and_then(|()| std::io::stdout().flush()),
            "stderr" => writeln!(std::io::stderr(), "{text}"),
            other => {
                let message = format!("stream is {other:?}, neither \"stdout\" nor \"stderr\"");
                return Err(raise("ValueError", message));
            }
        };
        printed.map_err(|error| raise("OSError", error.to_string()))
    }

    fn print_child(text: String) -> Result<i32, RemoteError> = "conformance::print_child" {
        let status = Command::new("sh")
            .args(["-c", r#"printf '%s\n' "$1""#, "sh", &text])
            .status()
            .map_err(|error| raise("OSError", error.to_string()))?;
        // As Python has it: minus the signal.
        Ok(status.code().unwrap_or_else(|| {
            std::os::unix::process::ExitStatusExt::signal(&status).map_or(-1, |signal| -signal)
        }))
    }

    fn unicode() -> String = "conformance::unicode" {
        "A\0\u{e9}e\u{301}\u{3c0}\u{6a21}\u{2028}\u{feff}\u{1f600}\u{1d54f}\u{10ffff}".to_owned()
    }

    fn nested(depth: u8) -> Result<Nested, RemoteError> = "conformance::nested" {
        if depth > 100 {
            return Err(raise("ValueError", "more than 100"));
        }
        Ok((0..depth).fold(Nested(None), |inner, _| Nested(Some(vec![inner]))))
    }
}

/// Its value as it came, of whatever type.
fn echo(pair: Value<'_>) -> Result<Vec<u8>, RemoteError> {
    let mut binder = Binder::new("echo", pair)?;
    let value = binder.value("value")?;
    binder.finish()?;
    safepickle::encode(value, Protocol::DEFAULT).map_err(pickling)
}

/// `[list of the positional arguments, dict of the named ones]`.
fn arguments(pair: Value<'_>) -> Result<Vec<u8>, RemoteError> {
    // Checks that it is a pair of a tuple and a dict with str keys.
    Binder::new("arguments", pair)?;
    let half = |index| pair.tuple().and_then(|pair| pair.at(index));
    let build = || -> Result<_, BuildError> {
        let mut builder = Builder::new();
        let positional = builder.list()?;
        for value in half(0)
            .and_then(Value::tuple)
            .into_iter()
            .flat_map(|items| items.iter())
        {
            let copied = builder.copy(value)?;
            builder.append(positional, copied)?;
        }
        let named = match half(1) {
            Some(dict) => builder.copy(dict)?,
            None => builder.dict()?,
        };
        let both = builder.list()?;
        builder.append(both, positional)?;
        builder.append(both, named)?;
        builder.finish(both)
    };
    let document = build().map_err(pickling)?;
    safepickle::encode(document.root(), Protocol::DEFAULT).map_err(pickling)
}

/// A registry of the conformance functions that a worker in Rust offers.
///
/// # Errors
///
/// [`RegisterError`] cannot happen with these functions; it is passed on rather than hidden.
pub fn conformance_registry() -> Result<Registry, RegisterError> {
    let mut registry = Registry::new();
    registry
        .register_raw("conformance::echo", echo)?
        .register_raw_async("conformance::echo_async", echo)?
        .register_raw("conformance::arguments", arguments)?
        .register::<total>()?
        .register::<fail>()?
        .register::<fail_async>()?
        .register::<sleep>()?
        .register::<block>()?
        .register::<stubborn>()?
        .register::<count>()?
        .register::<count_slow>()?
        .register::<sleep_counted>()?
        .register::<counted>()?
        .register::<exit>()?
        .register::<signal>()?
        .register::<pid>()?
        .register::<blob>()?
        .register::<unpicklable>()?
        .register::<print_text>()?
        .register::<print_child>()?
        .register::<unicode>()?
        .register::<nested>()?;
    Ok(registry)
}
