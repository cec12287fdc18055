//! What the encoder writes, as CPython reads it: every accepted vector, and values made by hand.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use agentix_protocol::safepickle::{self, Decoder, EncodeError, Kind, Limits, Policy, Protocol};
use data_encoding::HEXLOWER;
use serde_json::{Value as Json, json};

const PROTOCOLS: [Protocol; 4] = [Protocol::V2, Protocol::V3, Protocol::V4, Protocol::V5];

/// Sends lines to the script and gives back its answers, or `None` where there is no Python.
fn ask(cases: &[Json]) -> Option<Vec<Json>> {
    let python = std::env::var_os("AGENTIX_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/python/same.py");
    let spawned = Command::new(&python)
        .args(["-B", "-W", "ignore"])
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut python = match spawned {
        Ok(python) => python,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Past the harness's capture.
            let line = b"NOT RUN safepickle_cpython_vectors: python3 not found\n";
            std::io::stderr().write_all(line).unwrap();
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
    let answers: Vec<Json> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), cases.len() + 1);
    Some(answers)
}

/// Every protocol's stream for what `stream` decodes to, each of which decodes to the same.
fn encoded(decoder: &Decoder, stream: &[u8]) -> serde_json::Map<String, Json> {
    let document = decoder
        .decode(stream)
        .unwrap_or_else(|error| panic!("{}: {error}", stream.escape_ascii()));
    let mut others = serde_json::Map::new();
    for protocol in PROTOCOLS {
        let name = format!("protocol {}", protocol.number());
        match safepickle::encode(document.root(), protocol) {
            Ok(pickle) => {
                let again = decoder
                    .decode(&pickle)
                    .unwrap_or_else(|error| panic!("{document:?} as {name}: {error}"));
                assert_eq!(again, document, "{name}");
                others.insert(name, HEXLOWER.encode(&pickle).into());
            }
            // What later protocols hold, they hold.
            Err(EncodeError::NotInProtocol { needed, .. }) => {
                assert!(protocol < needed && needed <= Protocol::V4);
            }
            Err(error) => panic!("{document:?} as {name}: {error}"),
        }
    }
    others
}

