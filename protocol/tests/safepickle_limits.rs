//! What one decode may cost.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::{self, DecodeErrorKind, Decoder, LimitKind, Limits, Policy};

/// Kind of the error that `stream` gives.
#[track_caller]
fn error(stream: &[u8]) -> DecodeErrorKind {
    safepickle::decode(stream).unwrap_err().kind().clone()
}

#[test]
fn every_limit_is_a_typed_error() {
    #[track_caller]
    fn over(limits: Limits, stream: &[u8], limit: LimitKind, allowed: u64, value: u64) {
        let error = Decoder::new(Policy::agentix(), limits)
            .decode(stream)
            .unwrap_err();
        assert_eq!(
            error.kind(),
            &DecodeErrorKind::Limit {
                limit,
                allowed,
                value
            }
        );
    }
    let limits = Limits::default();
    over(limits.input_bytes(3), b"]Na.", LimitKind::InputBytes, 3, 4);
    over(limits.nodes(1), b"]]a.", LimitKind::Nodes, 1, 2);
    over(
        limits.owned_bytes(2),
        b"Vabc\n.",
        LimitKind::OwnedBytes,
        2,
        3,
    );
    over(
        limits.owned_bytes(8),
        b"\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01.",
        LimitKind::OwnedBytes,
        8,
        10,
    );
    over(
        limits.memo_entries(1),
        b"Nq\x00q\x09.",
        LimitKind::MemoEntries,
        1,
        2,
    );
    over(
        limits.integer_digits(2),
        b"I123\n.",
        LimitKind::IntegerDigits,
        2,
        3,
    );
    over(
        limits.key_depth(1),
        b"}N\x85\x85Ns.",
        LimitKind::KeyDepth,
        1,
        2,
    );
    over(
        limits.work_steps(3, 0),
        b"}N\x85\x85\x85Ns.",
        LimitKind::WorkSteps,
        3,
        4,
    );
    over(limits.depth(0), b"]]a.", LimitKind::Depth, 0, 1);
    over(limits.depth(2), b"]]]]aaa.", LimitKind::Depth, 2, 3);
    let fits = Decoder::new(Policy::agentix(), limits.memo_entries(1).nodes(1));
    assert!(
        fits.decode(b"Nq\x00q\x00.").is_ok(),
        "an entry may be replaced"
    );
}

#[test]
fn a_key_that_unfolds_without_end_is_too_much_work() {
    let mut stream = b"}N".to_vec();
    stream.extend(b"2\x86".repeat(60));
    stream.extend(b"Ns.");
    let kind = error(&stream);
    assert!(
        matches!(
            kind,
            DecodeErrorKind::Limit {
                limit: LimitKind::WorkSteps,
                ..
            }
        ),
        "{kind:?}"
    );
}

#[test]
fn depth_counts_containers_one_inside_the_other() {
    let depth = |allowed| Decoder::new(Policy::agentix(), Limits::default().depth(allowed));
    // What holds nothing has no depth; siblings do not add up.
    assert!(depth(0).decode(b"N.").is_ok());
    assert!(depth(0).decode(b"].").is_ok());
    assert!(depth(1).decode(b"]]a]a]a.").is_ok());
    assert!(depth(0).decode(b"]]a]a]a.").is_err());
    // A shared part counts where it is deepest: [[1], [[1]]].
    let shared = b"](]K\x01aq\x00]h\x00ae.";
    assert!(depth(3).decode(shared).is_ok());
    assert!(depth(2).decode(shared).is_err());
    // A cycle has no end.
    let error = depth(u64::MAX - 1).decode(b"]q\x00h\x00a.").unwrap_err();
    assert_eq!(
        error.kind(),
        &DecodeErrorKind::Limit {
            limit: LimitKind::Depth,
            allowed: u64::MAX - 1,
            value: u64::MAX
        }
    );
    // By default depth is free.
    assert!(safepickle::decode(b"]q\x00h\x00a.").is_ok());
}

/// What is cheap to write and dear to look at is charged each time that it is looked at.
#[test]
fn what_is_looked_at_again_and_again_is_too_much_work() {
    // Enough for what each of these builds first, many times over.
    let limits = Limits::default().work_steps(1_000_000, 0);
    let inspect = Decoder::new(Policy::inspect(), limits);
    let agentix = Decoder::new(Policy::agentix(), limits);
    #[track_caller]
    fn too_much(decoder: &Decoder, parts: &[&[u8]]) {
        let error = decoder.decode(&parts.concat()).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                DecodeErrorKind::Limit {
                    limit: LimitKind::WorkSteps,
                    ..
                }
            ),
            "{error}"
        );
    }
    let long = "a".repeat(100_000);
    let text = [b"X".as_slice(), &100_000_u32.to_le_bytes(), long.as_bytes()].concat();
    // A long name, and a long persistent id.
    let (names, ids) = (b"h\x00h\x00\x930".repeat(10_000), b"h\x00Q0".repeat(10_000));
    too_much(&inspect, &[&text, b"q\x00", &names, b"."]);
    too_much(&inspect, &[&text, b"q\x00", &ids, b"."]);
    // A large state, the last key of which is no name; one that is; one for a record of the framework.
    let mut entries = Vec::new();
    for key in 0..50_000_u32 {
        let name = format!("{key:08}");
        entries.extend([b"\x8c\x08".as_slice(), name.as_bytes(), b"N"].concat());
    }
    let states = b"h\x00b".repeat(50_000);
    let object = b"cm\nC\n)\x81";
    too_much(
        &inspect,
        &[b"}(", &entries, b"NNuq\x00", object, &states, b"."],
    );
    too_much(
        &inspect,
        &[b"}(", &entries, b"uq\x00", object, &states, b"."],
    );
    let fields = b"\x8c\x04pathN\x8c\x04sizeN";
    let record = b"cagentix.files\nUploadResult\n)\x81";
    too_much(
        &agentix,
        &[b"}(", &entries, fields, b"uq\x00", record, &states, b"."],
    );
    // A list that becomes a set, a deque, a tuple of arguments.
    let list = [b"](", b"N".repeat(100_000).as_slice(), b"eq\x00"].concat();
    for call in [
        &b"cbuiltins\nfrozenset\nh\x00\x85R0"[..],
        b"ccollections\ndeque\nh\x00\x85R0",
    ] {
        too_much(&agentix, &[&list, &call.repeat(5_000), b"."]);
    }
    let tuple = [
        b"(cm\nC\n",
        b"N".repeat(100_000).as_slice(),
        b"tq\x00ccopyreg\n__newobj__\nq\x01",
    ]
    .concat();
    too_much(&inspect, &[&tuple, &b"h\x01h\x00R0".repeat(5_000), b"."]);
}
