//! Streams that make numpy's objects: the text opcodes of protocol 0, with bytes as protocol 3 has them.

#![allow(dead_code, reason = "each test file uses a part")]

use agentix_protocol::safepickle::numpy::NumpyRule;
use agentix_protocol::safepickle::{DecodeErrorKind, Decoder, Document, Limits, Malformed, Policy};

/// The call that makes a dtype, without its state.
pub(crate) fn shell(name: &str) -> String {
    format!("cnumpy\ndtype\n(V{name}\nI00\nI01\ntR")
}

/// A dtype and the state that is given between byte order and the end.
pub(crate) fn dtype_of(name: &str, order: &str, rest: &str) -> String {
    format!("{}(I3\nV{order}\n{rest}tb", shell(name))
}

/// A dtype that has neither size nor parts of its own.
pub(crate) fn plain(name: &str, order: &str) -> String {
    dtype_of(name, order, "NNNI-1\nI-1\nI0\n")
}

pub(crate) fn objects() -> String {
    dtype_of("O8", "|", "NNNI-1\nI-1\nI63\n")
}

/// A structure: names with the calls that make their dtypes, and their offsets.
pub(crate) fn structure(size: u32, fields: &[(&str, &str, i64)], flags: u32) -> String {
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
pub(crate) fn bytes(content: &[u8]) -> Vec<u8> {
    let mut stream = vec![b'C', u8::try_from(content.len()).unwrap()];
    stream.extend(content);
    stream
}

pub(crate) const RECONSTRUCT: &str =
    "cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\nt";

/// An array: a shape in text, the call that makes its dtype, whether it is column-first, and what makes
/// its data.
pub(crate) fn array(shape: &str, dtype: &str, is_fortran: bool, data: &[u8]) -> Vec<u8> {
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

pub(crate) fn read(stream: &[u8]) -> Result<Document<'static>, DecodeErrorKind> {
    read_with(Policy::agentix(), stream)
}

pub(crate) fn read_with(
    policy: Policy,
    stream: &[u8],
) -> Result<Document<'static>, DecodeErrorKind> {
    let stream = [stream, b"."].concat();
    Decoder::new(policy, Limits::default())
        .decode(&stream)
        .map(Document::into_owned)
        .map_err(|error| error.kind().clone())
}

pub(crate) fn breaks(stream: impl AsRef<[u8]>, rule: NumpyRule) {
    let stream = stream.as_ref();
    let error = read_with(Policy::agentix().with_numpy(), stream).map(drop);
    let expected = DecodeErrorKind::Malformed(Malformed::Numpy(rule));
    assert_eq!(error, Err(expected), "{}", stream.escape_ascii());
    // For show, it becomes a record of what it says.
    let shown = read_with(Policy::inspect(), stream);
    assert!(shown.is_ok(), "{shown:?}");
}

pub(crate) fn buffer(dtype: &str, rest: &str, data: &[u8]) -> Vec<u8> {
    let tail = format!("{dtype}{rest}tR");
    [
        b"cnumpy._core.numeric\n_frombuffer\n(",
        data,
        tail.as_bytes(),
    ]
    .concat()
}

pub(crate) fn scalar(dtype: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("cnumpy._core.multiarray\nscalar\n({dtype}");
    [head.as_bytes(), data, b"tR"].concat()
}
