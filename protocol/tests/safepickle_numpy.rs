//! numpy's dtypes, arrays and scalars: what numpy writes is read, and what contradicts itself is refused.
//!
//! Streams are in the text opcodes of protocol 0, with bytes as protocol 3 has them.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::numpy::{
    ArrayOrder, ByteOrder, DatetimeUnit, DtypeKind, NumpyRule, Unit,
};
use agentix_protocol::safepickle::{
    BuildError, Builder, Complex, DecodeErrorKind, Decoder, Document, Kind, LimitKind, Limits,
    Malformed, Policy, Value, decode,
};

/// The call that makes a dtype, without its state.
fn shell(name: &str) -> String {
    format!("cnumpy\ndtype\n(V{name}\nI00\nI01\ntR")
}

/// A dtype and the state that is given between byte order and the end.
fn dtype_of(name: &str, order: &str, rest: &str) -> String {
    format!("{}(I3\nV{order}\n{rest}tb", shell(name))
}

/// A dtype that has neither size nor parts of its own.
fn plain(name: &str, order: &str) -> String {
    dtype_of(name, order, "NNNI-1\nI-1\nI0\n")
}

fn objects() -> String {
    dtype_of("O8", "|", "NNNI-1\nI-1\nI63\n")
}

/// A structure: names with the calls that make their dtypes, and their offsets.
fn structure(size: u32, fields: &[(&str, &str, i64)], flags: u32) -> String {
    let names: String = fields
        .iter()
        .map(|(name, _, _)| format!("V{name}\n"))
        .collect();
    let entries: String = fields
        .iter()
        .map(|(name, dtype, offset)| format!("V{name}\n({dtype}I{offset}\nts"))
        .collect();
    let rest = format!("N({names}t}}{entries}I{size}\nI1\nI{flags}\n");
    dtype_of(&format!("V{size}"), "|", &rest)
}

/// Bytes up to 255 of them.
fn bytes(content: &[u8]) -> Vec<u8> {
    let mut stream = vec![b'C', u8::try_from(content.len()).unwrap()];
    stream.extend(content);
    stream
}

const RECONSTRUCT: &str = "cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\nt";

/// An array: a shape in text, the call that makes its dtype, whether it is column-first, and what makes
/// its data.
fn array(shape: &str, dtype: &str, is_fortran: bool, data: &[u8]) -> Vec<u8> {
    let fortran = if is_fortran { "I01\n" } else { "I00\n" };
    let head = format!("(I1\n({shape}t{dtype}{fortran}");
    [
        RECONSTRUCT.as_bytes(),
        &bytes(b"b"),
        b"tR",
        head.as_bytes(),
        data,
        b"tb",
    ]
    .concat()
}

fn read(stream: &[u8]) -> Result<Document<'static>, DecodeErrorKind> {
    read_with(Policy::agentix(), stream)
}

fn read_with(policy: Policy, stream: &[u8]) -> Result<Document<'static>, DecodeErrorKind> {
    let stream = [stream, b"."].concat();
    Decoder::new(policy, Limits::default())
        .decode(&stream)
        .map(Document::into_owned)
        .map_err(|error| error.kind().clone())
}

fn breaks(stream: impl AsRef<[u8]>, rule: NumpyRule) {
    let stream = stream.as_ref();
    let error = read_with(Policy::agentix().with_numpy(), stream).map(drop);
    let expected = DecodeErrorKind::Malformed(Malformed::Numpy(rule));
    assert_eq!(error, Err(expected), "{}", stream.escape_ascii());
    // For show, it becomes a record of what it says.
    let shown = read_with(Policy::inspect(), stream);
    assert!(shown.is_ok(), "{shown:?}");
}

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

