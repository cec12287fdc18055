//! numpy's arrays and scalars: what numpy writes is read, and what contradicts itself is refused.

#![allow(clippy::unwrap_used)]

mod numpy_streams;

use agentix_protocol::safepickle::numpy::{ArrayOrder, Element, NumpyRule};
use agentix_protocol::safepickle::{
    BuildError, Builder, Complex, DecodeErrorKind, Decoder, Document, EncodeError, Kind, LimitKind,
    Limits, Malformed, Policy, Protocol, Value, decode, encode,
};
use numpy_streams::{
    RECONSTRUCT, array, breaks, buffer, bytes, dtype_of, objects, plain, read, read_with, scalar,
    shell, structure,
};

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
    fn all<T: Element>(document: &Document<'_>) -> Option<Vec<T>> {
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

#[test]
fn what_is_encoded_is_decoded_to_the_same() {
    let (i4, object) = (plain("i4", ">"), objects());
    let inner = structure(8, &[("x", &plain("f8", "<"), 0)], 16);
    let titled = format!("N(Va\nt}}Va\n({i4}I0\nVt\ntp1\nsVt\ng1\nsI4\nI1\nI16\n");
    let subarray = dtype_of("V8", "|", &format!("({i4}(I2\nttNNI8\nI4\nI0\n"));
    let many = structure(
        20,
        &[
            ("a", &i4, 0),
            ("b", &i4, 4),
            ("c", &inner, 12),
            ("d", &i4, 8),
        ],
        16,
    );
    let holds = structure(8, &[("o", &object, 0)], 27);
    let metadata = format!("{}(I4\nV<\nNNNI-1\nI-1\nI0\n}}Vk\nI1\nstb", shell("f8"));
    let [head, tail] = ["(I4\nV<\nNNNI-1\nI-1\nI0\n(}(", "I25\nI1\nI1\ntttb"].map(str::as_bytes);
    let unit = [shell("M8").as_bytes(), head, &bytes(b"us"), tail].concat();
    let data = bytes(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let bytearray = [b"cbuiltins\nbytearray\n(", data.as_slice(), b"tR"].concat();
    // An array that holds itself, a dtype whose metadata holds it, a scalar whose item holds it.
    let own = array("I1\n", &object, false, b"(g9\nl");
    let own = String::from_utf8(own)
        .unwrap()
        .replacen("tR(I1", "tRp9\n(I1", 1)
        .into_bytes();
    let cycle = format!(
        "{}(I4\nV<\nNNNI-1\nI-1\nI0\n}}p7\ntbp8\n0g7\nVme\ng8\ns0g8\n",
        shell("f8")
    );
    let one = array("", "g5\n", false, b"((g6\ntl");
    let one = scalar(&format!("{holds}p5\n"), &one);
    let scalar_cycle = [b"]p6\n0", one.as_slice(), b"p4\n0g6\ng4\na0g4\n"];
    let streams = [
        i4.clone().into_bytes(),
        object.clone().into_bytes(),
        dtype_of("V4", "|", &titled).into_bytes(),
        subarray.into_bytes(),
        many.into_bytes(),
        structure(0, &[], 16).into_bytes(),
        metadata.into_bytes(),
        unit,
        array("I2\n", &i4, false, &data),
        array("I2\nI2\n", &plain("u2", "<"), true, &data),
        array("I2\nI1\n", &object, true, b"(NNl"),
        array("I1\n", &holds, false, b"((Ntl"),
        buffer(&plain("u1", "|"), "(I8\ntVC\n", &bytearray),
        buffer(&plain("u1", "|"), "(I2\nI2\nI2\ntVK\n(I0\nI2\nI1\nt", &data),
        scalar(&i4, &bytes(&[0; 4])),
        own,
        cycle.into_bytes(),
        scalar_cycle.concat(),
    ];
    for stream in streams {
        let document = read_with(Policy::agentix().with_numpy(), &stream).unwrap();
        for protocol in [Protocol::V3, Protocol::V4, Protocol::V5] {
            let encoded = encode(document.root(), protocol).unwrap();
            let encoded = encoded.strip_suffix(b".").unwrap();
            let again = read_with(Policy::agentix().with_numpy(), encoded);
            assert_eq!(again.as_ref(), Ok(&document), "{}", stream.escape_ascii());
        }
    }
    let array = read(&array("I2\n", &i4, false, &data)).unwrap();
    let refused = encode(array.root(), Protocol::V2);
    assert!(matches!(
        refused,
        Err(EncodeError::NotInProtocol {
            needed: Protocol::V3,
            ..
        })
    ));
}

#[test]
fn arrays_are_printed_in_short() {
    let shown = |stream: &[u8]| {
        let document = read_with(Policy::agentix().with_numpy(), stream).unwrap();
        format!("{:?}", document.root())
    };
    let i4 = plain("i4", ">");
    assert_eq!(shown(i4.as_bytes()), "dtype('>i4')");
    let numbers = array("I1\nI2\n", &i4, false, &bytes(&[0; 8]));
    assert_eq!(shown(&numbers), "<ndarray (1, 2) of >i4>");
    let items = array("I2\n", &objects(), false, b"(NVx\nl");
    assert_eq!(shown(&items), "<ndarray (2) of |O: None, 'x'>");
    assert_eq!(shown(&scalar(&i4, &bytes(&[0; 4]))), "<scalar of >i4>");
}
