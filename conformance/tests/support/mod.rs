//! Running the suite's binary, and reading its report.

use std::process::{Command, Stdio};

use serde_json::Value;

/// What came of one run of the binary.
#[derive(Debug)]
#[allow(dead_code)]
pub(crate) struct Run {
    pub(crate) exit_status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The binary under test, its standard streams captured.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentix-conformance"));
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the binary to its end.
pub(crate) fn suite(args: &[&str]) -> Run {
    let output = command(args).output().unwrap();
    Run {
        exit_status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[allow(dead_code)]
impl Run {
    /// The lines of `--format json`.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Cases that passed.
    pub(crate) fn passed(&self) -> Vec<String> {
        self.cases("passed")
    }

    /// Cases that failed.
    pub(crate) fn failed(&self) -> Vec<String> {
        self.cases("failed")
    }

    /// Cases that were not run.
    pub(crate) fn not_run(&self) -> Vec<String> {
        self.cases("not_run")
    }

    fn cases(&self, status: &str) -> Vec<String> {
        let lines = self.lines();
        assert_eq!(lines[0]["kind"], "start");
        assert_eq!(lines[lines.len() - 1]["kind"], "summary");
        let cases = lines
            .iter()
            .filter(|line| line["kind"] == "case" && line["status"] == status);
        cases
            .map(|line| line["case"].as_str().unwrap().to_owned())
            .collect()
    }
}
