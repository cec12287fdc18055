//! Every rule about calls and versions has a test that is named after it, and every rule about the
//! pipe has one or is a case of the conformance suite.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Rules that no run of a program can show, and why.
const NOT_TESTABLE: [&str; 2] = [
    // Binds whoever extends the protocol; that strange fields are ignored is AGX-VER-008.
    "AGX-VER-009",
    // Binds whoever chooses the worker of a runtime: the pipe has no version to compare.
    "AGX-VER-010",
];

fn files(folder: &Path, found: &mut Vec<String>) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(fs::read_to_string(&path).unwrap());
            }
        }
    }
}

/// `AGX-CALL-025` to `-027` of `fn agx_call_025_to_027_a_refused_value_is_final`.
fn named(source: &str) -> impl Iterator<Item = String> + '_ {
    source.split("fn agx_").skip(1).flat_map(|name| {
        let end = name.find('(').unwrap_or(name.len());
        let mut parts = name[..end].split('_');
        let chapter = parts.next().unwrap_or_default().to_uppercase();
        let numbers: Vec<&str> = parts.collect();
        let number = |at: usize| numbers.get(at).and_then(|part| part.parse::<u16>().ok());
        let first = number(0);
        let last = match numbers.get(1) {
            Some(&"to") => number(2),
            _ => first,
        };
        first
            .zip(last)
            .into_iter()
            .flat_map(|(first, last)| first..=last)
            .map(move |n| format!("AGX-{chapter}-{n:03}"))
    })
}

#[test]
fn names_are_read() {
    let source = "fn agx_call_025_to_027_final() fn agx_ver_001_x() fn agx_no_number()";
    let ids: Vec<String> = named(source).collect();
    assert_eq!(
        ids,
        [
            "AGX-CALL-025",
            "AGX-CALL-026",
            "AGX-CALL-027",
            "AGX-VER-001"
        ]
    );
}

#[test]
fn every_rule_has_a_test() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if !workspace.join("spec").is_dir() {
        eprintln!("NOT RUN every_rule_has_a_test: the specification is not beside the crate");
        return;
    }
    let mut tests = Vec::new();
    for folder in [
        "protocol/src",
        "protocol/tests",
        "reference-host/src",
        "reference-host/tests",
        "reference-worker/src",
        "reference-worker/tests",
    ] {
        files(&workspace.join(folder), &mut tests);
    }
    let mut covered: BTreeSet<String> = tests.iter().flat_map(|source| named(source)).collect();
    let mut cases = Vec::new();
    files(&workspace.join("conformance/src/cases"), &mut cases);

    let registry = fs::read_to_string(workspace.join("spec/registry/requirements.toml")).unwrap();
    let ids: Vec<&str> = registry
        .lines()
        .filter_map(|line| line.strip_prefix("id = \"")?.strip_suffix('"'))
        .collect();
    assert!(ids.len() > 400, "{}", ids.len());
    for id in &ids {
        if id.starts_with("AGX-PIPE-") && cases.iter().any(|source| source.contains(id)) {
            covered.insert((*id).to_owned());
        }
    }
    let missing: Vec<&&str> = ids
        .iter()
        .filter(|id| {
            ["AGX-CALL-", "AGX-VER-", "AGX-PIPE-"]
                .iter()
                .any(|chapter| id.starts_with(chapter))
        })
        .filter(|id| !covered.contains(**id) && !NOT_TESTABLE.contains(id))
        .collect();
    assert_eq!(missing, Vec::<&&str>::new());
}
