//! numpy's dtypes: what numpy writes is read, and what contradicts itself is refused.

#![allow(clippy::unwrap_used)]

mod numpy_streams;

use agentix_protocol::safepickle::numpy::{ByteOrder, DatetimeUnit, DtypeKind, NumpyRule, Unit};
use agentix_protocol::safepickle::{DecodeErrorKind, Kind, Malformed, Policy};
use numpy_streams::{breaks, bytes, dtype_of, objects, plain, read, read_with, shell, structure};

#[test]
fn dtypes_of_numbers_and_text() {
    let cases = [
        ("b1", "|", DtypeKind::Bool, 1, "|b1"),
        ("i1", "|", DtypeKind::Int, 1, "|i1"),
        ("i8", "<", DtypeKind::Int, 8, "<i8"),
        ("u2", ">", DtypeKind::Uint, 2, ">u2"),
        ("f2", "<", DtypeKind::Float, 2, "<f2"),
        ("f16", "<", DtypeKind::Float, 16, "<f16"),
        ("c32", "<", DtypeKind::Complex, 32, "<c32"),
    ];
    for (name, order, kind, itemsize, typestr) in cases {
        let document = read(plain(name, order).as_bytes()).unwrap();
        let dtype = document.root().dtype().unwrap();
        assert_eq!((dtype.kind(), dtype.itemsize()), (kind, itemsize));
        assert_eq!(dtype.typestr(), typestr);
        assert_eq!(dtype.byte_order().code().to_string(), order);
        assert!(!dtype.has_object() && dtype.fields().is_none() && dtype.subarray().is_none());
        assert_eq!(document.root().kind(), Kind::Dtype);
    }
    let flexible = [
        ("S5", "|", "I5\nI1\nI0\n", 5, "|S5"),
        ("S0", "|", "I0\nI1\nI0\n", 0, "|S0"),
        ("U7", ">", "I28\nI4\nI8\n", 28, ">U7"),
        ("V3", "|", "I3\nI1\nI0\n", 3, "|V3"),
    ];
    for (name, order, rest, itemsize, typestr) in flexible {
        let document = read(dtype_of(name, order, &format!("NNN{rest}")).as_bytes()).unwrap();
        let dtype = document.root().dtype().unwrap();
        assert_eq!(
            (dtype.itemsize(), dtype.typestr().as_str()),
            (itemsize, typestr)
        );
    }
    let document = read(objects().as_bytes()).unwrap();
    let dtype = document.root().dtype().unwrap();
    assert_eq!((dtype.typestr().as_str(), dtype.has_object()), ("|O", true));
    // Pointers of a sender with 32 bits.
    let narrow = dtype_of("O4", "|", "NNNI-1\nI-1\nI63\n");
    let narrow = read(narrow.as_bytes()).unwrap();
    assert_eq!(narrow.root().dtype().unwrap().itemsize(), 8);
}

#[test]
fn a_dtype_is_what_its_name_and_state_agree_on() {
    for name in [
        "i3", "f12", "c4", "M4", "b2", "O16", "x4", "i", "", "i04", "i 4", "+4", "S-1", "i4,i4",
    ] {
        breaks(plain(name, "<"), NumpyRule::TypeString);
    }
    for name in ["V2147483648", "U536870912", "S99999999999"] {
        breaks(plain(name, "|"), NumpyRule::TypeString);
    }
    for (name, order) in [
        ("i4", "|"),
        ("i4", "="),
        ("i1", "<"),
        ("O8", "<"),
        ("i4", ""),
        ("i4", "<<"),
    ] {
        breaks(plain(name, order), NumpyRule::ByteOrder);
    }
    let sizes =
        |name: &str, order: &str, sizes: &str| dtype_of(name, order, &format!("NNN{sizes}"));
    breaks(sizes("i4", "<", "I4\nI4\nI0\n"), NumpyRule::Itemsize);
    breaks(sizes("S5", "|", "I6\nI1\nI0\n"), NumpyRule::Itemsize);
    breaks(sizes("U2", "<", "I2\nI4\nI8\n"), NumpyRule::Itemsize);
    breaks(sizes("V8", "|", "I-8\nI1\nI0\n"), NumpyRule::Itemsize);
    breaks(sizes("V8", "|", "I8\nI0\nI0\n"), NumpyRule::Alignment);
    breaks(sizes("V8", "|", "I8\nI3\nI0\n"), NumpyRule::Alignment);
    breaks(sizes("V8", "|", "I8\nI32\nI0\n"), NumpyRule::Alignment);
    breaks(sizes("S5", "|", "I5\nI4\nI0\n"), NumpyRule::Alignment);
    for flags in ["I1\n", "I2\n", "I128\n", "I256\n", "I-1\n", "N", "I63\n"] {
        breaks(
            sizes("i4", "<", &format!("I-1\nI-1\n{flags}")),
            NumpyRule::Flags,
        );
    }
    for flags in ["I0\n", "I1\n", "I2\n", "I3\n", "I27\n", "I191\n"] {
        breaks(
            sizes("O8", "|", &format!("I-1\nI-1\n{flags}")),
            NumpyRule::Flags,
        );
    }
    let long = format!("{}(I4\nV<\nNNNI-1\nI-1\nI0\nNtb", shell("i4"));
    for state in [
        "(t",
        "N",
        "}",
        "(I9\nV<\nNNNI-1\nI-1\nI0\nt",
        "(I3\nV<\nNNNI-1\nI-1\nt",
        "(I4\nV<\nNNNI-1\nI-1\nI0\nt",
        "(I3\nV<\nNNNI-1\nI-1\nI0\n}t",
        "(I3\nV<\nNNNNI-1\nI0\nt",
    ] {
        breaks(format!("{}{state}b", shell("i4")), NumpyRule::DtypeState);
    }
    breaks(long, NumpyRule::DtypeState);
}

