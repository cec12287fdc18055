//! The encoder and the decoder against CPython, where there is one.

#![allow(clippy::unwrap_used)]

mod plain;

use std::io::Write;
use std::process::{Command, Stdio};

use agentix_protocol::safepickle::{self, Builder, DecodeErrorKind, Document, Protocol};
use plain::{PROTOCOLS, plain};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde::Deserialize;
use serde_json::json;

/// For each line: evaluates the expression, compares it with what each pickle gives (types, order of
/// dicts and bits of floats included), and pickles it at each protocol.
const SCRIPT: &str = r#"
import json, pickle, struct, sys

def f(bits): return struct.unpack("<d", struct.pack("<Q", bits))[0]
def s(points): return "".join(map(chr, points))

def same(a, b):
    if type(a) is not type(b): return False
    if isinstance(a, float): return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, (list, tuple)): return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(x, y) and same(a[x], b[y]) for x, y in zip(a, b))
    if isinstance(a, (set, frozenset)):
        rest = list(b)
        for x in a:
            for i, y in enumerate(rest):
                if same(x, y):
                    del rest[i]
                    break
            else: return False
        return not rest
    return a == b

for line in sys.stdin:
    case = json.loads(line)
    wrong = []
    if "expression" in case:
        value = eval(case["expression"])
        for protocol, stream in case["pickles"].items():
            try:
                if not same(value, pickle.loads(bytes.fromhex(stream))): wrong.append(protocol + ": differs")
            except Exception as error: wrong.append(protocol + ": " + repr(error))
    else:
        v = value = pickle.loads(bytes.fromhex(case["pickle"]))
        if not eval(case["check"]): wrong.append(case["check"])
    print(json.dumps({"wrong": wrong, "dumps": [pickle.dumps(value, p).hex() for p in (2, 3, 4, 5)]}))
"#;

#[derive(Deserialize)]
struct Answer {
    wrong: Vec<String>,
    dumps: Vec<String>,
}

