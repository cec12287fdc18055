//! What one decode may cost.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::{
    self, DecodeErrorKind, Decoder, LimitKind, Limits, Policy, Protocol, encode,
};

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

/// The same for what takes its time in one step: texts that are encoded, counted or copied, and dtypes
/// that are compared.
#[test]
fn what_takes_its_time_in_one_step_is_too_much_work() {
    let limits = Limits::default().work_steps(1_000_000, 0);
    let decoders = [
        Policy::agentix(),
        Policy::agentix().with_numpy(),
        Policy::inspect(),
    ];
    let decoders = decoders.map(|policy| Decoder::new(policy, limits));
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
    let [agentix, numpy, inspect] = &decoders;
    let counted = |opcode: u8, head: &[u8], tail: &[u8]| {
        let content = [head, &b"7".repeat(100_000), tail].concat();
        let len = u32::try_from(content.len()).unwrap().to_le_bytes();
        [&[opcode][..], &len, &content].concat()
    };
    let text = |head: &[u8], tail: &[u8]| counted(b'X', head, tail);
    let bytes = counted(b'B', b"", b"");
    let calls = b"h\x01h\x00R0".repeat(5_000);
    let to_bytes = b"\x8c\x06latin1\x86q\x00c_codecs\nencode\nq\x01";
    too_much(numpy, &[&text(b"", b""), to_bytes, &calls, b"."]);
    // One that fails at the end, which ends nothing there.
    let failing = text(b"", "\u{100}".as_bytes());
    too_much(inspect, &[&failing, to_bytes, &calls, b"."]);
    for (argument, class) in [
        (text(b"1.", b""), &b"cdecimal\nDecimal\n"[..]),
        (text(b"\\\\h\\", b""), b"cpathlib\nPureWindowsPath\n"),
        (bytes.clone(), b"cbuiltins\nbytearray\n"),
    ] {
        too_much(
            agentix,
            &[&argument, b"\x85q\x00", class, b"q\x01", &calls, b"."],
        );
    }
    let undecoded = b"\x85RK\x00K\x01Vr\ntq\x00cbuiltins\nUnicodeDecodeError\nq\x01";
    too_much(
        agentix,
        &[
            b"(Vx\ncbuiltins\nbytearray\n",
            &bytes,
            undecoded,
            &calls,
            b".",
        ],
    );
    // Sets of a long text, each of which is hashed where sets are compared.
    let sets = b"\x8f(h\x00\x900".repeat(5_000);
    too_much(agentix, &[&text(b"", b""), b"q\x00", &sets, b"."]);

    // Two dtypes of many fields that differ in the last: as keys, they are compared again and again.
    let name = |at: u32| [b"\x8c\x05", format!("{at:05}").as_bytes()].concat();
    let names: Vec<u8> = (0..5_000).flat_map(name).collect();
    let others: Vec<u8> = (0..4_998).chain([4_999, 4_998]).flat_map(name).collect();
    let fields: Vec<u8> = (0..5_000)
        .flat_map(|at| [name(at), b"h\x00".to_vec()].concat())
        .collect();
    let plain = |name: &str, order: &str, rest: &[u8]| {
        let size = [name.len() as u8];
        let head = [b"cnumpy\ndtype\n\x8c", &size[..], name.as_bytes()].concat();
        let state = [
            b"\x89\x88\x87R(K\x03\x8c\x01",
            order.as_bytes(),
            rest,
            b"tb",
        ]
        .concat();
        [head, state].concat()
    };
    let unsized_state =
        |flags: u8| [b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK", &[flags][..]].concat();
    let structure = |names: u8| {
        let rest = [b"Nh", &[names][..], b"h\x03K\x01K\x01K\x10"].concat();
        plain("V1", "|", &rest)
    };
    too_much(
        agentix,
        &[
            &plain("i1", "|", &unsized_state(0)),
            b"K\x00\x86q\x00(",
            &names,
            b"tq\x01(",
            &others,
            b"tq\x02}(",
            &fields,
            b"uq\x03",
            &structure(1),
            b"q\x04",
            &structure(2),
            b"q\x05\x8f(h\x04",
            &b"h\x05".repeat(500),
            b"\x90.",
        ],
    );
    // A long text in structures that hold objects.
    let size = |bytes: i32| [b"J", &bytes.to_le_bytes()[..]].concat();
    let long = [b"NNN", size(400_000).as_slice(), b"K\x04K\x08"].concat();
    let both = [
        b"N\x8c\x01a\x8c\x01b\x86}(\x8c\x01ah\x00K\x00\x86\x8c\x01bh\x01K\x08\x86u",
        size(400_008).as_slice(),
        b"K\x01K\x1b",
    ]
    .concat();
    too_much(
        agentix,
        &[
            &plain("O8", "|", &unsized_state(0x3f)),
            b"q\x00",
            &plain("U100000", "<", &long),
            b"q\x01",
            &plain("V400008", "|", &both),
            b"q\x02N",
            &text(b"", b"")[..],
            b"\x86q\x03cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R",
            b"(K\x01M\x88\x13\x85h\x02\x89](",
            &b"h\x03".repeat(5_000),
            b"etb.",
        ],
    );
    // Long names that are put into order before one is missed.
    let long_names: Vec<u8> = (0..10)
        .flat_map(|at| [text(b"", &[b'a' + at]), b"N".to_vec()].concat())
        .collect();
    too_much(
        inspect,
        &[
            b"}(",
            &long_names,
            b"uq\x00cnumpy\ndtype\n\x8c\x02V1\x89\x88\x87Rq\x01(K\x03\x8c\x01|N\x8c\x01z\x85h\x00",
            b"K\x01K\x01K\x10tq\x02",
            &b"h\x01h\x02b0".repeat(5_000),
            b".",
        ],
    );
}

/// What many objects share is written, and compared, once: these took minutes.
#[test]
fn what_is_shared_by_many_is_not_walked_for_each() {
    let round = |parts: &[&[u8]]| {
        let stream = parts.concat();
        let document = safepickle::decode(&stream).unwrap();
        let pickle = encode(document.root(), Protocol::DEFAULT).unwrap();
        assert!(pickle.len() < 2 * stream.len());
        assert_eq!(safepickle::decode(&pickle).unwrap(), document);
    };
    // Arguments of exceptions, and those that a state gave to groups.
    let nones = b"N".repeat(200_000);
    let calls = b"h\x01h\x00R".repeat(100_000);
    let class = b"tq\x00cbuiltins\nValueError\nq\x01";
    round(&[b"\x80\x04((", &nones, class, &calls, b"t."]);
    let nested = b"h\x02".repeat(100_000);
    let groups = b"h\x01h\x00Rh\x03b".repeat(50_000);
    round(&[
        b"\x80\x04(cbuiltins\nValueError\n)Rq\x02\x8c\x01mh\x02\x85\x86q\x00",
        b"cbuiltins\nExceptionGroup\nq\x01}\x8c\x04args\x8c\x01m(",
        &nested,
        b"t\x86sq\x03",
        &groups,
        b"t.",
    ]);
    // A set of exceptions that look alike; one long Decimal.
    let alike = b"h\x00)R".repeat(200_000);
    round(&[
        b"\x80\x04cbuiltins\nValueError\nq\x00\x8f(",
        &alike,
        b"\x90.",
    ]);
    let digits = [b"X", &500_000_u32.to_le_bytes()[..], &b"7".repeat(500_000)].concat();
    let same = b"h\x00".repeat(500_000);
    round(&[
        b"(cdecimal\nDecimal\n",
        &digits,
        b"\x85Rq\x00",
        &same,
        b"t.",
    ]);
}
