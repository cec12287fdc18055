//! Paths of `pathlib`: their classes and parts.

use std::fmt;
use std::ops::Range;

use super::super::arena::{Bytes, Node, NodeId};
use super::super::construct::{Args, How};
use super::super::error::Malformed;
use super::super::known::Known;
use super::super::machine::{Machine, Step};
use super::super::text;
use super::super::value::{Items, Text, Value};

/// A class of `pathlib`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PathClass {
    /// `PurePosixPath`.
    PurePosixPath,
    /// `PureWindowsPath`.
    PureWindowsPath,
    /// `PosixPath`.
    PosixPath,
    /// `WindowsPath`. In Python such an object only exists on Windows; here it is inert.
    WindowsPath,
}

impl PathClass {
    /// The name inside `pathlib`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PurePosixPath => "PurePosixPath",
            Self::PureWindowsPath => "PureWindowsPath",
            Self::PosixPath => "PosixPath",
            Self::WindowsPath => "WindowsPath",
        }
    }

    /// Whether its paths follow the rules of Windows: backslashes, drives, and case without meaning.
    pub fn is_windows(self) -> bool {
        matches!(self, Self::PureWindowsPath | Self::WindowsPath)
    }
}

/// A path of `pathlib`.
///
/// It is what the stream says and nothing more: no file was looked at. `Display` gives what `str()`
/// gives in Python; code points that no Unicode encoding has are replaced by U+FFFD.
///
/// ```
/// use agentix_protocol::safepickle::{PathClass, decode};
/// let document = decode(b"\x80\x04cpathlib\nPurePosixPath\n(\x8c\x01/\x8c\x03srv\x8c\x01atR.")?;
/// let path = document.root().path().unwrap();
/// assert_eq!((path.class(), path.to_string().as_str()), (PathClass::PurePosixPath, "/srv/a"));
/// # Ok::<(), agentix_protocol::safepickle::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Path<'d> {
    class: PathClass,
    parts: Items<'d>,
}

impl<'d> Path<'d> {
    /// Its class. `Path` and `PurePath` stand for the classes of POSIX.
    pub fn class(self) -> PathClass {
        self.class
    }

    /// Its parts: drive and root in one, if it has any, then one name each. What Python has as `parts`.
    pub fn parts(self) -> impl ExactSizeIterator<Item = Text<'d>> + Clone + use<'d> {
        // Each of them is a str.
        self.parts
            .iter()
            .map(|part| part.as_text().unwrap_or(Text::new(&[], false)))
    }

    /// Whether the first part is a drive or root.
    fn is_anchored(self) -> bool {
        self.parts().next().is_some_and(|first| {
            let first = first.as_generalised_utf8();
            if self.class.is_windows() {
                // A name holds no backslash, and is no letter and colon.
                let drive = matches!(first, [letter, b':'] if letter.is_ascii_alphabetic());
                drive || first.contains(&b'\\')
            } else {
                first.starts_with(b"/")
            }
        })
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.parts.is_empty() {
            return f.write_str(".");
        }
        let separator = if self.class.is_windows() { "\\" } else { "/" };
        let mut joined = self.is_anchored();
        for (at, part) in self.parts().enumerate() {
            if at > 0 && !std::mem::take(&mut joined) {
                f.write_str(separator)?;
            }
            f.write_str(&part.to_string_lossy())?;
        }
        Ok(())
    }
}

impl<'d> Value<'d> {
    /// A path.
    pub fn path(self) -> Option<Path<'d>> {
        match self.node() {
            Node::Path { class, .. } => Some(Path {
                class,
                parts: self.items_of(self.id()),
            }),
            _ => None,
        }
    }
}

/// A part of a path, found in the texts that it is made of.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Part {
    /// A piece of one of the texts.
    Piece { text: usize, range: Range<usize> },
    /// A drive or root that stands in no text as it is.
    Anchor(Vec<u8>),
}

