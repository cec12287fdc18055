//! Which values are one key of a dict or one element of a set.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::PathClass::{
    PosixPath, PurePosixPath, PureWindowsPath, WindowsPath,
};
use agentix_protocol::safepickle::{
    BuildError, Builder, DecodeErrorKind, Kind, LimitKind, NodeId, decode,
};
use num_bigint::BigInt;

/// How many keys are left of these.
#[track_caller]
fn count(make: impl Fn(&mut Builder) -> Result<Vec<NodeId>, BuildError>) -> usize {
    let mut builder = Builder::new();
    let keys = make(&mut builder).unwrap();
    let set = builder.set(&keys).unwrap();
    // Enough other keys that hashes are looked up, not only compared.
    let mut many: Vec<NodeId> = (1000..1020).map(|int| builder.int(int).unwrap()).collect();
    many.extend(&keys);
    let large = builder.set(&many).unwrap();
    let both = builder.tuple(&[set, large]).unwrap();
    let document = builder.finish(both).unwrap();
    let sets = document.root().tuple().unwrap();
    let len = |at| sets.at(at).unwrap().set().unwrap().len();
    assert_eq!(len(0) + 20, len(1));
    len(0)
}

#[test]
fn numbers_are_one_key_if_they_are_worth_the_same() {
    let two = count(|b| {
        let mut keys = vec![
            b.bool(true)?,
            b.int(1)?,
            b.float(1.0)?,
            b.complex(1.0, -0.0)?,
        ];
        keys.extend([b.decimal("1")?, b.decimal("1.000")?, b.fraction(3, 3)?]);
        // One more, with several forms.
        keys.extend([b.fraction(1, 4)?, b.float(0.25)?, b.decimal("0.250")?]);
        Ok(keys)
    });
    assert_eq!(two, 2);
    let large = count(|b| {
        let ten = BigInt::from(10).pow(400);
        Ok(vec![
            b.int(ten.clone())?,
            b.decimal("1E+400")?,
            b.decimal("10.0E+399")?,
            b.fraction(ten, 1)?,
        ])
    });
    assert_eq!(large, 1);
    let apart = count(|b| {
        let ten = BigInt::from(10).pow(400);
        Ok(vec![
            b.int(ten + 1)?,
            b.decimal("1E+400")?,
            b.float(0.1)?,
            b.decimal("0.1")?,
            b.fraction(1, 10_000_000_000_000_000_000_u64)?,
            b.decimal("1E+999999999999")?,
            b.decimal("1E-999999999999")?,
            b.decimal("-1E-999999999999")?,
            b.complex(1.0, 2.0)?,
            b.complex(2.0, 1.0)?,
        ])
    });
    assert_eq!(apart, 10);
    let same = count(|b| Ok(vec![b.fraction(1, 10)?, b.decimal("0.1")?]));
    assert_eq!(same, 1);
    let ends = count(|b| {
        let infinite = [
            b.float(f64::INFINITY)?,
            b.decimal("Infinity")?,
            b.complex(f64::INFINITY, 0.0)?,
        ];
        let zeros = [
            b.float(-0.0)?,
            b.decimal("-0E+7")?,
            b.fraction(0, 1)?,
            b.decimal("0E-9")?,
        ];
        Ok([&infinite[..], &zeros[..]].concat())
    });
    assert_eq!(ends, 2);
}

#[test]
fn what_is_equal_to_itself_only_is_a_key_once_an_object() {
    let keys = count(|b| {
        let nan = [
            b.float(f64::NAN)?,
            b.decimal("NaN")?,
            b.complex(f64::NAN, 0.0)?,
        ];
        let error = b.global("builtins", "ValueError")?;
        let errors = [b.call(error, &[])?, b.call(error, &[])?];
        let record = [b.record("app", "A", &[])?, b.record("app", "A", &[])?];
        Ok([
            &nan[..],
            &nan,
            &[b.float(f64::NAN)?],
            &errors,
            &errors,
            &record,
            &record,
        ]
        .concat())
    });
    assert_eq!(keys, 8);
    let names = count(|b| {
        Ok(vec![
            b.global("builtins", "OSError")?,
            b.global("builtins", "IOError")?,
            b.global("pathlib", "PosixPath")?,
            b.global("pathlib._local", "PosixPath")?,
            b.global("app", "PosixPath")?,
        ])
    });
    assert_eq!(names, 3);
}

#[test]
fn paths_are_keys_by_flavour_and_ranges_as_sequences() {
    let paths = count(|b| {
        Ok(vec![
            b.path(PosixPath, &["a", "B"])?,
            b.path(PurePosixPath, &["a/B"])?,
            b.path(PurePosixPath, &["a/b"])?,
            b.path(WindowsPath, &["a/B\u{3a3}"])?,
            b.path(PureWindowsPath, &["A", "b\u{3c2}"])?,
        ])
    });
    assert_eq!(paths, 3);
    let ranges = count(|b| {
        let far: BigInt = BigInt::from(1) << 100;
        Ok(vec![
            b.range(0, 0, 1)?,
            b.range(5, 2, 7)?,
            b.range(0, 3, 2)?,
            b.range(0, 4, 2)?,
            b.range(7, 8, 1)?,
            b.range(7, 100, 1000)?,
            b.range(far.clone(), far, -1)?,
        ])
    });
    assert_eq!(ranges, 3);
}