#[test]
fn a_dtype_is_called_in_one_way_and_gets_one_state() {
    for args in [
        "Vi4\n",
        "Vi4\nI01\nI01\n",
        "Vi4\nI00\nI00\n",
        "NI00\nI01\n",
        "Vi4\nI00\nI01\n}",
    ] {
        let error = read(format!("cnumpy\ndtype\n({args}tR").as_bytes()).map(drop);
        assert_eq!(
            error,
            Err(DecodeErrorKind::Malformed(Malformed::Arguments)),
            "{args}"
        );
    }
    // Before numpy 1.20.
    let old = "cnumpy\ndtype\n(Vi4\nI0\nI1\ntR(I3\nV<\nNNNI-1\nI-1\nI0\ntb";
    assert_eq!(
        read(old.as_bytes())
            .unwrap()
            .root()
            .dtype()
            .unwrap()
            .typestr(),
        "<i4"
    );

    let error = read(shell("i4").as_bytes()).map(drop);
    assert_eq!(error, Err(DecodeErrorKind::Malformed(Malformed::Unbuilt)));
    let twice = format!("{}(I3\nV>\nNNNI-1\nI-1\nI0\ntb", plain("i4", "<"));
    let error = read(twice.as_bytes()).map(drop);
    assert_eq!(
        error,
        Err(DecodeErrorKind::Malformed(Malformed::NoState(Kind::Dtype)))
    );
    // For show, it is what its name says.
    let shown = read_with(Policy::inspect(), shell("i4").as_bytes()).unwrap();
    assert_eq!(shown.root().dtype().unwrap().typestr(), "<i4");
}

#[test]
fn units_of_dates_and_durations() {
    let unit = |name: &[u8], count: &str| {
        let head = format!("{}(I4\nV<\nNNNI-1\nI-1\nI0\n(N(", shell("M8"));
        let tail = format!("{count}I1\nI1\ntttb");
        [head.as_bytes(), &bytes(name), tail.as_bytes()].concat()
    };
    let names = [
        "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as",
    ];
    for name in names {
        let document = read(&unit(name.as_bytes(), "I25\n")).unwrap();
        let dtype = document.root().dtype().unwrap();
        let Unit { unit, count } = dtype.unit().unwrap();
        assert_eq!((unit.name(), count), (name, 25));
        assert_eq!(dtype.typestr(), format!("<M8[25{name}]"));
    }
    let document = read(&unit(b"s", "I1\n")).unwrap();
    assert_eq!(document.root().dtype().unwrap().typestr(), "<M8[s]");
    let document = read(&unit(b"generic", "I1\n")).unwrap();
    let dtype = document.root().dtype().unwrap();
    assert_eq!(dtype.typestr(), "<M8");
    assert_eq!(dtype.unit().unwrap().unit, DatetimeUnit::Generic);
    for (name, count) in [
        (&b"x"[..], "I1\n"),
        (b"", "I1\n"),
        (b"s", "I0\n"),
        (b"s", "I-1\n"),
        (b"s", "I2147483648\n"),
        (b"s", "N"),
        (b"generic", "I2\n"),
    ] {
        breaks(unit(name, count), NumpyRule::Unit);
    }
    // Without a unit.
    breaks(plain("M8", "<"), NumpyRule::Unit);
    for extra in ["N", "(NNt", "(N(Vs\nI1\nI1\nI1\ntt"] {
        let stream = format!("{}(I4\nV<\nNNNI-1\nI-1\nI0\n{extra}tb", shell("m8"));
        breaks(stream, NumpyRule::Unit);
    }
    let stream = format!("{}(I4\nV<\nNNNI-1\nI-1\nI0\n}}Vk\nI1\nstb", shell("f8"));
    let document = read(stream.as_bytes()).unwrap();
    let metadata = document.root().dtype().unwrap().metadata().unwrap();
    assert_eq!(metadata.value("k").unwrap().as_i64(), Some(1));
}