/// Splits texts into the parts of a path, as `pathlib` of Python 3.11 does: a later absolute text
/// drops what precedes it, and empty names and dots vanish.
pub(in super::super) fn split(class: PathClass, texts: &[&[u8]]) -> Vec<Part> {
    let windows = class.is_windows();
    // From the last to the first.
    let mut parts = Vec::new();
    for (text, content) in texts.iter().enumerate().rev() {
        let (anchor, rest) = if windows {
            windows_anchor(texts, text)
        } else {
            posix_anchor(text, content)
        };
        let mut end = content.len();
        while end > rest {
            let is_separator = |byte: &u8| *byte == b'/' || windows && *byte == b'\\';
            let start = content[rest..end]
                .iter()
                .rposition(is_separator)
                .map_or(rest, |at| rest + at + 1);
            if !matches!(&content[start..end], b"" | b".") {
                let range = start..end;
                parts.push(Part::Piece { text, range });
            }
            end = start.saturating_sub(1);
        }
        if let Some(anchor) = anchor {
            parts.push(anchor);
            break;
        }
    }
    parts.reverse();
    parts
}

/// How a part must be written for [`split`] to give it back, unless as it is. Python's own pickler does
/// not take this care, and gives back another path.
pub(in super::super) fn spelling(class: PathClass, first: bool, part: &[u8]) -> Option<Vec<u8>> {
    let gives_back = |text: &[u8]| match split(class, &[text]).as_slice() {
        [Part::Piece { range, .. }] => &text[range.clone()] == part,
        [Part::Anchor(anchor)] => first && anchor == part,
        _ => false,
    };
    if gives_back(part) {
        return None;
    }
    // A name that looks like a drive, and a host without a share, which takes a root of its own.
    let named = [b".\\", part].concat();
    let rootless = part.strip_suffix(b"\\").unwrap_or(part).to_vec();
    [named, rootless].into_iter().find(|text| gives_back(text))
}

/// The root that a text starts with, and where the rest begins. Two slashes are a root of their own,
/// three are not.
fn posix_anchor(text: usize, content: &[u8]) -> (Option<Part>, usize) {
    let slashes = content.iter().take_while(|byte| **byte == b'/').count();
    let range = match slashes {
        0 => return (None, 0),
        2 => 0..2,
        _ => 0..1,
    };
    (Some(Part::Piece { text, range }), slashes)
}

/// The drive and root that a text starts with, and where the rest begins. A root without a drive
/// takes the last drive before it.
fn windows_anchor(texts: &[&[u8]], text: usize) -> (Option<Part>, usize) {
    let WindowsAnchor {
        mut drive,
        root,
        rest,
    } = WindowsAnchor::of(texts[text]);
    if !root && drive.is_empty() {
        return (None, rest);
    }
    if drive.is_empty() {
        let before = texts[..text].iter().rev();
        drive = before
            .map(|content| WindowsAnchor::of(content).drive)
            .find(|drive| !drive.is_empty())
            .unwrap_or_default();
    }
    if root {
        drive.push(b'\\');
    }
    (Some(Part::Anchor(drive)), rest)
}

/// What a text starts with under the rules of Windows.
struct WindowsAnchor {
    /// A letter and a colon, or host and share; slashes are backslashes.
    drive: Vec<u8>,
    root: bool,
    /// Where the names begin.
    rest: usize,
}

impl WindowsAnchor {
    fn of(content: &[u8]) -> Self {
        let separator = |at: usize| matches!(content.get(at), Some(b'/' | b'\\'));
        let find = |from: usize| (from..content.len()).find(|at| separator(*at));
        // An extended path, `\\?\C:\` or `\\?\UNC\host\share\`.
        let extended =
            separator(0) && separator(1) && content.get(2) == Some(&b'?') && separator(3);
        let unc = extended && content.get(4..7) == Some(b"UNC") && separator(7);
        // Where what a prefix may precede begins; of `UNC\` the C stands for a backslash.
        let start = match (extended, unc) {
            (_, true) => 6,
            (true, false) => 4,
            (false, false) => 0,
        };
        let leading = |at: usize| separator(at) || unc && at == 6;
        let backslashes = |range: Range<usize>| -> Vec<u8> {
            let text = content[range].iter();
            text.map(|byte| if *byte == b'/' { b'\\' } else { *byte })
                .collect()
        };
        if leading(start) && separator(start + 1) && !separator(start + 2)
            && let Some(host_end) = find(start + 2)
            // Two in a row make no share.
            && !separator(host_end + 1)
        {
            let share_end = find(host_end + 1).unwrap_or(content.len());
            let drive = match (extended, unc) {
                (true, false) => [backslashes(0..4), backslashes(5..share_end)].concat(),
                _ => backslashes(0..share_end),
            };
            return Self {
                drive,
                root: true,
                rest: (share_end + 1).min(content.len()),
            };
        }
        let letter = !unc
            && content.get(start).is_some_and(u8::is_ascii_alphabetic)
            && content.get(start + 1) == Some(&b':');
        let drive_end = if letter { start + 2 } else { start };
        let mut rest = drive_end;
        while leading(rest) {
            rest += 1;
        }
        // A prefix `\\?\UNC` is whole, although its last letter was taken for a backslash.
        let prefix_end = if unc { 7 } else { drive_end };
        Self {
            drive: backslashes(0..prefix_end),
            root: rest > drive_end,
            rest: rest.min(content.len()),
        }
    }
}

