//! How fast the decoder is: beside CPython, a restricted loader on CPython, and `serde-pickle`, all on
//! the same bytes in turn, so that the ratios hold on any machine and any load.
//!
//! ```text
//! cargo bench -p agentix-protocol --bench unpickle [-- PAYLOAD...]
//! ```
//!
//! Each figure is processor time, since on a loaded machine others would be stopped more often the
//! longer they take, and the best of many rounds; a round runs every decoder once, for as many calls as
//! take some milliseconds. Values are dropped outside of the time taken.

mod peer;

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agentix_protocol::safepickle::Decoder;
use peer::{Failure, Peer};

/// The least time of one measurement.
const ROUND: Duration = Duration::from_millis(4);
/// Rounds of one payload: at least this many, and more for as long as `PAYLOAD_TIME` allows.
const LEAST_ROUNDS: u32 = 10;
const MOST_ROUNDS: u32 = 200;
const PAYLOAD_TIME: Duration = Duration::from_secs(5);

/// How many times as fast as C `pickle.loads` a payload has to be decoded.
fn target(payload: &str) -> f64 {
    match payload {
        "ints" | "strings" | "text" | "json" => 2.0,
        _ => 1.0,
    }
}

/// How many times as fast as the restricted loader.
const RESTRICTED_TARGET: f64 = 10.0;

/// Asks for one `serde-pickle` call on the file that follows, in a process that may die of it.
const TRY_SERDE: &str = "--try-serde-pickle";

fn main() -> Result<(), Failure> {
    // Cargo adds its own `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    if let [first, file] = arguments.as_slice()
        && first == TRY_SERDE
    {
        serde_pickle(&std::fs::read(file)?)?;
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (mut peer, hello) = Peer::start(folder.path())?;
    println!(
        "{}, pickle protocol 4; processor time, best of {LEAST_ROUNDS} rounds or more; \
         `x` says how many times as long as ours",
        hello.version
    );
    println!(
        "{:<10}{:>11}{:>11} |{:>11}{:>8}  {:<12}|{:>13}{:>8}  {:<12}|{:>13}{:>8}",
        "payload",
        "bytes",
        "ours ms",
        "C ms",
        "x",
        "target",
        "restricted ms",
        "x",
        "target",
        "serde-p. ms",
        "x"
    );
    for name in &hello.payloads {
        if !arguments.is_empty() && !arguments.contains(name) {
            continue;
        }
        let file = folder.path().join(name);
        let input = std::fs::read(&file)?;
        let survives = Command::new(std::env::current_exe()?)
            .arg(TRY_SERDE)
            .arg(&file)
            .stderr(Stdio::null())
            .status()?
            .success();
        let timed = !hello.untimed.contains(name);
        let mut ours = Figure::of(Decoder::default().decode(&input).is_ok());
        let mut c = Figure::of(timed);
        let mut restricted = Figure::of(timed);
        let mut serde = Figure::of(survives);
        let start = Instant::now();
        for round in 0..MOST_ROUNDS {
            if round >= LEAST_ROUNDS && start.elapsed() > PAYLOAD_TIME {
                break;
            }
            ours.take(|count| {
                Ok(clock(count, || {
                    Decoder::default().decode(black_box(&input))
                }))
            })?;
            c.take(|count| peer.time(name, "c", count))?;
            restricted.take(|count| peer.time(name, "restricted", count))?;
            serde.take(|count| Ok(clock(count, || serde_pickle(black_box(&input)))))?;
        }
        println!(
            "{name:<10}{:>11}{} |{} |{} |{}",
            input.len(),
            ours.ms(11),
            c.beside(&ours, 11, Some(target(name))),
            restricted.beside(&ours, 13, Some(RESTRICTED_TARGET)),
            serde.beside(&ours, 13, None)
        );
    }
    Ok(())
}

fn serde_pickle(input: &[u8]) -> serde_pickle::Result<serde_pickle::Value> {
    serde_pickle::value_from_slice(input, serde_pickle::DeOptions::new())
}

/// The nanoseconds that `count` calls take.
fn clock<T>(count: u32, mut call: impl FnMut() -> T) -> u64 {
    let mut values = Vec::with_capacity(count as usize);
    let start = thread_time();
    for _ in 0..count {
        values.push(call());
    }
    let taken = thread_time() - start;
    drop(black_box(values));
    taken
}

/// The nanoseconds that this thread has run for, as the peer counts its own.
#[cfg(unix)]
fn thread_time() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    // Neither is below zero, and this process does not run for centuries.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Elsewhere the time of day has to do: run it on an idle machine.
#[cfg(not(unix))]
fn thread_time() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// What one decoder took on one payload.
struct Figure {
    /// Whether it can decode this payload at all.
    able: bool,
    /// Calls in one measurement.
    count: u32,
    /// The best so far, in nanoseconds a call.
    best: f64,
}

impl Figure {
    fn of(able: bool) -> Self {
        Self {
            able,
            count: 1,
            best: f64::INFINITY,
        }
    }

    /// Takes a measurement, and fits the count to the time it took.
    fn take(&mut self, run: impl FnOnce(u32) -> Result<u64, Failure>) -> Result<(), Failure> {
        if self.able {
            let each = run(self.count)? as f64 / f64::from(self.count);
            self.best = self.best.min(each);
            self.count = (ROUND.as_nanos() as f64 / self.best).clamp(1.0, 10_000.0) as u32;
        }
        Ok(())
    }

    fn ms(&self, width: usize) -> String {
        match self.best {
            best if best.is_infinite() => format!("{:>width$}", "n/a"),
            best if best < 1e5 => format!("{:>width$.6}", best / 1e6),
            best => format!("{:>width$.2}", best / 1e6),
        }
    }

    fn beside(&self, ours: &Figure, width: usize, target: Option<f64>) -> String {
        let ratio = self.best / ours.best;
        let known = self.best.is_finite() && ours.best.is_finite();
        let shown = if known {
            format!("{ratio:.1}")
        } else {
            "n/a".to_owned()
        };
        let verdict = target.map_or_else(String::new, |target| {
            let word = match known {
                false => "n/a",
                true if ratio >= target => "met",
                true => "MISSED",
            };
            format!("  {:<12}", format!("{target:.0} {word}"))
        });
        format!("{}{shown:>8}{verdict}", self.ms(width))
    }
}