#[test]
fn structures_hold_fields() {
    let (i4, f8) = (plain("i4", "<"), plain("f8", ">"));
    let inner = structure(8, &[("x", &f8, 0)], 16);
    let stream = structure(20, &[("a", &i4, 0), ("b", &inner, 12), ("c", &i4, 4)], 16);
    let document = read(stream.as_bytes()).unwrap();
    let dtype = document.root().dtype().unwrap();
    assert_eq!((dtype.kind(), dtype.itemsize()), (DtypeKind::Void, 20));
    let fields: Vec<_> = dtype
        .fields()
        .unwrap()
        .map(|field| {
            (
                field.name.as_str().unwrap(),
                field.offset,
                field.dtype.typestr(),
            )
        })
        .collect();
    let expected = [("a", 0, "<i4"), ("b", 12, "|V8"), ("c", 4, "<i4")];
    assert_eq!(
        fields,
        expected.map(|(name, offset, dtype)| (name, offset, dtype.to_owned()))
    );
    let inner = dtype.field("b").unwrap().dtype;
    assert_eq!(inner.field("x").unwrap().dtype.byte_order(), ByteOrder::Big);
    assert!(dtype.field("d").is_none());
    assert_eq!(dtype.alignment(), 1);

    // No fields at all, which is not the same as being no structure.
    let document = read(structure(0, &[], 16).as_bytes()).unwrap();
    assert_eq!(document.root().dtype().unwrap().fields().unwrap().len(), 0);

    // A title that is a str names the field as well; any other is just there.
    let titled = |title: &str, more: &str| {
        let rest = format!(
            "N(Va\nt}}Va\n({}I0\n{title}tp1\ns{more}I4\nI1\nI16\n",
            plain("i4", "<")
        );
        dtype_of("V4", "|", &rest)
    };
    let document = read(titled("Vt\n", "Vt\ng1\ns").as_bytes()).unwrap();
    let field = document.root().dtype().unwrap().field("a").unwrap();
    assert_eq!(field.title.unwrap().as_str(), Some("t"));
    let document = read(titled("I5\n", "").as_bytes()).unwrap();
    let field = document.root().dtype().unwrap().field("a").unwrap();
    assert_eq!(field.title.unwrap().as_i64(), Some(5));
    for (title, more) in [
        ("N", ""),
        ("Vt\n", ""),
        ("Vt\n", "Vu\ng1\ns"),
        ("I5\n", "Vt\ng1\ns"),
        ("Vt\n", "Vt\nNs"),
        ("Vt\n", "Vt\n(g1\nts"),
    ] {
        breaks(titled(title, more), NumpyRule::Fields);
    }
}