#[test]
fn arrays_are_read_in_row_first_order() {
    let data = bytes(&[0, 1, 2, 3, 4, 5]);
    let u1 = plain("u1", "|");
    let read_array = |stream: &[u8]| {
        let document = read(stream).unwrap();
        let array = document.root().ndarray().unwrap();
        let shape: Vec<u64> = array.shape().collect();
        assert_eq!(
            array.row_first().unwrap().to_vec(),
            array.to_vec::<u8>().unwrap()
        );
        (shape, array.order(), array.to_vec::<u8>().unwrap())
    };
    let row = read_array(&array("I2\nI3\n", &u1, false, &data));
    assert_eq!(
        row,
        (vec![2, 3], ArrayOrder::RowFirst, vec![0, 1, 2, 3, 4, 5])
    );
    let column = read_array(&array("I2\nI3\n", &u1, true, &data));
    assert_eq!(
        column,
        (vec![2, 3], ArrayOrder::ColumnFirst, vec![0, 2, 4, 1, 3, 5])
    );
    // Where there is one axis to go along, order is none.
    for shape in ["I6\n", "I6\nI1\n", "I1\nI6\n"] {
        let (_, order, items) = read_array(&array(shape, &u1, true, &data));
        assert_eq!(
            (order, items),
            (ArrayOrder::RowFirst, vec![0, 1, 2, 3, 4, 5])
        );
    }
    let (shape, _, items) = read_array(&array("", &u1, false, &bytes(&[7])));
    assert_eq!((shape, items), (vec![], vec![7]));
    let (shape, order, items) = read_array(&array("I0\nI3\n", &u1, true, &bytes(&[])));
    assert_eq!(
        (shape, order, items),
        (vec![0, 3], ArrayOrder::RowFirst, vec![])
    );
    // The module of numpy before 2.
    let old = String::from_utf8(array("I1\n", &u1, false, &bytes(&[7]))).unwrap();
    let old = old.replace("numpy._core", "numpy.core");
    assert_eq!(read_array(old.as_bytes()).2, [7]);
}

#[test]
fn elements_are_read_as_what_they_are() {
    let of = |name, order, data: &[u8]| {
        let stream = array("I1\n", &plain(name, order), false, &bytes(data));
        read(&stream).unwrap()
    };
    fn all<T: agentix_protocol::safepickle::numpy::Element>(
        document: &Document<'_>,
    ) -> Option<Vec<T>> {
        document.root().ndarray().unwrap().to_vec()
    }
    assert_eq!(all::<i32>(&of("i4", "<", &[1, 0, 0, 0])), Some(vec![1]));
    assert_eq!(
        all::<i32>(&of("i4", ">", &[255, 255, 255, 254])),
        Some(vec![-2])
    );
    assert_eq!(all::<u16>(&of("u2", ">", &[1, 2])), Some(vec![0x102]));
    assert_eq!(
        all::<f64>(&of("f8", ">", &1.5_f64.to_be_bytes())),
        Some(vec![1.5])
    );
    assert_eq!(
        all::<f32>(&of("f4", "<", &1.5_f32.to_le_bytes())),
        Some(vec![1.5])
    );
    assert_eq!(all::<bool>(&of("b1", "|", &[1])), Some(vec![true]));
    let complex = [1.0_f64.to_be_bytes(), (-2.0_f64).to_be_bytes()].concat();
    let complex = all::<Complex>(&of("c16", ">", &complex)).unwrap();
    assert_eq!(complex, [Complex { re: 1.0, im: -2.0 }]);
    // Never as anything else.
    let document = of("i4", "<", &[1, 0, 0, 0]);
    assert_eq!((all::<u32>(&document), all::<i64>(&document)), (None, None));
    assert_eq!(
        (all::<f32>(&document), all::<bool>(&document)),
        (None, None)
    );
    let [head, tail] = ["(I4\nV<\nNNNI-1\nI-1\nI0\n(N(", "I1\nI1\nI1\ntttb"].map(str::as_bytes);
    let seconds = [shell("M8").as_bytes(), head, &bytes(b"s"), tail].concat();
    let seconds = String::from_utf8(seconds).unwrap();
    let stream = array("I1\n", &seconds, false, &bytes(&5_i64.to_le_bytes()));
    assert_eq!(all::<i64>(&read(&stream).unwrap()), Some(vec![5]));
}

