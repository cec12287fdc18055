//! The process that decodes for the suite: it bounds itself, and answers one vector after the other until its input ends.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use agentix_protocol::safepickle::{DecodeError, DecodeErrorKind, Decoder, Limits, Policy, Value};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value as Json;

use super::compare::compare;
use super::exchange::{Answer, DecodedValue, Likeness, Refusal, Request};
use super::fields::unhex;
use crate::runner::exit;

/// How much of a value is shown, in characters.
const SHOWN: usize = 300;

/// Runs with the bounds as arguments: bytes of memory, seconds of processor time for each vector.
pub(crate) fn main(args: &[OsString]) -> ExitCode {
    let numbers: Vec<u64> = args
        .iter()
        .filter_map(|arg| arg.to_str()?.parse().ok())
        .collect();
    let [memory_bytes, processor_seconds] = *numbers else {
        return ExitCode::from(exit::USAGE);
    };
    match serve(memory_bytes, processor_seconds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("decoding for the suite: {error}");
            ExitCode::from(exit::FAULT)
        }
    }
}

fn serve(memory_bytes: u64, processor_seconds: u64) -> std::io::Result<()> {
    bound(Resource::As, Some(memory_bytes))?;
    // A decoder that crashes must not fill the disk.
    bound(Resource::Core, Some(0))?;
    say(&Answer::Ready)?;
    let decoder = Decoder::new(Policy::agentix(), Limits::default());
    for line in std::io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let stream = unhex(&request.hex).ok_or(std::io::ErrorKind::InvalidData)?;
        bound_processor_time(Some(processor_seconds))?;
        let started = processor_time();
        let decoded = decoder.decode(&stream);
        let spent = processor_time().saturating_sub(started);
        bound_processor_time(None)?;
        say(&Answer::Decoded {
            refused: decoded.as_ref().err().map(refusal),
            processor_us: u64::try_from(spent.as_micros()).unwrap_or(u64::MAX),
        })?;
        let value = decoded
            .as_ref()
            .ok()
            .map(|document| describe(request.value.as_ref(), document.root()));
        bound_processor_time(Some(processor_seconds))?;
        drop(decoded);
        bound_processor_time(None)?;
        say(&Answer::Done { value })?;
    }
    Ok(())
}

fn say(answer: &Answer) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

fn describe(table: Option<&Json>, value: Value<'_>) -> DecodedValue {
    let likeness = match table {
        None => Likeness::Unknown,
        Some(table) => match compare(table, value) {
            Ok(()) => Likeness::Equal,
            Err(difference) => {
                let (expected, found) = difference.reason().sides();
                Likeness::Different {
                    at: difference.path().to_owned(),
                    expected,
                    found,
                }
            }
        },
    };
    let mut shown = format!("{value:?}");
    if let Some((end, _)) = shown.char_indices().nth(SHOWN) {
        shown.truncate(end);
        shown.push_str("...");
    }
    DecodedValue { shown, likeness }
}

fn refusal(error: &DecodeError) -> Refusal {
    let kind = match error.kind() {
        DecodeErrorKind::RefusedGlobal { .. } => "refused_global",
        DecodeErrorKind::RefusedExtension { .. } => "refused_extension",
        DecodeErrorKind::RefusedPersistentId { .. } => "refused_persistent_id",
        DecodeErrorKind::Malformed(_) => "malformed",
        DecodeErrorKind::Limit { .. } => "limit",
        DecodeErrorKind::Unsupported(_) => "unsupported",
        _ => "other",
    };
    Refusal {
        kind: kind.to_owned(),
        text: error.to_string(),
    }
}

/// Bounds this process; its hard limit stays.
fn bound(resource: Resource, most: Option<u64>) -> rustix::io::Result<()> {
    let maximum = getrlimit(resource).maximum;
    let current = match (most, maximum) {
        (Some(most), Some(maximum)) => Some(most.min(maximum)),
        (most, maximum) => most.or(maximum),
    };
    setrlimit(resource, Rlimit { current, maximum })
}

/// Ends this process once it has used so many seconds from now on, or up to two more: the system counts whole ones.
fn bound_processor_time(seconds: Option<u64>) -> rustix::io::Result<()> {
    let until = seconds.map(|seconds| processor_time().as_secs() + seconds + 1);
    bound(Resource::Cpu, until)
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // Neither is negative for a clock that starts at 0.
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
