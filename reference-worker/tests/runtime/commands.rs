//! What bad input on the command line gets: one clear line and an exit status.

use std::process::{Output, Stdio};

use crate::support::*;

async fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = command(arguments);
    command.stderr(Stdio::piped());
    let Output {
        status,
        stdout,
        stderr,
    } = within("the end", command.output()).await.unwrap();
    assert!(stdout.is_empty(), "{arguments:?}");
    (status.code(), String::from_utf8(stderr).unwrap())
}

async fn fails(arguments: &[&str], expected: i32, says: &str) {
    let (status, stderr) = run(arguments).await;
    assert_eq!(status, Some(expected), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("agentix-runtime: "), "{stderr}");
    // The one thing that a reader has to be told.
    assert!(stderr.contains(says), "{arguments:?}: {stderr}");
}

#[tokio::test]
async fn usage_errors() {
    fails(&[], 2, "subcommand").await;
    fails(&["serve", "--wrokers", "x"], 2, "--wrokers").await;
    fails(&["serve", "--port", "x"], 2, "--port").await;
    fails(&["serve", "--port", "70000"], 2, "70000").await;
    fails(&["serve", "--worker", "x", "--path", "y"], 2, "--path").await;
}

#[tokio::test]
async fn programs_that_are_not_there() {
    let missing = "agentix-no-such-program";
    fails(&["serve", "--worker", missing], 1, missing).await;
    fails(&["serve", "--python", missing], 1, missing).await;
    fails(&["serve", "--worker", "./Cargo.toml"], 1, "Cargo.toml").await;
    fails(&["serve", "--worker", "'"], 1, "quotation").await;
    fails(&["serve", "--worker", ""], 1, "empty").await;
}

#[tokio::test]
async fn addresses_that_cannot_be_used() {
    let runtime = Runtime::start().await;
    let port = runtime.address.port().to_string();
    fails(&["serve", "--worker", WORKER, "--port", &port], 1, &port).await;
    // An address of a documentation network, which no machine has.
    let host = "192.0.2.1";
    fails(&["serve", "--worker", WORKER, "--host", host], 1, host).await;
    runtime.stop().await;
}

#[tokio::test]
async fn the_environment_gives_the_address_and_flags_win() {
    let mut by_environment = command(&["serve", "--worker", WORKER]);
    by_environment
        .env("AGENTIX_BIND_HOST", "127.0.0.2")
        .env("AGENTIX_BIND_PORT", "0");
    let runtime = Runtime::from(by_environment).await;
    assert_eq!(runtime.address.ip().to_string(), "127.0.0.2");
    runtime.stop().await;
    let mut by_flags = command(&["serve", "--worker", WORKER, "--host", "127.0.0.1"]);
    by_flags.env("AGENTIX_BIND_HOST", "127.0.0.2");
    let runtime = Runtime::from(by_flags).await;
    assert_eq!(runtime.address.ip().to_string(), "127.0.0.1");
    runtime.stop().await;
}

#[tokio::test]
async fn help_is_no_error() {
    for arguments in [&["--help"][..], &["serve", "--help"], &["--version"]] {
        let output = within("help", command(arguments).output()).await.unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(!output.stdout.is_empty());
    }
}