#[test]
fn an_array_has_as_much_data_as_its_shape_says() {
    let i4 = plain("i4", "<");
    let four = bytes(&[0; 4]);
    for len in [0, 3, 5, 8] {
        breaks(
            array("I1\n", &i4, false, &bytes(&vec![0; len])),
            NumpyRule::Size,
        );
    }
    for shape in [
        "I-1\n",
        "N",
        "I4611686018427387904\n",
        "I99999999999999999999\n",
        "I0\nI4611686018427387904\n",
        "F1\n",
        "I01\n",
    ] {
        breaks(array(shape, &i4, false, &four), NumpyRule::Shape);
    }
    assert!(read(&array(&"I1\n".repeat(64), &i4, false, &four)).is_ok());
    breaks(
        array(&"I1\n".repeat(65), &i4, false, &four),
        NumpyRule::Shape,
    );
    // Elements of no size cost the stream nothing.
    let empty = dtype_of("V0", "|", "NNNI0\nI1\nI0\n");
    assert!(read(&array("I65536\n", &empty, false, &bytes(&[]))).is_ok());
    breaks(
        array("I65537\n", &empty, false, &bytes(&[])),
        NumpyRule::Shape,
    );

    breaks(array("I1\n", &i4, false, b"N"), NumpyRule::Data);
    breaks(array("I1\n", &i4, false, b"(Nl"), NumpyRule::Data);
    breaks(array("I1\n", &i4, false, b"Vabcd\n"), NumpyRule::Data);
    breaks(
        array("I1\n", &shell("i4"), false, &four),
        NumpyRule::NoDtype,
    );
    breaks(array("I1\n", "N", false, &four), NumpyRule::NoDtype);
    let subarray = dtype_of("V4", "|", &format!("({i4}(I1\nttNNI4\nI4\nI0\n"));
    breaks(
        array("I1\n", &subarray, false, &four),
        NumpyRule::WrongDtype,
    );
}

#[test]
fn a_state_of_an_array_has_one_form_and_comes_once() {
    let i4 = plain("i4", "<");
    let shell = [RECONSTRUCT.as_bytes(), &bytes(b"b"), b"tR"].concat();
    for (before, after) in [
        ("I2\n(I1\nt", "I00\n"),
        ("I1\n(I1\nt", "I0\n"),
        ("I1\n(I1\nt", "N"),
        ("(I1\nt", "I00\n"),
    ] {
        let state = format!("({before}{i4}{after}");
        let stream = [&shell, state.as_bytes(), &bytes(&[0; 4]), b"tb"].concat();
        breaks(stream, NumpyRule::ArrayState);
    }
    breaks([&shell[..], b"}b"].concat(), NumpyRule::ArrayState);
    let error = read(&shell).map(drop);
    assert_eq!(error, Err(DecodeErrorKind::Malformed(Malformed::Unbuilt)));
    let twice = array("I1\n", &i4, false, &bytes(&[0; 4]));
    let state = &twice[shell.len()..];
    let error = read(&[&twice, state].concat()).map(drop);
    assert_eq!(
        error,
        Err(DecodeErrorKind::Malformed(Malformed::NoState(
            Kind::Ndarray
        )))
    );
    // For show, a shell is an array without elements.
    let shown = read_with(Policy::inspect(), &shell).unwrap();
    assert!(shown.root().ndarray().unwrap().is_empty());

    for args in [
        "(cnumpy\nndarray\n(I0\nt",
        "(cnumpy\nndarray\n(I5\nt",
        "(cbuiltins\nlist\n(I0\nt",
    ] {
        for code in [&b"x"[..], b"b"] {
            if (args, code) == ("(cnumpy\nndarray\n(I0\nt", b"b") {
                continue;
            }
            let head = format!("cnumpy._core.multiarray\n_reconstruct\n{args}");
            breaks(
                [head.as_bytes(), &bytes(code), b"tR"].concat(),
                NumpyRule::Reconstruct,
            );
        }
    }
}