#[test]
fn what_python_cannot_hash_is_no_key() {
    let mut b = Builder::new();
    let snan = b.decimal("sNaN").unwrap();
    let int = b.int(1).unwrap();
    let keys = [
        (snan, Kind::Decimal),
        (b.slice(int, int, int).unwrap(), Kind::Slice),
        (b.list().unwrap(), Kind::List),
        (b.ordered_dict().unwrap(), Kind::OrderedDict),
        (b.deque(None).unwrap(), Kind::Deque),
    ];
    for (key, kind) in keys {
        assert_eq!(b.set(&[key]), Err(BuildError::Unhashable(kind)));
        let wrapped = b.tuple(&[key]).unwrap();
        assert_eq!(b.set(&[wrapped]), Err(BuildError::Unhashable(kind)));
    }
    // A UUID is a key once it has its state, and not before.
    assert!(
        decode(b"\x80\x04cuuid\nUUID\n)\x81\x94}h\x00K\x01s0h\x00}\x8c\x03intK\x01sb.").is_err()
    );
    assert!(decode(b"\x80\x04cuuid\nUUID\n)\x81\x94}\x8c\x03intK\x01sb0}h\x00K\x01s.").is_ok());
}

#[test]
fn sets_of_what_has_no_value_compare_by_looks_and_content() {
    let make = |codes: [i64; 2], nan: u64| {
        let mut b = Builder::new();
        let error = b.global("builtins", "ValueError").unwrap();
        let mut elements = vec![b.float(f64::from_bits(nan)).unwrap()];
        for code in codes {
            let list = b.list().unwrap();
            let code = b.int(code).unwrap();
            b.append(list, code).unwrap();
            elements.push(b.call(error, &[code, list]).unwrap());
        }
        let set = b.set(&elements).unwrap();
        b.finish(set).unwrap()
    };
    let nan = f64::NAN.to_bits();
    assert_eq!(make([1, 2], nan), make([2, 1], nan));
    assert_ne!(make([1, 2], nan), make([1, 3], nan));
    assert_ne!(make([1, 2], nan), make([1, 2], nan | 1));
}

#[test]
fn sets_that_python_holds_equal_may_differ() {
    let set = |make: fn(&mut Builder) -> Result<NodeId, BuildError>| {
        let mut b = Builder::new();
        let element = make(&mut b).unwrap();
        let set = b.frozenset(&[element]).unwrap();
        b.finish(set).unwrap()
    };
    assert_eq!(set(|b| b.decimal("1.0")), set(|b| b.decimal("1.0")));
    assert_ne!(set(|b| b.decimal("1.0")), set(|b| b.decimal("1.00")));
    assert_ne!(set(|b| b.int(1)), set(|b| b.float(1.0)));
    assert_ne!(set(|b| b.int(1)), set(|b| b.bool(true)));
    assert_ne!(set(|b| b.range(0, 3, 2)), set(|b| b.range(0, 4, 2)));
}

#[test]
fn comparing_what_is_large_is_charged() {
    // Two numbers of 8,000 digits that are worth the same, compared as an int and as a Decimal.
    let digits = 8_000;
    let int = BigInt::from(10).pow(digits).to_signed_bytes_le();
    let mut stream = b"\x80\x04\x8b".to_vec();
    stream.extend((int.len() as u32).to_le_bytes());
    stream.extend(&int);
    stream.extend(b"\x94cdecimal\nDecimal\n");
    let text = format!("1E+{digits}");
    stream.extend([b'\x8c', text.len() as u8]);
    stream.extend(text.bytes());
    stream.extend(b"\x85R\x94(");
    for _ in 0..2_000 {
        stream.extend(b"}h\x00h\x01sh\x01h\x00s");
    }
    stream.extend(b"t.");
    let error = decode(&stream).unwrap_err();
    let limit = LimitKind::WorkSteps;
    assert!(
        matches!(error.kind(), DecodeErrorKind::Limit { limit: found, .. } if *found == limit),
        "{error}"
    );
}

#[test]
fn scalars_of_numpy_are_the_keys_of_what_they_are_worth() {
    fn scalar(b: &mut Builder, typestr: &str, data: &[u8]) -> Result<NodeId, BuildError> {
        let scalar = b.global("numpy._core.multiarray", "scalar")?;
        let (dtype, data) = (b.dtype(typestr)?, b.bytes(data)?);
        b.call(scalar, &[dtype, data])
    }
    let numbers = count(|b| {
        Ok(vec![
            b.int(1)?,
            scalar(b, "|b1", &[1])?,
            scalar(b, "|i1", &[1])?,
            scalar(b, ">i4", &[0, 0, 0, 1])?,
            scalar(b, "<f2", &[0x00, 0x3c])?,
            scalar(b, "<f8", &1.0_f64.to_le_bytes())?,
            scalar(b, "<c8", &[0, 0, 0x80, 0x3f, 0, 0, 0, 0])?,
            // Two more: 2^64 - 1, and a complex.
            b.int(u64::MAX)?,
            scalar(b, "<u8", &[0xff; 8])?,
            scalar(b, "<c8", &[0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f])?,
            b.complex(1.0, 1.0)?,
        ])
    });
    assert_eq!(numbers, 3);
    let texts = count(|b| {
        Ok(vec![
            scalar(b, "<U2", b"a\0\0\0\0\0\0\0")?,
            b.str("a")?,
            scalar(b, "|S2", b"a\0")?,
            b.bytes(b"a")?,
            scalar(b, ">U1", b"\0\0\x03\xbb")?,
            b.str("\u{3bb}")?,
        ])
    });
    assert_eq!(texts, 3);
    let dtypes = count(|b| {
        let names = ["<f8", ">f8", "<f8", "<f4", "<i8", "<i8"];
        names.into_iter().map(|name| b.dtype(name)).collect()
    });
    assert_eq!(dtypes, 4);
    let mut b = Builder::new();
    let void = scalar(&mut b, "|V2", b"ab").unwrap();
    assert_eq!(
        b.set(&[void]),
        Err(BuildError::Unhashable(Kind::NumpyScalar))
    );
}