/// Asks CPython about all cases, or says that there is none.
fn ask(cases: &[serde_json::Value]) -> Option<Vec<Answer>> {
    let spawned = Command::new("python3")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut python = match spawned {
        Ok(python) => python,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Past the harness's capture.
            let line = b"NOT RUN safepickle_cpython: python3 not found\n";
            std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
            return None;
        }
        Err(error) => panic!("python3: {error}"),
    };
    let mut stdin = python.stdin.take().unwrap();
    let lines: String = cases.iter().map(|case| format!("{case}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = python.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let answers: Vec<Answer> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), cases.len());
    Some(answers)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn generated_values_mean_the_same_to_cpython() {
    let mut runner = TestRunner::deterministic();
    let values: Vec<_> = (0..1500)
        .map(|_| plain().new_tree(&mut runner).unwrap().current())
        .collect();
    let cases: Vec<_> = values
        .iter()
        .map(|value| {
            let document = value.document();
            let mut pickles = serde_json::Map::new();
            for protocol in PROTOCOLS {
                if let Ok(pickle) = safepickle::encode(document.root(), protocol) {
                    pickles.insert(format!("encode {}", protocol.number()), hex(&pickle).into());
                }
            }
            json!({"expression": value.python(), "pickles": pickles})
        })
        .collect();
    let Some(answers) = ask(&cases) else { return };
    let mut decoded = 0;
    for ((value, answer), case) in values.iter().zip(answers).zip(&cases) {
        assert!(answer.wrong.is_empty(), "{:?}: {case}", answer.wrong);
        for (protocol, stream) in PROTOCOLS.into_iter().zip(&answer.dumps) {
            let stream = unhex(stream);
            match safepickle::decode(&stream) {
                Ok(document) => {
                    decoded += 1;
                    assert_eq!(document, value.document(), "protocol {protocol:?}: {case}");
                }
                // At protocol 2 CPython uses names of Python 2.
                Err(error) => {
                    let DecodeErrorKind::RefusedGlobal { module, .. } = error.kind() else {
                        panic!("{error}: {case}")
                    };
                    assert!(["__builtin__", "_codecs"].contains(&module.as_str()));
                    assert_eq!(protocol, Protocol::V2, "{error}: {case}");
                }
            }
        }
    }
    assert!(decoded > 2500, "{decoded}");
}

#[test]
fn sharing_and_cycles_mean_the_same_to_cpython() {
    let build =
        |make: &dyn Fn(&mut Builder) -> Result<_, safepickle::BuildError>| -> Document<'static> {
            let mut builder = Builder::new();
            let root = make(&mut builder).unwrap();
            builder.finish(root).unwrap()
        };
    let documents = [
        (
            "v[0] is v and len(v) == 1",
            build(&|b| {
                let list = b.list()?;
                b.append(list, list)?;
                Ok(list)
            }),
        ),
        (
            "v[0] is v[1] and v[0] == [] and v[2] is v[3] and v[2] == (1, 'x')",
            build(&|b| {
                let (shared, one, x) = (b.list()?, b.int(1)?, b.str("x")?);
                let pair = b.tuple(&[one, x])?;
                b.tuple(&[shared, shared, pair, pair])
            }),
        ),
        (
            "type(v) is tuple and v[0][0] is v and v[1][0] is v and v[0] is not v[1]",
            build(&|b| {
                let (left, right) = (b.list()?, b.list()?);
                let pair = b.tuple(&[left, right])?;
                b.append(left, pair)?;
                b.append(right, pair)?;
                Ok(pair)
            }),
        ),
        (
            "v['self'] is v and v[('k',)][0] is v[('k',)][1]",
            build(&|b| {
                let (dict, name, k, list) = (b.dict()?, b.str("self")?, b.str("k")?, b.list()?);
                let (key, pair) = (b.tuple(&[k])?, b.tuple(&[list, list])?);
                b.insert(dict, name, dict)?;
                b.insert(dict, key, pair)?;
                Ok(dict)
            }),
        ),
        (
            "len(v) == 2500 and all(x is v[0] for x in v) and v[0] == ({0: [v]}, )[0] and v[0][0][0] is v",
            build(&|b| {
                let (list, dict, zero, inner) = (b.list()?, b.dict()?, b.int(0)?, b.list()?);
                b.append(inner, list)?;
                b.insert(dict, zero, inner)?;
                for _ in 0..2500 {
                    b.append(list, dict)?;
                }
                Ok(list)
            }),
        ),
    ];
    let cases: Vec<_> = documents
        .iter()
        .flat_map(|(check, document)| {
            PROTOCOLS.map(|protocol| {
                json!({"pickle": hex(&safepickle::encode(document.root(), protocol).unwrap()), "check": check})
            })
        })
        .collect();
    let Some(answers) = ask(&cases) else { return };
    for ((at, answer), case) in answers.iter().enumerate().zip(&cases) {
        let document = &documents[at / PROTOCOLS.len()].1;
        assert!(answer.wrong.is_empty(), "{:?}: {case}", answer.wrong);
        for stream in &answer.dumps {
            assert_eq!(&safepickle::decode(&unhex(stream)).unwrap(), document);
        }
    }
}

#[test]
fn values_of_rust_types_mean_the_same_to_cpython() {
    let value = (
        (),
        -5_i8,
        u64::MAX,
        i128::MIN,
        'λ',
        Some(2.5_f32),
        vec![(1_u8, "a"), (2, "b")],
        std::collections::BTreeMap::from([(1_u16, [true, false])]),
    );
    let expression =
        "(None, -5, 2**64 - 1, -2**127, 'λ', 2.5, [(1, 'a'), (2, 'b')], {1: (True, False)})";
    let pickles: serde_json::Map<_, _> = PROTOCOLS
        .into_iter()
        .map(|protocol: Protocol| {
            (
                protocol.number().to_string(),
                hex(&safepickle::to_vec(&value, protocol).unwrap()).into(),
            )
        })
        .collect();
    let Some(answers) = ask(&[json!({"expression": expression, "pickles": pickles})]) else {
        return;
    };
    assert!(answers[0].wrong.is_empty(), "{:?}", answers[0].wrong);
}