impl Machine<'_, '_> {
    /// Calls a class of paths with the parts of one, in the way that picklers write.
    pub(in super::super) fn path(&mut self, known: Known, how: How, args: Args) -> Step<NodeId> {
        let class = match (known, how) {
            (Known::Path(class), How::Call) => class.unwrap_or(PathClass::PosixPath),
            (Known::PurePath, How::Call) => PathClass::PurePosixPath,
            _ => return Err(Malformed::Arguments.into()),
        };
        self.charge(args.len() as u64)?;
        let ids = args.ids(&self.arena).to_vec();
        let mut texts = Vec::with_capacity(ids.len());
        for id in &ids {
            match self.arena.node(*id) {
                Node::Str(bytes) => texts.push(bytes),
                _ => return Err(Malformed::Arguments.into()),
            }
        }
        // Each text is looked at twice at most, and each part that comes of one costs an object.
        let length: u64 = texts.iter().map(|text| u64::from(text.len)).sum();
        self.charge(length / 16)?;
        let contents: Vec<&[u8]> = texts.iter().map(|text| self.arena.bytes(*text)).collect();
        let parts = split(class, &contents);
        let mut made = Vec::with_capacity(parts.len());
        for part in parts {
            made.push(match part {
                Part::Piece { text, range } if range == (0..texts[text].len as usize) => ids[text],
                Part::Piece { text, range } => {
                    self.charge(4)?;
                    let piece = Bytes {
                        // Within the text, hence within 32 bits.
                        start: texts[text].start + range.start as u32,
                        len: range.len() as u32,
                        flags: texts[text].flags,
                    };
                    self.make_piece(piece)?
                }
                Part::Anchor(anchor) => {
                    self.charge(4 + anchor.len() as u64 / 4)?;
                    let bytes = self.own(&anchor, false)?;
                    self.make_piece(bytes)?
                }
            });
        }
        let parts = self.new_span(&made)?;
        self.make(Node::Path { class, parts })
    }

