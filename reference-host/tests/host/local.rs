//! Runtimes in processes of their own; the programs are shell scripts under `tests/programs`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agentix_reference_host::{LocalError, LocalOptions, LocalRuntime};

use super::scripted::within;

fn program(name: &str) -> LocalOptions {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    LocalOptions {
        program: Some(folder.join(name)),
        ..LocalOptions::default()
    }
}

fn is_running(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

#[tokio::test]
async fn it_ends_when_its_stdin_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let options = LocalOptions {
        paths: vec![folder.path().to_path_buf()],
        ..program("obedient.sh")
    };
    let runtime = within(LocalRuntime::start(options)).await.unwrap();
    // The script answers with its arguments.
    assert_eq!(
        runtime.url(),
        format!(
            "http://serve/--host/127.0.0.1/--port/0/--path{}",
            folder.path().display()
        )
    );
    let id = runtime.id().unwrap();
    assert!(is_running(id));
    let status = within(runtime.stop()).await.unwrap();
    assert_eq!(status.code(), Some(7));
    assert!(!is_running(id));
}

#[tokio::test]
async fn dropping_it_leaves_no_process() {
    for name in ["obedient.sh", "deaf.sh"] {
        let runtime = within(LocalRuntime::start(program(name))).await.unwrap();
        let id = runtime.id().unwrap();
        drop(runtime);
        assert!(!is_running(id), "{name}");
    }
}

#[tokio::test]
async fn programs_that_are_no_runtime() {
    let start = async |options| within(LocalRuntime::start(options)).await.unwrap_err();
    let error = start(program("missing.sh")).await;
    assert!(matches!(error, LocalError::Spawn { .. }), "{error:?}");
    let error = start(program("fails.sh")).await;
    assert!(
        matches!(&error, LocalError::Exited { status, .. } if status.code() == Some(3)),
        "{error:?}"
    );
    let error = start(program("chatty.sh")).await;
    assert!(
        matches!(&error, LocalError::Output { line, .. } if line == "hello"),
        "{error:?}"
    );
    let options = LocalOptions {
        start_timeout: Duration::from_millis(50),
        ..program("silent.sh")
    };
    let error = start(options).await;
    assert!(matches!(error, LocalError::Timeout { .. }), "{error:?}");
    let options = LocalOptions {
        paths: vec![PathBuf::from("/no/such/folder")],
        ..program("obedient.sh")
    };
    let error = start(options).await;
    assert!(matches!(error, LocalError::NoFolder { .. }), "{error:?}");
}
