//! The reference implementations as testees: separate processes of this very binary, so that the suite needs nothing
//! else. Nothing that they do decides what is right.

use std::ffi::OsString;
use std::process::{ExitCode, Stdio};

use crate::case::Kind;
use crate::decoder;
use crate::peer::tunnel;
use crate::process::Program;
use crate::runner::self_command;
use crate::testee::{Command, Functions, How, Testee};

const TUNNEL: &str = "tunnel";
const WORKER: &str = "builtin-worker";
const RUNTIME: &str = "builtin-runtime";
const DECODER: &str = "builtin-decoder";

/// Runs a hidden subcommand, if the command line holds one.
pub(crate) fn hidden(args: &[OsString]) -> Option<ExitCode> {
    let (name, rest) = args.get(1..)?.split_first()?;
    match name.to_str()? {
        TUNNEL => Some(tunnel::main(rest)),
        WORKER => Some(agentix_reference_worker::worker_main()),
        RUNTIME => {
            let program = OsString::from("agentix-runtime");
            let args = std::iter::once(program).chain(rest.iter().cloned());
            Some(agentix_reference_worker::runtime_main(args))
        }
        DECODER => Some(decoder::child_main(rest)),
        _ => None,
    }
}

/// A process that decodes vectors within bounds: bytes of memory, and seconds of processor time for each.
pub(crate) fn decoder(memory_bytes: u64, processor_seconds: u64) -> Result<Program, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let numbers = [memory_bytes, processor_seconds].map(|number| number.to_string().into());
    let argv = [this.into_os_string(), DECODER.into()].into_iter();
    Ok(Program {
        argv: argv.chain(numbers).collect(),
        env: Vec::new(),
    })
}

/// The command of a worker that offers the conformance functions, shell-quoted.
pub(crate) fn worker_command() -> Result<String, String> {
    self_command(&[WORKER])
}

fn python_worker(functions: &Functions) -> Result<Vec<String>, String> {
    let script = functions.python_worker();
    let script = script
        .to_str()
        .ok_or_else(|| format!("{script:?} is not text"))?;
    let path = functions.path();
    let path = path
        .to_str()
        .ok_or_else(|| format!("{path:?} is not text"))?;
    Ok(["python3", script, "--path", path]
        .map(str::to_owned)
        .into())
}

/// Every built-in testee, also those that cannot run here.
pub(crate) fn testees(functions: &Functions) -> Result<Vec<Testee>, String> {
    let python = find_python();
    let testee =
        |name: &str, kind: Kind, argv: Vec<String>, needs_python: bool, worker: &str| Testee {
            name: name.to_owned(),
            role: kind.role(),
            how: match &python {
                Err(reason) if needs_python => How::Absent(reason.clone()),
                _ => How::Command(Command {
                    argv: argv.into_iter().map(OsString::from).collect(),
                    env: Vec::new(),
                    worker: Some(worker.to_owned()),
                }),
            },
            kinds: vec![kind],
            repeat: format!("agentix-conformance run --testee '{name}' --case {{case}}"),
        };
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let this = this
        .to_str()
        .ok_or_else(|| format!("{this:?} is not text"))?;
    let command = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let runtime = |worker: &[&str]| {
        command(&[&[this, RUNTIME, "serve", "--port", "{port}"], worker].concat())
    };
    let path = functions.path();
    let path = path
        .to_str()
        .ok_or_else(|| format!("{path:?} is not text"))?;
    let with_worker = runtime(&["--worker", "{worker}"]);
    let with_python = runtime(&["--python", "python3", "--path", path]);
    let python_worker = python_worker(functions)?;
    let rust_worker = worker_command()?;
    let testee =
        |name: &str, kind, argv, needs_python| testee(name, kind, argv, needs_python, &rust_worker);
    Ok(vec![
        testee(
            "runtime with Rust worker",
            Kind::Runtime,
            with_worker.clone(),
            false,
        ),
        testee(
            "runtime with Python worker",
            Kind::Runtime,
            with_python,
            true,
        ),
        testee(
            "runtime with scripted worker",
            Kind::Scripted,
            with_worker,
            false,
        ),
        testee("Rust worker", Kind::Worker, command(&[this, WORKER]), false),
        testee("Python worker", Kind::Worker, python_worker, true),
    ])
}

/// Is there a Python that can run the Python worker?
fn find_python() -> Result<(), String> {
    let program = "import sys; sys.exit(sys.version_info < (3, 9))";
    let asked = std::process::Command::new("python3")
        .args(["-I", "-c", program])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match asked {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("python3 is older than 3.9".to_owned()),
        Err(_) => Err("python3 not found".to_owned()),
    }
}