    /// A str that is a piece of another.
    fn make_piece(&mut self, mut piece: Bytes) -> Step<NodeId> {
        let content = self.arena.bytes(piece);
        piece.flags.surrogates = text::generalised_utf8(content).ok_or(Malformed::Utf8)?;
        self.make(Node::Str(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Builder, DecodeErrorKind, Document, LimitKind, decode};
    use super::*;

    fn path(class: PathClass, texts: &[&str]) -> Document<'static> {
        let mut builder = Builder::new();
        let path = builder.path(class, texts).unwrap();
        builder.finish(path).unwrap()
    }

    #[track_caller]
    fn check(class: PathClass, texts: &[&str], parts: &[&str], whole: &str) {
        let document = path(class, texts);
        let path = document.root().path().unwrap();
        let found: Vec<_> = path.parts().map(|part| part.as_str().unwrap()).collect();
        assert_eq!(found, parts, "{texts:?}");
        assert_eq!(path.to_string(), whole, "{texts:?}");
    }

    #[test]
    fn posix_paths_are_split_as_pathlib_does() {
        let check = |texts: &[&str], parts: &[&str], whole| {
            check(PathClass::PosixPath, texts, parts, whole);
        };
        check(&[], &[], ".");
        check(&["", ".", "./"], &[], ".");
        check(&["/", "srv", "a b"], &["/", "srv", "a b"], "/srv/a b");
        check(&["a//b/./c/"], &["a", "b", "c"], "a/b/c");
        check(&["..", "..", "x"], &["..", "..", "x"], "../../x");
        check(&["//net", "x"], &["//", "net", "x"], "//net/x");
        check(&["///net"], &["/", "net"], "/net");
        check(&["a", "/b", "c"], &["/", "b", "c"], "/b/c");
        check(&["a\\b", "c:"], &["a\\b", "c:"], "a\\b/c:");
    }

    #[test]
    fn windows_paths_are_split_as_pathlib_does() {
        let check = |texts: &[&str], parts: &[&str], whole| {
            check(PathClass::PureWindowsPath, texts, parts, whole);
        };
        check(
            &["C:\\", "Users", "x"],
            &["C:\\", "Users", "x"],
            "C:\\Users\\x",
        );
        check(&["c:", "rel"], &["c:", "rel"], "c:rel");
        check(&["c:/a/b"], &["c:\\", "a", "b"], "c:\\a\\b");
        check(&["c:a", "/b"], &["c:\\", "b"], "c:\\b");
        check(&["c:a", "d:b"], &["d:", "b"], "d:b");
        check(
            &["//host/share", "f"],
            &["\\\\host\\share\\", "f"],
            "\\\\host\\share\\f",
        );
        check(&["\\\\host"], &["\\", "host"], "\\host");
        check(&["//?/c:/a"], &["\\\\?\\c:\\", "a"], "\\\\?\\c:\\a");
        check(
            &["\\\\?\\UNC\\host\\share\\f"],
            &["\\\\?\\UNC\\host\\share\\", "f"],
            "\\\\?\\UNC\\host\\share\\f",
        );
        check(&["a", "b/c\\d"], &["a", "b", "c", "d"], "a\\b\\c\\d");
        check(&["\u{3bb}:"], &["\u{3bb}:"], "\u{3bb}:");
    }

    #[test]
    fn a_part_is_spelt_so_that_it_comes_back() {
        let windows = |first, part: &str| {
            let spelt = spelling(PathClass::PureWindowsPath, first, part.as_bytes());
            spelt.map(|text| String::from_utf8(text).unwrap())
        };
        for part in ["a", "C:", "C:\\", "\\", "\\\\host\\share\\"] {
            assert_eq!(windows(true, part), None, "{part}");
        }
        assert_eq!(windows(false, "C:").as_deref(), Some(".\\C:"));
        assert_eq!(windows(true, "C:a").as_deref(), Some(".\\C:a"));
        assert_eq!(windows(true, "\\\\host\\\\").as_deref(), Some("\\\\host\\"));
        assert_eq!(spelling(PathClass::PurePosixPath, false, b"C:"), None);
        assert_eq!(spelling(PathClass::PurePosixPath, true, b"//"), None);
    }

    #[test]
    fn parts_that_are_whole_texts_are_those_texts() {
        let stream = b"\x80\x04cpathlib\nPurePath\n\x8c\x01a\x94\x8c\x03b/c\x86R.";
        let document = decode(stream).unwrap();
        // The class is no object of its own; two texts, their tuple, the path, and `b` and `c`.
        assert_eq!(document.root().path().unwrap().parts().len(), 3);
        assert_eq!(document.node_count(), 7);
    }

    #[test]
    fn the_parts_of_a_text_that_is_used_often_are_charged_each_time() {
        let mut stream = b"\x80\x04(cpathlib\nPath\n\x940X\x20\x4e\x00\x00".to_vec();
        stream.extend(b"a/".repeat(10_000));
        stream.extend(b"\x85\x940");
        for _ in 0..100 {
            stream.extend(b"h\x00h\x01R");
        }
        stream.extend(b"t.");
        let error = decode(&stream).unwrap_err();
        let limit = LimitKind::WorkSteps;
        assert!(
            matches!(error.kind(), DecodeErrorKind::Limit { limit: found, .. } if *found == limit)
        );
    }
}