#[test]
fn fields_lie_in_the_item_and_names_have_fields() {
    let i4 = plain("i4", "<");
    for offset in [-1, 1, 5, 1_073_741_824, i64::MAX] {
        breaks(
            structure(4, &[("a", &i4, offset)], 16),
            NumpyRule::FieldOffset,
        );
    }
    // Fields without objects may share bytes; pointers may not.
    assert!(read(structure(4, &[("a", &i4, 0), ("b", &i4, 0)], 16).as_bytes()).is_ok());
    let object = objects();
    breaks(
        structure(12, &[("a", &object, 0), ("b", &i4, 4)], 27),
        NumpyRule::FieldOverlap,
    );
    assert!(read(structure(12, &[("b", &i4, 8), ("a", &object, 0)], 27).as_bytes()).is_ok());
    // Flags must say that there are objects, that memory is to be cleared, and that Python is needed.
    for flags in [0, 3, 16, 17, 18, 19, 24, 26, 63] {
        let stream = structure(8, &[("a", &object, 0)], flags);
        breaks(stream, NumpyRule::Flags);
    }
    for flags in [0, 8, 17, 48, 80, 272] {
        breaks(structure(4, &[("a", &i4, 0)], flags), NumpyRule::Flags);
    }
    // They may say more: those of a structure from which fields were taken stay.
    for flags in [16, 24, 27, 27 + 128] {
        assert!(read(structure(4, &[("a", &i4, 0)], flags).as_bytes()).is_ok());
    }
    // What is not complete may still become anything.
    breaks(
        structure(4, &[("a", &shell("i4"), 0)], 16),
        NumpyRule::NoDtype,
    );
    breaks(structure(4, &[("a", "I1\n", 0)], 16), NumpyRule::NoDtype);

    let parts =
        |names: &str, fields: &str| dtype_of("V4", "|", &format!("N{names}{fields}I4\nI1\nI16\n"));
    let a = format!("Va\n({i4}I0\nts");
    for (names, fields) in [
        ("(Va\nt", "N".to_owned()),
        ("N", format!("}}{a}")),
        ("](Va\ne", format!("}}{a}")),
        ("(Va\nVb\nt", format!("}}{a}")),
        ("(Va\nVa\nt", format!("}}{a}")),
        ("(t", format!("}}{a}")),
        ("(I1\nt", format!("}}I1\n({i4}I0\nts")),
        ("(Va\nt", format!("}}I1\n({i4}I0\nts")),
        ("(Va\nt", "}Va\nI1\ns".to_owned()),
        ("(Va\nt", "}Va\n(ts".to_owned()),
        ("(Va\nt", format!("}}Va\n({i4}ts")),
        ("(Va\nt", format!("}}Va\n({i4}Nts")),
        ("(Va\nt", format!("}}Va\n({i4}I0\nI1\nI2\nts")),
        ("(Va\nt", "(t".to_owned()),
    ] {
        breaks(parts(names, &fields), NumpyRule::Fields);
    }
    // Fields of a number.
    let stream = dtype_of("i4", "<", &format!("N(Va\nt}}{a}I-1\nI-1\nI0\n"));
    breaks(stream, NumpyRule::Fields);
}

#[test]
fn subarrays_fill_the_item() {
    let f4 = plain("f4", "<");
    let subarray = |size: u32, parts: &str, flags: u32| {
        dtype_of(
            &format!("V{size}"),
            "|",
            &format!("{parts}NNI{size}\nI4\nI{flags}\n"),
        )
    };
    let document = read(subarray(24, &format!("({f4}(I3\nI2\ntt"), 0).as_bytes()).unwrap();
    let dtype = document.root().dtype().unwrap();
    let parts = dtype.subarray().unwrap();
    assert_eq!(parts.base().typestr(), "<f4");
    assert_eq!(parts.shape().collect::<Vec<_>>(), [3, 2]);
    for parts in [
        format!("({f4}(I1099511627776\ntt"),
        format!("({f4}(I3\ntt"),
        format!("({f4}(I-6\ntt"),
        format!("({f4}(I9223372036854775807\nI9223372036854775807\ntt"),
        format!("({f4}(tt"),
        format!("({f4}I6\nt"),
        format!("({f4}t"),
        "(t".to_owned(),
        "I1\n".to_owned(),
    ] {
        breaks(subarray(24, &parts, 0), NumpyRule::Subarray);
    }
    breaks(
        subarray(24, &format!("({}(I6\ntt", shell("f4")), 0),
        NumpyRule::NoDtype,
    );
    breaks(
        subarray(16, &format!("({}(I2\ntt", objects()), 0),
        NumpyRule::Flags,
    );
    // A number is no subarray, and a structure is no subarray either.
    let of_number = dtype_of("i4", "<", &format!("({f4}(I1\nttNNI-1\nI-1\nI0\n"));
    breaks(of_number, NumpyRule::Subarray);
    let both = format!("({f4}(I1\ntt(Va\nt}}Va\n({f4}I0\ntsI4\nI4\nI16\n");
    breaks(dtype_of("V4", "|", &both), NumpyRule::Fields);
}

#[test]
fn no_dtype_is_part_of_itself_and_none_is_deep() {
    let shell = format!("{}p9\n", shell("V8"));
    let field = format!("{shell}(I3\nV|\nN(Va\nt}}Va\n(g9\nI0\ntsI8\nI1\nI16\ntb");
    breaks(field, NumpyRule::NoDtype);
    let subarray = format!("{shell}(I3\nV|\n(g9\n(I1\nttNNI8\nI1\nI0\ntb");
    breaks(subarray, NumpyRule::NoDtype);
    let mut nested = plain("i4", "<");
    for _ in 0..32 {
        nested = structure(4, &[("a", &nested, 0)], 16);
    }
    let document = read(nested.as_bytes()).unwrap();
    let mut dtype = document.root().dtype().unwrap();
    let mut depth = 0;
    while let Some(field) = dtype.field("a") {
        (dtype, depth) = (field.dtype, depth + 1);
    }
    assert_eq!(depth, 32);
    breaks(structure(4, &[("a", &nested, 0)], 16), NumpyRule::Depth);
}
