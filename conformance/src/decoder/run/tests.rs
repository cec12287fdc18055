//! Processes that end in every way, played by a shell script: the vector at fault is blamed, and no other.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::decoder::exchange::Refusal;
use crate::decoder::judge::Told;
use crate::decoder::supervise::{Bound, Ending, Phase};

/// Answers by the name that is the stream, in hex.
const SCRIPT: &str = r#"
decoded() { echo '{"answer":"decoded","refused":null,"processor_us":7}'; }
value() { echo '{"answer":"done","value":{"shown":"1","likeness":'"$1"'}}'; }
echo '{"answer":"ready"}'
while IFS= read -r line; do
    name=$(printf '%s' "$line" | sed 's/.*"hex":"\([0-9a-f]*\)".*/\1/')
    case $name in
        00) decoded; value '"equal"' ;;
        01) decoded; value '{"different":{"at":"$","expected":"int 1","found":"int 2"}}' ;;
        02) echo '{"answer":"decoded","refused":{"kind":"limit","text":"no"},"processor_us":7}'
            echo '{"answer":"done","value":null}' ;;
        03) echo '{"answer":"decoded","refused":null,"processor_us":9000000}'; value '"equal"' ;;
        10) kill -SEGV $$ ;;
        11) decoded; kill -SEGV $$ ;;
        12) exit 101 ;;
        13) echo 'memory allocation of 77 bytes failed' >&2; kill -ABRT $$ ;;
        14) kill -ABRT $$ ;;
        15) kill -XCPU $$ ;;
        16) echo 'what?' ;;
        17) value '"equal"' ;;
        18) printf '{"answer":' ; exit 0 ;;
        20) exec sleep 1000 ;;
        21) decoded; exec sleep 1000 ;;
    esac
done
"#;

fn script(script: &str) -> Program {
    Program {
        argv: ["sh", "-c", script].map(Into::into).into(),
        env: Vec::new(),
    }
}

fn vector(id: &str, stream: u8, expect: Expect) -> Vector {
    Vector {
        id: format!("test/{id}"),
        group: "test".to_owned(),
        expect,
        stream: vec![stream],
        value: None,
    }
}

fn outcome(program: Program, vectors: &[Vector], jobs: usize, clock: Duration) -> Run<'_> {
    let plan = Plan {
        vectors,
        program,
        bounds: Bounds {
            processor: Duration::from_secs(2),
            clock,
            memory_bytes: 1 << 28,
            start: Duration::from_secs(30),
        },
        jobs,
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(run(&plan, &mut Report::silent()))
}

/// Longer than any answer of the script takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn endings<'a>(run: &'a Run<'_>) -> Vec<(&'a str, &'a Ending)> {
    let records = run.records.iter();
    records
        .map(|record| (record.vector.id.as_str(), &record.observation.ending))
        .collect()
}

#[test]
fn a_process_that_ends_takes_one_vector_with_it() {
    let over = |bound| Ending::Over {
        bound,
        phase: Phase::Decoding,
    };
    let refused = Ending::Refused(Refusal {
        kind: "limit".to_owned(),
        text: "no".to_owned(),
    });
    let crashed = |phase| move |ending: &Ending| matches!(ending, Ending::Crashed { phase: found, .. } if *found == phase);
    let is = |wanted: Ending| move |ending: &Ending| *ending == wanted;
    type Check = Box<dyn Fn(&Ending) -> bool>;
    let cases: Vec<(&str, u8, Check)> = vec![
        ("crash", 0x10, Box::new(crashed(Phase::Decoding))),
        ("crash-after", 0x11, Box::new(crashed(Phase::Using))),
        ("exit", 0x12, Box::new(crashed(Phase::Decoding))),
        ("memory", 0x13, Box::new(is(over(Bound::Memory)))),
        ("abort", 0x14, Box::new(crashed(Phase::Decoding))),
        ("processor", 0x15, Box::new(is(over(Bound::ProcessorTime)))),
        ("nonsense", 0x16, Box::new(crashed(Phase::Decoding))),
        ("out-of-turn", 0x17, Box::new(crashed(Phase::Decoding))),
        ("half-an-answer", 0x18, Box::new(crashed(Phase::Decoding))),
        ("slow", 0x03, Box::new(is(over(Bound::ProcessorTime)))),
        ("refused", 0x02, Box::new(is(refused))),
    ];
    // Between any two that end badly, one that ends well.
    let mut vectors = Vec::new();
    for (id, stream, _) in &cases {
        vectors.push(vector(&format!("before-{id}"), 0x00, Expect::Accept));
        vectors.push(vector(id, *stream, Expect::Accept));
    }
    vectors.push(vector("last", 0x00, Expect::Accept));
    for jobs in [1, 3] {
        let run = outcome(script(SCRIPT), &vectors, jobs, PATIENCE);
        let ids: Vec<_> = run.records.iter().map(|record| &record.vector.id).collect();
        assert_eq!(
            ids,
            vectors.iter().map(|vector| &vector.id).collect::<Vec<_>>()
        );
        for ((id, ending), record) in endings(&run).into_iter().zip(&run.records) {
            match cases.iter().find(|(name, ..)| id == format!("test/{name}")) {
                Some((.., check)) => assert!(check(ending), "{id}: {ending:?}"),
                None => assert_eq!(record.judgement, Judgement::Right, "{id}: {ending:?}"),
            }
        }
        let total = run.total();
        assert_eq!((total.right, total.wrong), (12, 1));
        assert_eq!((total.over_limit, total.crashed), (3, 7));
        assert_eq!(run.exit_status(), exit::FAILURE);
    }
}