/// The constructor takes a buffer, an offset and strides, and makes arrays over memory that nobody set.
#[test]
fn an_array_is_not_made_by_its_class() {
    for args in [
        "(I64\nt",
        "(I64\ntVu1\n",
        "(I1\ntVu1\ncbuiltins\nbytearray\n(tR",
    ] {
        let error = read(format!("cnumpy\nndarray\n({args}tR").as_bytes()).map(drop);
        assert_eq!(
            error,
            Err(DecodeErrorKind::Malformed(Malformed::Arguments)),
            "{args}"
        );
    }
}

#[test]
fn arrays_of_objects_hold_as_many_as_their_shape_says() {
    let object = objects();
    let document = read(&array("I2\nI1\n", &object, true, b"(NVx\nl")).unwrap();
    let array_of = document.root().ndarray().unwrap();
    assert_eq!((array_of.data(), array_of.to_vec::<i64>()), (None, None));
    let items: Vec<_> = array_of.items().unwrap().iter().map(Value::kind).collect();
    assert_eq!(items, [Kind::None, Kind::Str]);
    for (shape, data) in [
        ("I2\n", "(Nl"),
        ("I2000\n", "(Nl"),
        ("I4\n", "(l"),
        ("I0\n", "(Nl"),
    ] {
        breaks(
            array(shape, &object, false, data.as_bytes()),
            NumpyRule::Size,
        );
    }
    breaks(
        array("I1\n", &object, false, &bytes(&[0; 8])),
        NumpyRule::Data,
    );
    breaks(array("I1\n", &object, false, b"(Nt"), NumpyRule::Data);
    // It may hold itself, and does not change with the list.
    let own = array("I1\n", &object, false, b"(g9\nlp8\n");
    let own = String::from_utf8(own)
        .unwrap()
        .replacen("tR(I1", "tRp9\n(I1", 1);
    let document = read(format!("{own}0g8\nNa0g9\n").as_bytes()).unwrap();
    let items = document.root().ndarray().unwrap().items().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(items.at(0).unwrap().id(), document.root().id());
}

#[test]
fn structures_with_objects_are_tuples_that_go_with_the_dtype() {
    let (object, i1) = (objects(), plain("i1", "|"));
    let mut fields = vec![("o", object.clone()), ("i", i1)];
    fields.push(("u", plain("u8", "<")));
    fields.push(("s", dtype_of("S2", "|", "NNNI2\nI1\nI0\n")));
    fields.push(("t", dtype_of("U2", "<", "NNNI8\nI4\nI8\n")));
    fields.push(("n", structure(8, &[("f", &plain("f8", "<"), 0)], 16)));
    let mut offset = 0;
    let sizes = [8, 1, 8, 2, 8, 8];
    let fields: Vec<_> = fields
        .iter()
        .zip(sizes)
        .map(|((name, dtype), size)| {
            offset += size;
            (*name, dtype.as_str(), offset - size)
        })
        .collect();
    let dtype = structure(35, &fields, 27);
    let of = |item: &str| array("I1\n", &dtype, false, format!("({item}l").as_bytes());
    let empty = "cbuiltins\nbytes\n(tR";
    let good = format!("(NI127\nI18446744073709551615\n{empty}Vab\n(F1\ntt");
    let document = read(&of(&good)).unwrap();
    let item = document
        .root()
        .ndarray()
        .unwrap()
        .items()
        .unwrap()
        .at(0)
        .unwrap();
    assert_eq!(item.tuple().unwrap().len(), 6);
    for item in [
        "N".to_owned(),
        "(t".to_owned(),
        good.replace("I127", "I128"),
        good.replace("I127", "I-129"),
        good.replace("I127", "F1"),
        good.replace("I18446744073709551615", "I18446744073709551616"),
        good.replace("I18446744073709551615", "I-1"),
        good.replace(empty, "Va\n"),
        good.replace("Vab", "Vabc"),
        good.replace("Vab\n", empty),
        good.replace("(F1\nt", "(F1\nNt"),
        good.replace("(F1\nt", "F1\n"),
        good.replace("F1", "I1"),
    ] {
        breaks(of(&item), NumpyRule::Item);
    }
    assert!(read(&of(&good.replace("I127", "I-128"))).is_ok());
}

