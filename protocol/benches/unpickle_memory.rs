//! What a decoded value takes, counted by the allocator, and the most that the decoder took meanwhile.
//!
//! ```text
//! cargo bench -p agentix-protocol --bench unpickle_memory [-- PAYLOAD...]
//! ```
//!
//! A bench of its own, since counting slows every allocation down.

mod peer;

use agentix_protocol::safepickle::Decoder;
use peak_alloc::PeakAlloc;
use peer::{Failure, Peer};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes a node that a value may take.
const NODE_TARGET: f64 = 24.0;
/// For payloads that are one large object: what input and value may take together, in inputs.
const LARGE_TARGET: f64 = 1.1;

fn main() -> Result<(), Failure> {
    // Cargo adds its own `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let folder = tempfile::tempdir()?;
    let (_peer, hello) = Peer::start(folder.path())?;
    println!("payloads of {}, pickle protocol 4", hello.version);
    println!(
        "{:<10}{:>11}{:>10}{:>13}{:>9}  {:<12}{:>14}  {:<12}{:>13}",
        "payload",
        "bytes",
        "nodes",
        "value bytes",
        "a node",
        "target",
        "with input x",
        "target",
        "peak bytes"
    );
    for name in &hello.payloads {
        if arguments.is_empty() || arguments.contains(name) {
            let input = std::fs::read(folder.path().join(name))?;
            measure(name, &input);
        }
    }
    Ok(())
}

/// Prints the line of one payload.
fn measure(name: &str, input: &[u8]) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let Ok(document) = Decoder::default().decode(input) else {
        println!("{name:<10}{:>11}{:>10}", input.len(), "n/a");
        return;
    };
    let peak = ALLOCATOR.peak_usage() - before;
    let value = ALLOCATOR.current_usage() - before;
    let nodes = document.node_count();
    let each = value as f64 / nodes as f64;
    let whole = (value + input.len()) as f64 / input.len() as f64;
    // One object that is nearly all of the input, or many: each has its own target.
    let large = input.len() / nodes > 100_000;
    println!(
        "{name:<10}{:>11}{nodes:>10}{value:>13}{each:>9.1}  {:<12}{whole:>14.2}  {:<12}{peak:>13}",
        input.len(),
        verdict(!large, each, NODE_TARGET),
        verdict(large, whole, LARGE_TARGET),
    );
}

fn verdict(applies: bool, value: f64, target: f64) -> String {
    match applies {
        false => "-".to_owned(),
        true if value <= target => format!("{target} met"),
        true => format!("{target} MISSED"),
    }
}
