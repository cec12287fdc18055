//! What fuzzing found, and the seeds it starts from, through the checks of the fuzz targets.
//!
//! A file in `fuzz/regressions/TARGET` is one input of that target. Of `unpickle`, a name that starts
//! with `reject-` or `accept-` also says what the decoder must do with it.

#![allow(clippy::unwrap_used)]

#[allow(unreachable_pub, reason = "a library of its own for the fuzz targets")]
#[path = "../../fuzz/src/lib.rs"]
mod checks;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use agentix_protocol::safepickle::{self, Opcode};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// The names in a directory, in order.
fn names(directory: &Path) -> BTreeSet<String> {
    std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Says on a panic which input it was.
struct Naming<'a>(&'a str, &'a str);

impl Drop for Naming<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("target {}, input {}", self.0, self.1);
        }
    }
}

#[test]
fn what_was_found_stays_mended() {
    let regressions = fuzz().join("regressions");
    let targets: BTreeSet<_> = checks::TARGETS
        .iter()
        .map(|target| target.name.to_owned())
        .collect();
    assert_eq!(names(&regressions), targets);
    for target in checks::TARGETS {
        let directory = regressions.join(target.name);
        let inputs = names(&directory);
        assert!(!inputs.is_empty(), "{}", target.name);
        for input in inputs {
            let _naming = Naming(target.name, &input);
            let bytes = std::fs::read(directory.join(&input)).unwrap();
            (target.check)(&bytes);
            if target.name == "unpickle" {
                match input.split_once('-').map(|(verdict, _)| verdict) {
                    Some("accept") => drop(safepickle::decode(&bytes).unwrap()),
                    Some("reject") => drop(safepickle::decode(&bytes).unwrap_err()),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn every_seed_passes_its_check() {
    for target in checks::TARGETS {
        let seeds = checks::seeds(target);
        assert!(seeds.len() > 100, "{}", target.name);
        for (id, seed) in seeds {
            let _naming = Naming(target.name, &id);
            (target.check)(&seed);
        }
    }
}

/// What the target `differential` passes over is different indeed, where it can be tried.
#[test]
fn what_is_known_of_serde_pickle_is_so() {
    use checks::Known::*;
    let cases = [
        ("objects", Objects, None),
        ("dup-of-list-is-the-list", Copies, Some(false)),
        ("two-names-of-one-list", Copies, Some(false)),
        ("memo-index-stored-twice", MemoOverwritten, Some(false)),
        ("carriage-return-in-text", CarriageReturn, Some(false)),
        ("nan-keys", FloatKeys, None),
        ("float-near-int-keys", FloatKeys, Some(false)),
        ("large-int-and-its-float-keys", FloatKeys, Some(false)),
    ];
    for (input, known, agree) in cases {
        let bytes = std::fs::read(fuzz().join("regressions/differential").join(input)).unwrap();
        assert_eq!(checks::known(&bytes), Some(known), "{input}");
        if agree.is_some() {
            assert_eq!(checks::agree(&bytes), agree, "{input}");
        }
    }
    // These take the process with them.
    for (input, known) in [
        ("list-doubled-by-dup", Copies),
        ("deep-list", Deep),
        ("shared-lists", Unfolds),
    ] {
        let bytes = std::fs::read(fuzz().join("regressions/differential").join(input)).unwrap();
        assert_eq!(checks::known(&bytes), Some(known), "{input}");
    }
}

#[test]
fn the_seeds_of_structured_come_to_pickles_of_every_way() {
    let target = checks::TARGETS
        .iter()
        .find(|target| target.name == "structured");
    let mut ways = BTreeSet::new();
    for (_, choices) in checks::seeds(target.unwrap()) {
        ways.insert(checks::chosen(&choices).0);
    }
    assert_eq!(ways.len(), 7, "{ways:?}");
}

#[test]
fn each_target_is_built_and_each_check_has_a_target() {
    let targets: BTreeSet<_> = checks::TARGETS
        .iter()
        .map(|target| format!("{}.rs", target.name))
        .collect();
    assert_eq!(names(&fuzz().join("fuzz_targets")), targets);
}

#[test]
fn the_dictionary_holds_every_opcode() {
    let dictionary = std::fs::read_to_string(fuzz().join("dictionaries/pickle.dict")).unwrap();
    let opcodes = (0..=u8::MAX)
        .map(Opcode::from_byte)
        .filter(|opcode| opcode.name().is_some());
    for opcode in opcodes {
        let line = format!("{opcode}=\"\\x{:02x}\"", opcode.byte());
        assert!(dictionary.lines().any(|entry| entry == line), "{line}");
    }
}