#[test]
fn parts_that_are_shared_are_charged_each_time() {
    // Structures of two fields that are the same, 31 deep, each item of them one tuple: 2³¹ leaves.
    let mut nested = format!("{}p100\n", dtype_of("V0", "|", "NNNI0\nI1\nI0\n"));
    let mut item = "cbuiltins\nbytes\n(tRp0\n".to_owned();
    for depth in 0..30 {
        let below = format!("g{}\n", 100 + depth);
        nested = format!(
            "{nested}0{}p{}\n",
            structure(0, &[("a", &below, 0), ("b", &below, 0)], 16),
            101 + depth
        );
        item = format!("{item}0(g{depth}\ng{depth}\ntp{}\n", depth + 1);
    }
    let below = "g130\n";
    let dtype = structure(8, &[("o", &objects(), 0), ("z", below, 8)], 27);
    let stream = array("I1\n", &dtype, false, b"((Ng30\ntl");
    let stream = [nested.as_bytes(), b"0", item.as_bytes(), b"0", &stream].concat();
    let error = read(&stream).map(drop).unwrap_err();
    assert!(
        matches!(
            error,
            DecodeErrorKind::Limit {
                limit: LimitKind::WorkSteps,
                ..
            }
        ),
        "{error}"
    );
}

fn buffer(dtype: &str, rest: &str, data: &[u8]) -> Vec<u8> {
    let tail = format!("{dtype}{rest}tR");
    [
        b"cnumpy._core.numeric\n_frombuffer\n(",
        data,
        tail.as_bytes(),
    ]
    .concat()
}

#[test]
fn arrays_over_buffers_are_read_if_asked_for() {
    let u1 = plain("u1", "|");
    let data = bytes(&[0, 1, 2, 3, 4, 5]);
    let stream = buffer(&u1, "(I2\nI3\ntVC\n", &data);
    let refused = read(&stream).map(drop).unwrap_err();
    assert!(
        matches!(refused, DecodeErrorKind::RefusedGlobal { qualname, .. } if qualname == "_frombuffer")
    );

    let numpy = || Policy::agentix().with_numpy();
    let items = |rest: &str, data: &[u8]| {
        let document = read_with(numpy(), &buffer(&u1, rest, data)).unwrap();
        let array = document.root().ndarray().unwrap();
        (
            array.shape().collect::<Vec<_>>(),
            array.order(),
            array.to_vec::<u8>().unwrap(),
        )
    };
    let row = (vec![2, 3], ArrayOrder::RowFirst, vec![0, 1, 2, 3, 4, 5]);
    assert_eq!(items("(I2\nI3\ntVC\n", &data), row);
    let bytearray = [b"cbuiltins\nbytearray\n(", data.as_slice(), b"tR"].concat();
    assert_eq!(items("(I2\nI3\ntVC\n", &bytearray), row);
    let column = (vec![2, 3], ArrayOrder::ColumnFirst, vec![0, 2, 4, 1, 3, 5]);
    assert_eq!(items("(I2\nI3\ntVF\n", &data), column);
    // The axes of the data, put into another order.
    assert_eq!(items("(I3\nI2\ntVK\n(I1\nI0\nt", &data), column);
    assert_eq!(items("(I2\nI3\ntVK\n(I0\nI1\nt", &data), row);
    let mixed = (
        vec![1, 3, 2],
        ArrayOrder::ColumnFirst,
        vec![0, 3, 1, 4, 2, 5],
    );
    assert_eq!(items("(I1\nI2\nI3\ntVK\n(I0\nI2\nI1\nt", &data), mixed);
    let cube: Vec<u8> = (0..8).collect();
    let (shape, order, cube) = items("(I2\nI2\nI2\ntVK\n(I0\nI2\nI1\nt", &bytes(&cube));
    assert_eq!((shape, order), (vec![2, 2, 2], ArrayOrder::Mixed));
    assert_eq!(cube, [0, 2, 1, 3, 4, 6, 5, 7]);

    for rest in [
        "(I6\ntVK\n",
        "(I6\ntVA\n",
        "(I6\ntI1\n",
        "(I6\ntVC\n(I0\nt",
        "(I6\ntVK\n(I1\nt",
        "(I6\ntVK\n(t",
        "(I2\nI3\ntVK\n(I0\nI0\nt",
        "(I2\nI3\ntVK\n(I0\nI-1\nt",
    ] {
        breaks(buffer(&u1, rest, &data), NumpyRule::Order);
    }
    breaks(buffer(&u1, "(I7\ntVC\n", &data), NumpyRule::Size);
    breaks(buffer(&u1, "(I6\ntVC\n", b"Vabcdef\n"), NumpyRule::Data);
    breaks(
        buffer(&shell("u1"), "(I6\ntVC\n", &data),
        NumpyRule::NoDtype,
    );
    breaks(
        buffer(&objects(), "(I0\ntVC\n", &bytes(&[])),
        NumpyRule::WrongDtype,
    );
    let empty = dtype_of("V0", "|", "NNNI0\nI1\nI0\n");
    breaks(
        buffer(&empty, "(I0\ntVC\n", &bytes(&[])),
        NumpyRule::WrongDtype,
    );
}

