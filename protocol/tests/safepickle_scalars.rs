//! Dates, times, numbers, UUIDs and paths against CPython, where there is one: what they tell of
//! themselves, and which of them are one key.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use agentix_protocol::safepickle::{self, DecodeErrorKind, Kind, Value};
use serde::Deserialize;

/// What CPython says about one pickle: `scalars.py` tells how the cases are made.
#[derive(Deserialize)]
#[serde(untagged)]
enum Case {
    /// A list, and what each of its items tells.
    Told { told: Vec<Told>, pickle: String },
    /// A Decimal, and what it came to, if it came to anything.
    Decimal {
        decimal: String,
        found: Option<String>,
        pickle: String,
    },
    /// An OrderedDict given key after key, and its values: of equal keys the last.
    Values { values: Vec<i64>, pickle: String },
}

#[derive(Deserialize)]
struct Told {
    /// Not told where values that are equal read differently.
    str: Option<String>,
    iso: Option<String>,
    /// Microseconds: of a timedelta all of it, of a datetime since 1970.
    number: Option<String>,
    /// Of a path, as code points.
    parts: Option<Vec<Vec<u32>>>,
}

/// Asks CPython for cases, or says that there is none.
fn cases(seed: u32) -> Option<Vec<Case>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scalars.py");
    let output = match Command::new("python3")
        .args([script, &seed.to_string()])
        .output()
    {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Past the harness's capture.
            let line = b"NOT RUN safepickle_scalars: python3 not found\n";
            std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
            return None;
        }
        Err(error) => panic!("python3: {error}"),
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn scalars_tell_and_compare_as_in_cpython() {
    let Some(cases) = [1, 2, 3].map(cases).into_iter().collect::<Option<Vec<_>>>() else {
        return;
    };
    let (mut told_of, mut decimals, mut keys) = (0, 0, 0);
    for case in cases.into_iter().flatten() {
        match case {
            Case::Told { told, pickle } => {
                let document = safepickle::decode(&unhex(&pickle)).unwrap().into_owned();
                let items = document.root().list().unwrap();
                assert_eq!(items.len(), told.len());
                for (value, told) in items.iter().zip(told) {
                    check(value, &told, &pickle);
                    told_of += 1;
                }
            }
            Case::Decimal {
                decimal,
                found,
                pickle,
            } => match safepickle::decode(&unhex(&pickle)) {
                Ok(document) => {
                    let text = document.root().decimal().unwrap().to_string();
                    assert_eq!(Some(&text), found.as_ref(), "{decimal}");
                    decimals += 1;
                }
                // What CPython writes is read.
                Err(error) => {
                    assert!(
                        matches!(error.kind(), DecodeErrorKind::Malformed(_)),
                        "{error}"
                    );
                    assert_ne!(found.as_ref(), Some(&decimal));
                }
            },
            Case::Values { values, pickle } => {
                let stream = unhex(&pickle);
                let document = safepickle::decode(&stream).unwrap();
                let entries = document.root().entries().unwrap();
                let found: Vec<i64> = entries
                    .iter()
                    .map(|(_, value)| value.as_i64().unwrap())
                    .collect();
                assert_eq!(found, values, "{document:?}");
                keys += found.len();
                // Each key is found again.
                let again = safepickle::decode(&stream).unwrap();
                assert_eq!(again, document);
            }
        }
    }
    assert!(
        told_of > 5000 && decimals > 2000 && keys > 10_000,
        "{told_of} {decimals} {keys}"
    );
}

fn check(value: Value<'_>, told: &Told, pickle: &str) {
    let (text, number) = match value.kind() {
        Kind::Date => (value.date().unwrap().to_string(), None),
        Kind::Time => (value.time().unwrap().to_string(), None),
        Kind::Datetime => {
            let datetime = value.datetime().unwrap();
            assert_eq!(Some(datetime.isoformat().to_string()), told.iso, "{pickle}");
            let number = datetime.unix_microseconds();
            (datetime.to_string(), number.map(i128::from))
        }
        Kind::Timedelta => {
            let timedelta = value.timedelta().unwrap();
            (timedelta.to_string(), Some(timedelta.total_microseconds()))
        }
        Kind::Timezone => (value.timezone().unwrap().to_string(), None),
        Kind::Decimal => (value.decimal().unwrap().to_string(), None),
        Kind::Fraction => (value.fraction().unwrap().to_string(), None),
        Kind::Uuid => (value.uuid().unwrap().to_string(), None),
        Kind::Path => {
            let path = value.path().unwrap();
            let parts = path.parts().map(|part| part.code_points().collect());
            assert_eq!(Some(parts.collect()), told.parts, "{pickle}");
            (path.to_string(), None)
        }
        kind => panic!("{kind}"),
    };
    if let Some(told) = &told.str {
        assert_eq!(&text, told, "{pickle}");
    }
    assert_eq!(
        number.map(|number| number.to_string()),
        told.number,
        "{pickle}"
    );
}
