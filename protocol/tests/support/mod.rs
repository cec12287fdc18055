//! What the test files share: vectors on disk, hex, and tests that say that they did not run.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::Value as Json;

/// Says on the terminal, past the harness's capture, that a test did not run and why.
pub fn not_run(test: &str, why: &str) {
    let line = format!("NOT RUN {test}: {why}\n");
    std::io::stderr().lock().write_all(line.as_bytes()).unwrap();
}

pub fn spec_vectors(folder: &str, file: &str) -> Vec<Json> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../spec/vectors")
        .join(folder);
    json_lines(&path.join(file))
}

/// The transcripts that stay outside of the repository, where they are there.
pub fn shared_transcripts(folder: &str) -> Option<Vec<(String, Vec<Json>)>> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/vectors")
        .join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir)
        .ok()?
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .collect();
    files.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    Some(
        files
            .iter()
            .map(|path| (name(path), json_lines(path)))
            .collect(),
    )
}

fn json_lines(path: &std::path::Path) -> Vec<Json> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap()
}

pub fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