fn scalar(dtype: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("cnumpy._core.multiarray\nscalar\n({dtype}");
    [head.as_bytes(), data, b"tR"].concat()
}

#[test]
fn scalars_are_read_if_asked_for() {
    let numpy = || Policy::agentix().with_numpy();
    let stream = scalar(&plain("f8", "<"), &bytes(&1.5_f64.to_le_bytes()));
    assert!(read(&stream).is_err());
    let document = read_with(numpy(), &stream).unwrap();
    let number = document.root().numpy_scalar().unwrap();
    assert_eq!(
        (number.value::<f64>(), number.value::<i64>()),
        (Some(1.5), None)
    );
    assert_eq!(document.root().kind(), Kind::NumpyScalar);
    let text = dtype_of("U3", ">", "NNNI12\nI4\nI8\n");
    let stream = scalar(&text, &bytes(&[0, 0, 0, b'a', 0, 0, 3, 0xbb, 0, 0, 0, 0]));
    let document = read_with(numpy(), &stream).unwrap();
    let text = document.root().numpy_scalar().unwrap();
    assert_eq!(
        (text.text().as_deref(), text.value::<u32>()),
        (Some("aλ"), None)
    );
    // A scalar of objects is the object; a structure that holds some is an array of one.
    let document = read_with(numpy(), &scalar(&objects(), b"Vx\n")).unwrap();
    assert_eq!(document.root().as_str(), Some("x"));
    let holds = structure(8, &[("o", &objects(), 0)], 27);
    let one = array("", "g5\n", false, b"((Ntl");
    let document = read_with(numpy(), &scalar(&format!("{holds}p5\n"), &one)).unwrap();
    let one = document.root().numpy_scalar().unwrap();
    assert_eq!((one.data(), one.array().unwrap().len()), (None, 1));

    let i4 = plain("i4", "<");
    for data in [
        bytes(&[0; 3]),
        bytes(&[0; 5]),
        b"N".to_vec(),
        b"I1\n".to_vec(),
    ] {
        breaks(scalar(&i4, &data), NumpyRule::Data);
    }
    breaks(scalar(&holds, &bytes(&[0; 8])), NumpyRule::Data);
    breaks(scalar(&shell("i4"), &bytes(&[0; 4])), NumpyRule::NoDtype);
    let other = array("I1\n", "g5\n", false, b"((Ntl");
    breaks(scalar(&format!("{holds}p5\n"), &other), NumpyRule::Data);
}

#[test]
fn codecs_encode_makes_bytes_if_asked_for() {
    let stream = b"c_codecs\nencode\n(Va\\u00ff\nVlatin1\ntR";
    assert!(read(stream).is_err());
    let numpy = || Policy::agentix().with_numpy();
    let document = read_with(numpy(), stream).unwrap();
    assert_eq!(document.root().as_bytes(), Some(&b"a\xff"[..]));
    for args in [
        "Va\\u0100\nVlatin1\n",
        "Va\nVutf-8\n",
        "Va\nVrot13\n",
        "Va\n",
        "I1\nVlatin1\n",
    ] {
        let error = read_with(numpy(), format!("c_codecs\nencode\n({args}tR").as_bytes()).map(drop);
        assert_eq!(
            error,
            Err(DecodeErrorKind::Malformed(Malformed::Arguments)),
            "{args}"
        );
    }
}