#[test]
fn accepted_vectors_mean_the_same_to_cpython_once_they_are_encoded() {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../spec/vectors/pickle/public.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let decoder = Decoder::default();
    let (mut cases, mut groups) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let vector: Json = serde_json::from_str(line).unwrap();
        if vector["expect"] != "accept" {
            continue;
        }
        let hex = vector["hex"].as_str().unwrap();
        let stream = HEXLOWER.decode(hex.as_bytes()).unwrap();
        if decoder.decode(&stream).is_err() {
            continue;
        }
        let others = encoded(&decoder, &stream);
        assert!(others.contains_key("protocol 4") && others.contains_key("protocol 5"));
        cases.push(json!({"id": vector["id"], "stream": hex, "others": others}));
        groups.push(vector["group"].as_str().unwrap().to_owned());
    }
    let Some(answers) = ask(&cases) else { return };
    let numpy = answers.last().unwrap()["numpy"] == true;
    let (mut compared, mut wrong) = (BTreeMap::new(), Vec::new());
    for ((case, group), answer) in cases.iter().zip(groups).zip(&answers) {
        let id = case["id"].as_str().unwrap();
        match answer["no_value"].as_str() {
            // Arrays need numpy.
            Some(error) if !numpy && error.contains("numpy") => continue,
            Some(error) => wrong.push(format!("{id}: the vector itself: {error}")),
            None => {}
        }
        for what in answer["wrong"].as_array().unwrap() {
            wrong.push(format!("{id}: {what}"));
        }
        *compared.entry(group).or_insert(0) += case["others"].as_object().unwrap().len();
    }
    println!("{compared:#?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sharing, cycles and states that no vector has.
const GRAPHS: &[(&str, &[u8])] = &[
    ("a dict that holds the point whose state it is", b"\x80\x04}\x94\x8c\x03app\x8c\x05Point\x93)\x81\x940(\x8c\x01aK\x01\x8c\x01ph\x01u0h\x01h\x00b0h\x00."),
    ("the same from the point", b"\x80\x04}\x94\x8c\x03app\x8c\x05Point\x93)\x81\x940(\x8c\x01aK\x01\x8c\x01ph\x01u0h\x01h\x00b."),
    ("a pair of states that hold the point", b"\x80\x04}\x94}\x94capp\nPoint\n)\x81\x94(0h\x00\x8c\x01ah\x02s0h\x01\x8c\x01bh\x02s0h\x02h\x00h\x01\x86b0h\x00."),
    ("a list that holds the point that is made of it", b"\x80\x04]\x940capp\nPoint\nh\x00\x85\x81\x94h\x00h\x01a."),
    ("the same from the point", b"\x80\x04]\x940capp\nPoint\nh\x00\x85\x81\x94h\x00h\x01a0."),
    ("keywords", b"\x80\x04capp\nPoint\n)}\x8c\x01k]\x94s\x92\x94h\x00h\x01a0."),
    ("a tuple that holds a list that holds it", b"\x80\x04]\x94h\x00\x85\x94a0h\x01."),
    ("a slice whose end is a list that holds it", b"\x80\x04cbuiltins\nslice\nN]\x94N\x87R\x94h\x00h\x01a0h\x01."),
    ("a deque of a tuple that holds it", b"\x80\x04ccollections\ndeque\n)K\x03\x86R\x94h\x00\x85a."),
    ("the same from the tuple", b"\x80\x04ccollections\ndeque\n)K\x03\x86R\x94h\x00\x85\x94h\x00h\x01a0h\x01."),
    ("an OrderedDict that holds itself twice", b"\x80\x04ccollections\nOrderedDict\n)R\x94\x8c\x01ah\x00s}\x8c\x02meh\x00\x85sb."),
    ("a tuple of an OrderedDict that holds it", b"\x80\x04ccollections\nOrderedDict\n)R\x94h\x00\x85\x94h\x00\x8c\x01ah\x01s}\x8c\x02meh\x01sb0h\x01."),
    ("a Counter of tuples", b"\x80\x04ccollections\nCounter\n}(K\x01K\x02K\x01\x85K\x03u\x85R\x94h\x00\x86."),
    ("a defaultdict that makes points", b"\x80\x04ccollections\ndefaultdict\ncapp\nPoint\n\x94\x85R\x94K\x01h\x01h\x00\x86s."),
    ("a frozenset of a point that holds it", b"\x80\x04capp\nPoint\n)\x81\x94(h\x00\x91\x94h\x00}\x8c\x01fh\x01sb0h\x01."),
    ("a set of a point that holds it", b"\x80\x04\x8f\x94(capp\nPoint\n)\x81\x94}\x8c\x01sh\x00sb\x90."),
    ("a set of a point that is made of it", b"\x80\x04\x8f\x94(capp\nPoint\nh\x00\x85\x81\x90."),
    ("a point as a key of a dict that it holds", b"\x80\x04}\x94capp\nPoint\n)\x81\x94}\x8c\x01dh\x00sbh\x01\x85s."),
    ("a list of a class of its own, that holds itself", b"\x80\x04capp\nItems\n)\x81\x94(K\x01h\x00e(K\x00h\x00u}\x8c\x01xh\x00sb."),
    ("two points of one state", b"\x80\x04}\x94\x8c\x01x]\x94scapp\nPoint\n\x94)\x81h\x00bh\x02)\x81h\x00b\x86h\x01\x86."),
    ("an exception of a list that holds it", b"\x80\x04]\x94h\x00cbuiltins\nKeyError\nh\x00\x85R\x94a0h\x01."),
    ("an exception whose attribute is a list of it", b"\x80\x04cbuiltins\nKeyError\n)R\x94}(\x8c\x01a](h\x00h\x00eub."),
    ("a set of an exception of it", b"\x80\x04\x8f\x94(cbuiltins\nKeyError\n)R\x94}\x8c\x01ah\x00sb\x90h\x01."),
    ("a file error whose file is a list of it", b"\x80\x04]\x94h\x00cbuiltins\nOSError\n(K\x02\x8c\x01xh\x00tR\x94a0h\x01."),
    ("a file error whose file is a tuple of it", b"\x80\x04cbuiltins\nOSError\nK\x02\x8c\x01x\x86R\x94}\x8c\x08filenameh\x00\x85sb."),
    ("keywords that change", b"\x80\x04capp\nPoint\n)}\x94\x8c\x01aK\x01s\x92\x94h\x00\x8c\x01kh\x01s0."),
    ("a state that changes", b"\x80\x04capp\nPoint\n)\x81\x94}\x94\x8c\x01aK\x01sbh\x01\x8c\x01bh\x00s0."),
    ("a state that is a list of the point", b"\x80\x04capp\nItems\n)\x81\x94]\x94h\x00ab0h\x01."),
    ("a file error of two files", b"\x80\x04cbuiltins\nOSError\n(K\x02\x8c\x01x\x8c\x01aN\x8c\x01btR."),
    ("a file error with a second file only", b"\x80\x04cbuiltins\nOSError\nK\x02\x8c\x01x\x86R}\x8c\x09filename2\x8c\x01bsb."),
    ("an OSError of a number with a class of its own", b"\x80\x04cbuiltins\nOSError\n)R}\x8c\x04argsK\x02\x8c\x01x\x86sb."),
    ("characters written", b"\x80\x04cbuiltins\nBlockingIOError\nK\x0b\x8c\x01xK\x2a\x87R."),
    ("characters written, by a state", b"\x80\x04cbuiltins\nOSError\n)R}\x8c\x12characters_writtenK\x2asb."),
    ("a group of an exception that holds it", b"\x80\x04]\x94cbuiltins\nKeyError\n)R\x94a0cbuiltins\nExceptionGroup\n\x8c\x01mh\x00\x86R\x94h\x01}\x8c\x01gh\x02sb0."),
    ("the same from the exception", b"\x80\x04]\x94cbuiltins\nKeyError\n)R\x94a0cbuiltins\nExceptionGroup\n\x8c\x01mh\x00\x86R\x94h\x01}\x8c\x01gh\x02sb."),
    ("a group of a list that grew by it", b"\x80\x04]\x94cbuiltins\nKeyError\n)R\x94a0cbuiltins\nExceptionGroup\n\x8c\x01mh\x00\x86R\x94h\x00h\x02a."),
    ("a group of a tuple", b"\x80\x04cbuiltins\nExceptionGroup\n\x8c\x01mcbuiltins\nKeyError\n)R\x85\x86R."),
    ("a SyntaxError of a list that changed", b"\x80\x04]\x94(\x8c\x01fK\x01K\x02\x8c\x01te0cbuiltins\nSyntaxError\n\x8c\x01mh\x00\x86R\x94h\x00Na0h\x01."),
    ("a SyntaxError of a tuple", b"\x80\x04cbuiltins\nSyntaxError\n\x8c\x01m(\x8c\x01fK\x01K\x02\x8c\x01tt\x86R}\x8c\x04textNsb."),
    ("a bytearray that was not decoded", b"\x80\x05cbuiltins\nUnicodeDecodeError\n(\x8c\x01e\x96\x01\x00\x00\x00\x00\x00\x00\x00xK\x00K\x01\x8c\x01rtR."),
    ("an encode error with other fields than arguments", b"\x80\x04cbuiltins\nUnicodeEncodeError\n(\x8c\x01e\x8c\x01oK\x00K\x01\x8c\x01rtR}(\x8c\x06reason\x8c\x01s\x8c\x04args)ub."),
    ("an exit with two arguments", b"\x80\x04cbuiltins\nSystemExit\nK\x01K\x02\x86R."),
    ("an exit with another code", b"\x80\x04cbuiltins\nSystemExit\nK\x01K\x02\x86R}\x8c\x04codeK\x03sb."),
    ("fields and attributes by a state", b"\x80\x04cbuiltins\nAttributeError\n\x8c\x01m\x85R}(\x8c\x04name\x8c\x01n\x8c\x03obj]\x94\x8c\x01xh\x00ub."),
    ("an ImportError with a path", b"\x80\x04cbuiltins\nImportError\n\x8c\x01m\x85R}\x8c\x04path\x8c\x01psb."),
    ("two states of one point", b"\x80\x04capp\nPoint\n)\x81}\x8c\x01xK\x01sb}\x8c\x01yK\x02sb."),
    ("a state in slots", b"\x80\x04capp\nPoint\n)\x81N}\x8c\x01xK\x01s\x86b."),
    ("a big int, a str and bytes twice each", b"\x80\x04\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01\x94h\x00\x86\x8c\x01a\x94h\x01\x86C\x01b\x94h\x02\x86\x87."),
    ("classes and functions", b"\x80\x04(cbuiltins\nlist\n\x94h\x00ccopyreg\n__newobj__\ncbuiltins\nValueError\nt."),
];

#[test]
fn graphs_mean_the_same_to_cpython_once_they_are_encoded() {
    let policy = Policy::agentix()
        .allow("app", "Point")
        .allow("app", "Items");
    let decoder = Decoder::new(policy, Limits::default());
    let cases: Vec<Json> = GRAPHS
        .iter()
        .map(|(name, stream)| {
            json!({"id": name, "stream": HEXLOWER.encode(stream), "others": encoded(&decoder, stream)})
        })
        .collect();
    let Some(answers) = ask(&cases) else { return };
    for (case, answer) in cases.iter().zip(&answers) {
        assert_eq!(answer["no_value"], Json::Null, "{case}");
        assert_eq!(answer["wrong"], json!([]), "{case}");
    }
}

#[test]
fn a_set_that_holds_itself_needs_protocol_4() {
    let policy = Policy::agentix().allow("app", "Point");
    let decoder = Decoder::new(policy, Limits::default());
    let stream = b"\x80\x04\x8f\x94(capp\nPoint\nh\x00\x85\x81\x90.";
    let document = decoder.decode(stream).unwrap();
    assert_eq!(
        safepickle::encode(document.root(), Protocol::V3),
        Err(EncodeError::NotInProtocol {
            kind: Kind::Set,
            protocol: Protocol::V3,
            needed: Protocol::V4
        })
    );
}