#[test]
fn a_process_that_hangs_takes_one_vector_with_it() {
    let vectors = [
        vector("hangs", 0x20, Expect::Reject),
        vector("next", 0x02, Expect::Reject),
        vector("hangs-after", 0x21, Expect::Any),
        vector("last", 0x02, Expect::Reject),
    ];
    // Each hang lasts as long as the bound; the other answers come long before it.
    let run = outcome(script(SCRIPT), &vectors, 2, Duration::from_secs(4));
    let over = |phase| Ending::Over {
        bound: Bound::Clock,
        phase,
    };
    let found: BTreeMap<_, _> = endings(&run).into_iter().collect();
    assert_eq!(found["test/hangs"], &over(Phase::Decoding));
    assert_eq!(found["test/hangs-after"], &over(Phase::Using));
    let total = run.total();
    assert_eq!((total.right, total.over_limit), (2, 2));
    assert_eq!(run.exit_status(), exit::FAILURE);
}

#[test]
fn any_may_be_an_error_or_another_value_but_must_end() {
    let vectors = [
        vector("equal", 0x00, Expect::Any),
        vector("other", 0x01, Expect::Any),
        vector("error", 0x02, Expect::Any),
    ];
    let run = outcome(script(SCRIPT), &vectors, 1, PATIENCE);
    let judgements: Vec<_> = run.records.iter().map(|record| &record.judgement).collect();
    let told = Told {
        expected: "int 1 at $".to_owned(),
        found: "int 2\nin 1".to_owned(),
    };
    assert_eq!(
        judgements,
        [
            &Judgement::AnyEqual,
            &Judgement::AnyOther(told),
            &Judgement::AnyError
        ]
    );
    assert_eq!(run.judged(), 0);
    assert_eq!(run.exit_status(), exit::CONFORMS);
    for stream in [0x03, 0x10] {
        let vectors = [vector("any", stream, Expect::Any)];
        let run = outcome(script(SCRIPT), &vectors, 1, PATIENCE);
        assert_eq!(run.exit_status(), exit::FAILURE, "{stream}");
    }
}

#[test]
fn a_process_that_does_not_start_blames_no_vector() {
    let vectors = [vector("one", 0x00, Expect::Accept)];
    let nonexistent = Program {
        argv: vec!["/nonexistent/decoder".into()],
        env: Vec::new(),
    };
    let not_ready = r#"echo '{"answer":"done","value":null}'; exec sleep 1000"#;
    for program in [nonexistent, script("exit 3"), script(not_ready)] {
        let run = outcome(program, &vectors, 2, PATIENCE);
        assert_eq!(run.records.len(), 0);
        assert!(run.unstartable.is_some());
        assert_eq!(run.exit_status(), exit::NOT_STARTED);
    }
}

#[test]
fn nothing_is_inconclusive() {
    let run = outcome(script(SCRIPT), &[], 2, PATIENCE);
    assert_eq!(run.exit_status(), exit::INCONCLUSIVE);
}