#[test]
fn data_is_borrowed_from_the_stream() {
    let content = vec![7; 1 << 20];
    let u1 = plain("u1", "|");
    let head = format!("(I1\n(I{}\nt{u1}I00\n", content.len());
    let len = u32::try_from(content.len()).unwrap().to_le_bytes();
    let stream = [
        RECONSTRUCT.as_bytes(),
        &bytes(b"b"),
        b"tR",
        head.as_bytes(),
        b"B",
        &len,
        &content,
        b"tb.",
    ]
    .concat();
    let document = decode(&stream).unwrap();
    let data = document.root().ndarray().unwrap().data().unwrap();
    assert!(stream.as_ptr_range().contains(&data.as_ptr()));
    let limits = Limits::default().owned_bytes(1024);
    assert!(
        Decoder::new(Policy::agentix(), limits)
            .decode(&stream)
            .is_ok()
    );
}

#[test]
fn equality_looks_at_everything() {
    let u1 = plain("u1", "|");
    let data = bytes(&[0, 1, 2, 3]);
    let one = |shape, dtype: &str, fortran, data: &[u8]| {
        read(&array(shape, dtype, fortran, data)).unwrap()
    };
    let base = one("I2\nI2\n", &u1, false, &data);
    assert_eq!(base, one("I2\nI2\n", &u1, false, &data));
    assert_ne!(base, one("I4\n", &u1, false, &data));
    assert_ne!(base, one("I2\nI2\n", &u1, true, &data));
    assert_ne!(base, one("I2\nI2\n", &plain("i1", "|"), false, &data));
    assert_ne!(base, one("I2\nI2\n", &u1, false, &bytes(&[0, 1, 2, 4])));
    assert_ne!(
        read(plain("i4", "<").as_bytes()),
        read(plain("i4", ">").as_bytes())
    );
}

#[test]
fn arrays_are_built_by_hand() {
    let mut builder = Builder::new();
    let numbers = builder.ndarray(&[2, 1], &[1_i16, -2]).unwrap();
    let none = builder.none().unwrap();
    let objects = builder.object_ndarray(&[2], &[numbers, none]).unwrap();
    let names = [
        "|b1", "<f8", ">c16", "|S5", ">U3", "|V0", "|O8", "<M8", "<M8[25s]", ">m8[ns]",
    ];
    let mut dtypes = vec![objects];
    for name in names {
        dtypes.push(builder.dtype(name).unwrap());
    }
    let root = builder.tuple(&dtypes).unwrap();
    let document = builder.finish(root).unwrap();
    let items = document.root().tuple().unwrap();
    let objects = items.at(0).unwrap().ndarray().unwrap().items().unwrap();
    let numbers = objects.at(0).unwrap().ndarray().unwrap();
    assert_eq!(numbers.to_vec::<i16>(), Some(vec![1, -2]));
    let found: Vec<_> = items
        .iter()
        .skip(1)
        .map(|item| item.dtype().unwrap().typestr())
        .collect();
    let found: Vec<_> = found.iter().map(|name| name.replace("|O", "|O8")).collect();
    assert_eq!(found, names);

    let mut builder = Builder::new();
    let rule = |rule| Err(BuildError::Rule(Malformed::Numpy(rule)));
    assert_eq!(builder.ndarray(&[3], &[1.0]), rule(NumpyRule::Size));
    assert_eq!(builder.ndarray(&[1; 65], &[1.0]), rule(NumpyRule::Shape));
    for name in ["", "f8", "<f8[s]", "<M8[s", "<M8[0x]", "\u{e9}f8"] {
        assert!(builder.dtype(name).is_err(), "{name}");
    }
    assert_eq!(builder.dtype("|f8"), rule(NumpyRule::ByteOrder));
    assert_eq!(builder.dtype("<M8[x]"), rule(NumpyRule::Unit));
}
