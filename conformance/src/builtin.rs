//! The reference implementations as testees: separate processes of this very binary, so that the suite needs nothing
//! else. Nothing that they do decides what is right.

use std::ffi::OsString;
use std::process::{ExitCode, Stdio};

use crate::case::{Kind, Role};
use crate::peer::tunnel;
use crate::testee::{Command, Functions, How, Testee};

const TUNNEL: &str = "tunnel";

/// Runs a hidden subcommand, if the command line holds one.
pub(crate) fn hidden(args: &[OsString]) -> Option<ExitCode> {
    let (name, rest) = args.get(1..)?.split_first()?;
    match name.to_str()? {
        TUNNEL => Some(tunnel::main(rest)),
        _ => None,
    }
}

/// The command of a worker that offers the conformance functions, shell-quoted.
pub(crate) fn worker_command(functions: &Functions) -> Result<String, String> {
    let words = python_worker(functions)?;
    shlex::try_join(words.iter().map(String::as_str)).map_err(|error| error.to_string())
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
    let testee = |name: &str, role, kinds, argv: Vec<String>, needs_python: bool| Testee {
        name: name.to_owned(),
        role,
        how: match &python {
            Err(reason) if needs_python => How::Absent(reason.clone()),
            _ => How::Command(Command {
                argv: argv.into_iter().map(OsString::from).collect(),
                env: Vec::new(),
                worker: None,
            }),
        },
        kinds,
        repeat: format!("agentix-conformance run --testee '{name}' --case {{case}}"),
    };
    let python_worker = python_worker(functions)?;
    Ok(vec![testee(
        "Python worker",
        Role::Worker,
        vec![Kind::Worker],
        python_worker,
        true,
    )])
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
