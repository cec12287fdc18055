//! Printing.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::{self, Document};

fn decode(stream: &[u8]) -> Document<'_> {
    safepickle::decode(stream).unwrap_or_else(|error| panic!("{}: {error}", stream.escape_ascii()))
}

#[test]
fn printing_is_bounded_and_in_the_manner_of_repr() {
    let document = decode(b"(N\x88K\x01G\x3f\xf8\x00\x00\x00\x00\x00\x00\x8c\x02a'C\x01\xff](K\x01e\x85}\x8c\x01kNs\x8f(K\x01\x91t.");
    assert_eq!(
        format!("{document:?}"),
        "(None, True, 1, 1.5, 'a\\'', b'\\xff', ([1],), {'k': None}, set(), frozenset({1}))"
    );
    assert_eq!(format!("{:?}", decode(b"]\x94h\x00a.")), "[<cycle>]");
    let mut long = b"](".to_vec();
    long.extend(b"K\x01".repeat(100_000));
    long.extend(b"e.");
    assert!(format!("{:?}", decode(&long)).len() < 5000);
}

/// What CPython's `repr` gives, but for classes, which have their modules here.
#[test]
fn value_types_are_printed_as_by_repr() {
    let cases: &[(&[u8], &str)] = &[
        (b"G\x43\x40\x00\x00\x00\x00\x00\x00.", "9007199254740992.0"),
        (b"G\x43\x41\xc3\x79\x37\xe0\x80\x00.", "1e+16"),
        (b"G\x3e\xe4\xf8\xb5\x88\xe3\x68\xf1.", "1e-05"),
        (b"G\x80\x00\x00\x00\x00\x00\x00\x00.", "-0.0"),
        (b"G\x7f\xf0\x00\x00\x00\x00\x00\x00.", "inf"),
        (b"cbuiltins\ncomplex\nG\x3f\xf8\x00\x00\x00\x00\x00\x00G\xc0\x00\x00\x00\x00\x00\x00\x00\x86R.", "(1.5-2j)"),
        (b"cbuiltins\ncomplex\nG\x00\x00\x00\x00\x00\x00\x00\x00G\x3f\xf0\x00\x00\x00\x00\x00\x00\x86R.", "1j"),
        (b"cbuiltins\ncomplex\nG\x80\x00\x00\x00\x00\x00\x00\x00G\x7f\xf8\x00\x00\x00\x00\x00\x00\x86R.", "(-0+nanj)"),
        (b"cbuiltins\nrange\nK\x01K\x05K\x01\x87R.", "range(1, 5)"),
        (b"cbuiltins\nrange\nK\x01K\x05K\x02\x87R.", "range(1, 5, 2)"),
        (b"cbuiltins\nslice\nNK\x05N\x87R.", "slice(None, 5, None)"),
        (b"cdatetime\ndate\nC\x04\x07\xe8\x05\x11\x85R.", "datetime.date(2024, 5, 17)"),
        (b"cdatetime\ntime\nC\x06\x81\x02\x00\x00\x00\x05\x85R.", "datetime.time(1, 2, 0, 5, fold=1)"),
        (b"cdatetime\ndatetime\nC\x0a\x07\xe8\x85\x11\x01\x02\x00\x00\x00\x00cdatetime\ntimezone\ncdatetime\ntimedelta\nK\x00K\x3cK\x00\x87R\x8c\x01x\x86R\x86R.",
            "datetime.datetime(2024, 5, 17, 1, 2, fold=1, tzinfo=datetime.timezone(datetime.timedelta(seconds=60), 'x'))"),
        (b"cdatetime\ntimezone\ncdatetime\ntimedelta\nK\x00K\x00K\x00\x87R\x85R.", "datetime.timezone.utc"),
        (b"cdatetime\ntimedelta\nK\x00K\x00K\x00\x87R.", "datetime.timedelta(0)"),
        (b"cdatetime\ntimedelta\nJ\xff\xff\xff\xffK\x05K\x07\x87R.", "datetime.timedelta(days=-1, seconds=5, microseconds=7)"),
        (b"cdecimal\nDecimal\n\x8c\x041.50\x85R.", "Decimal('1.50')"),
        (b"cfractions\nFraction\nK\x01K\x02\x86R.", "Fraction(1, 2)"),
        (b"cuuid\nUUID\n)\x81}\x8c\x03intK\x01sb.", "UUID('00000000-0000-0000-0000-000000000001')"),
        (b"cpathlib\nPurePosixPath\n\x8c\x01/\x8c\x02a'\x86R.", "PurePosixPath('/a\\'')"),
        (b"cpathlib\nPurePosixPath\n)R.", "PurePosixPath('.')"),
        (b"ccollections\nOrderedDict\n)R.", "OrderedDict()"),
        (b"ccollections\ndefaultdict\n)R.", "defaultdict(None, {})"),
        (b"ccollections\ndeque\n]K\x01aK\x03\x86R.", "deque([1], maxlen=3)"),
        (b"cbuiltins\nKeyError\n\x8c\x01kK\x01\x86R.", "KeyError('k', 1)"),
        (b"cbuiltins\nlist\n.", "<class builtins.list>"),
        (b"ccopyreg\n__newobj__\n.", "<function copyreg.__newobj__>"),
    ];
    for (stream, printed) in cases {
        assert_eq!(format!("{:?}", decode(stream)), *printed);
    }
}
